"""Small models of common kinds in PyTorch, for the tests and the benchmark of `torch.compile(backend="mlirhlo")`."""

# PyTorch is not among the tools of development.
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


@dataclass(frozen=True)
class Case:
    """A model with arguments; its result is a tensor, or a tuple of them."""

    name: str
    make: Callable[[], nn.Module]
    arguments: Callable[[], tuple[Any, ...]]


class Attention(nn.Module):
    """Self-attention of several heads, causal or not."""

    def __init__(self, width: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        b, n, width = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, n, width))


class Block(nn.Module):
    """A transformer's layer, normalised first."""

    def __init__(self, width: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=causal)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class VisionTransformer(nn.Module):
    """Patches by a convolution, a class token, layers, a head."""

    def __init__(self, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, stride=8)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 17, width))
        self.layers = nn.Sequential(*[Block(width, 4) for _ in range(layers)])
        self.head = nn.Linear(width, 10)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        return self.head(self.layers(x)[:, 0])


class Encoder(nn.Module):
    """As BERT: embeddings of tokens, positions and segments, a mask of padding, layers of PyTorch's own."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.tokens, self.positions = (
            nn.Embedding(100, width, padding_idx=0),
            nn.Embedding(32, width),
        )
        self.segments, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids: Any, segments: Any) -> Any:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1])) + self.segments(segments)
        return torch.tanh(self.layers(self.norm(x), src_key_padding_mask=ids == 0)[:, 0])


class Decoder(nn.Module):
    """As GPT, one step with a cache of keys and values that is written at a position."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.tokens, self.norm = nn.Embedding(100, width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.block = Block(width, heads, causal=True)
        self.head = nn.Linear(width, 100, bias=False)

    def forward(self, ids: Any, keys: Any, values: Any, position: Any) -> Any:
        x = self.tokens(ids)
        b, n, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        at = position + torch.arange(n)
        keys, values = keys.index_copy(2, at, k), values.index_copy(2, at, v)
        mask = torch.arange(keys.shape[2])[None, :] <= at[:, None]
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, width))
        return self.head(self.block(x)), keys, values


class Recurrent(nn.Module):
    """A stacked LSTM and a head on its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(16, 32, num_layers=2, batch_first=True), nn.Linear(32, 5)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


def _double(inside: int, outside: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.SiLU(),
        nn.Conv2d(outside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.SiLU(),
    )  # fmt: skip


class UNet(nn.Module):
    """Down by pooling, up by transposed convolutions and by interpolation, with skips."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = _double(3, 8), _double(8, 16), _double(16, 32)
        self.up, self.d, self.e = (
            nn.ConvTranspose2d(32, 16, 2, stride=2),
            _double(32, 16),
            _double(24, 8),
        )
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        d = self.d(torch.cat([self.up(self.c(F.avg_pool2d(b, 2))), b], dim=1))
        up = F.interpolate(d, scale_factor=2, mode="bilinear", align_corners=False)
        return self.last(self.e(torch.cat([up, a], dim=1)))


class GraphNet(nn.Module):
    """Messages along edges, added up by target, and averaged."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(32, 16), nn.Linear(32, 16)

    def forward(self, nodes: Any, edges: Any) -> Any:
        source, target = edges
        sent = F.relu(self.message(torch.cat([nodes[source], nodes[target]], dim=-1)))
        total = torch.zeros_like(nodes).index_add(0, target, sent)
        at = target[:, None].expand_as(sent)
        mean = torch.zeros_like(nodes).scatter_reduce(0, at, sent, "mean", include_self=False)
        return self.update(torch.cat([total, mean], dim=-1))


class Experts(nn.Module):
    """A mixture of experts: the best two of four, weighted."""

    def __init__(self, width: int = 32, count: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(width, count, bias=False)
        self.up = nn.Parameter(torch.randn(count, width, 2 * width) / width**0.5)
        self.down = nn.Parameter(torch.randn(count, 2 * width, width) / width**0.5)

    def forward(self, x: Any) -> Any:
        weights, chosen = torch.topk(self.router(x).softmax(-1), 2, dim=-1)
        gates = torch.zeros(x.shape[0], self.up.shape[0]).scatter(1, chosen, weights)
        hidden = F.silu(torch.einsum("nd,edf->enf", x, self.up))
        return torch.einsum("enf,efd,ne->nd", hidden, self.down, gates)


class Diffusion(nn.Module):
    """One step of denoising: an embedding of time by sines, a residual net, the update of the sample."""

    def __init__(self) -> None:
        super().__init__()
        self.time, self.first = nn.Linear(32, 16), nn.Conv2d(3, 16, 3, padding=1)
        self.norm, self.last = nn.GroupNorm(4, 16), nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x: Any, t: Any) -> Any:
        angles = t[:, None] * torch.exp(torch.arange(16) * -0.5)
        embedded = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        hidden = F.silu(self.norm(self.first(x)) + embedded[:, :, None, None])
        noise = self.last(hidden)
        alpha = torch.cos(t * 0.5)[:, None, None, None]
        return alpha.rsqrt() * (x - (1 - alpha) / (1 - alpha**2 + 1e-3).sqrt() * noise)


def _perceptron() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10), nn.LogSoftmax(-1)
    )


def _convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1),
        nn.Conv2d(16, 32, 3, padding=1, groups=2), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(128, 10),
    )  # fmt: skip


def _ids(*shape: int) -> Any:
    return torch.randint(1, 100, shape)


CASES = (
    Case("mlp", _perceptron, lambda: (torch.randn(32, 64),)),
    Case("cnn", _convolutional, lambda: (torch.randn(4, 3, 32, 32),)),
    Case("vit", VisionTransformer, lambda: (torch.randn(2, 3, 32, 32),)),
    Case("bert", Encoder, lambda: (torch.where(torch.arange(24) < 20, _ids(2, 24), 0), torch.zeros(2, 24).long())),
    Case(
        "gpt",
        Decoder,
        lambda: (_ids(2, 3), torch.randn(2, 4, 16, 16), torch.randn(2, 4, 16, 16), torch.tensor(5)),
    ),
    Case("lstm", Recurrent, lambda: (torch.randn(4, 12, 16),)),
    Case("unet", UNet, lambda: (torch.randn(1, 3, 32, 32),)),
    Case("gnn", GraphNet, lambda: (torch.randn(50, 16), torch.randint(0, 50, (2, 200)))),
    Case("moe", Experts, lambda: (torch.randn(24, 32),)),
    Case("diffusion", Diffusion, lambda: (torch.randn(2, 3, 16, 16), torch.rand(2))),
)  # fmt: skip
"""One of each kind."""
