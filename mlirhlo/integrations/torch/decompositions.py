"""Operations that PyTorch has no decomposition of, in PyTorch's own terms."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def encoder_layer(
    x: Any, width: int, heads: int, qkv_weight: Any, qkv_bias: Any, out_weight: Any, out_bias: Any, use_gelu: bool,
    norm_first: bool, eps: float, weight1: Any, bias1: Any, weight2: Any, bias2: Any, up_weight: Any, up_bias: Any,
    down_weight: Any, down_bias: Any, mask: Any = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """`_transformer_encoder_layer_fwd`, what `nn.TransformerEncoderLayer` runs in inference: x is `[batch, n, width]`.

    `mask_type`: 0 for a mask `[n, n]` of positions, 1 for one `[batch, n]` of padding, 2 for `[batch, heads, n, n]`;
    true (or minus infinity) is left out. Source: PyTorch, `TransformerEncoderLayer.forward`.
    """
    F = import_module("torch.nn.functional")  # noqa: N806
    torch = import_module("torch")

    def attention(y: Any) -> Any:
        batch, n, _ = y.shape
        q, k, v = (
            part.view(batch, n, heads, width // heads).transpose(1, 2)
            for part in F.linear(y, qkv_weight, qkv_bias).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * (width // heads) ** -0.5
        if mask is not None:
            shapes: dict[int | None, tuple[int, ...]] = {0: (1, 1, n, n), 1: (batch, 1, 1, n)}
            shape = shapes.get(mask_type, tuple(mask.shape))
            left_out = mask.view(shape)
            if left_out.dtype == torch.bool:
                scores = scores.masked_fill(left_out, float("-inf"))
            else:
                scores = scores + left_out
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, n, width)
        return F.linear(y, out_weight, out_bias)

    def feed_forward(y: Any) -> Any:
        inner = F.linear(y, up_weight, up_bias)
        return F.linear(F.gelu(inner) if use_gelu else F.relu(inner), down_weight, down_bias)

    def norm(y: Any, weight: Any, bias: Any) -> Any:
        return F.layer_norm(y, (width,), weight, bias, eps)

    if norm_first:
        x = x + attention(norm(x, weight1, bias1))
        return x + feed_forward(norm(x, weight2, bias2))
    x = norm(x + attention(x), weight1, bias1)
    return norm(x + feed_forward(x), weight2, bias2)
