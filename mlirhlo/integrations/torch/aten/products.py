"""Products of matrices, and convolutions with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Attribute

import mlirhlo.numpy as hnp
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    ConvolutionDimensionNumbersAttr,
    Window,
    WindowAttr,
    WindowDimension,
)
from mlirhlo.integrations.torch.aten.rules import Call, numbers, rule
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array

# ------------------------------------------------------------------ matrices


@rule("mm.default")
def _mm(call: Call, a: Array, b: Array) -> Array:
    return ops.dot(a, b, ((1,), (0,)), ((), ()))


@rule("bmm.default")
def _bmm(call: Call, a: Array, b: Array) -> Array:
    return ops.dot(a, b, ((2,), (1,)), ((0,), (0,)))


@rule("mv.default")
def _mv(call: Call, a: Array, b: Array) -> Array:
    return ops.dot(a, b, ((1,), (0,)), ((), ()))


@rule("dot.default", "vdot.default")
def _dot(call: Call, a: Array, b: Array) -> Array:
    return ops.dot(a, b, ((0,), (0,)), ((), ()))


def _added(call: Call, x: Array, product: Array, beta: Any, alpha: Any) -> Array:
    if alpha != 1:
        product = product * call.cast(alpha)
    if beta == 0:
        return product
    return product + (x if beta == 1 else x * call.cast(beta))


@rule("addmm.default")
def _addmm(call: Call, x: Array, a: Array, b: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    return _added(call, x, _mm(call, a, b), beta, alpha)


@rule("baddbmm.default")
def _baddbmm(call: Call, x: Array, a: Array, b: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    return _added(call, x, _bmm(call, a, b), beta, alpha)


@rule("addmv.default")
def _addmv(call: Call, x: Array, a: Array, b: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    return _added(call, x, _mv(call, a, b), beta, alpha)


# ------------------------------------------------------------------ convolutions

Numbers = tuple[int, ...]


def _convolve(
    x: Array,
    kernel: Array,
    window: Sequence[WindowDimension],
    roles: tuple[str, str, str],
    *,
    groups: int = 1,
    batch_groups: int = 1,
) -> Array:
    """A convolution whose operands and result have their batch and feature dimensions first.

    `roles`: of the first two dimensions of each, as in `bf`, `oi`, `bf`; the spatial ones follow.
    """
    spatial = tuple(range(2, x.ndim))
    lhs, rhs, out = roles
    labels = ConvolutionDimensionNumbers(
        lhs.index("b"), lhs.index("f"), spatial, rhs.index("i"), rhs.index("o"), spatial,
        out.index("b"), out.index("f"), spatial,
    )  # fmt: skip
    sizes: list[int] = []
    for d, w in zip(spatial, window, strict=True):
        base = (x.shape[d] - 1) * w.base_dilation + 1 + w.padding_low + w.padding_high
        sizes.append(max((base - (w.size - 1) * w.window_dilation - 1) // w.stride + 1, 0))
    first = {"b": x.shape[lhs.index("b")] // batch_groups, "f": kernel.shape[rhs.index("o")]}
    own: dict[str, Attribute] = {
        "window": WindowAttr(Window(tuple(window))),
        "dim_labels": ConvolutionDimensionNumbersAttr(labels),
    }
    if groups > 1:
        own["feature_group_count"] = integer(groups)
    if batch_groups > 1:
        own["batch_group_count"] = integer(batch_groups)
    shape = (first[out[0]], first[out[1]], *sizes)
    return ops.emit("convolution", (x, kernel), x.dtype, shape, own)


def _forward(
    x: Array, w: Array, stride: Numbers, padding: Numbers, dilation: Numbers, groups: int
) -> Array:
    window = [
        WindowDimension(size=k, stride=s, padding_low=p, padding_high=p, window_dilation=d)
        for k, s, p, d in zip(w.shape[2:], stride, padding, dilation, strict=True)
    ]
    return _convolve(x, w, window, ("bf", "oi", "bf"), groups=groups)


def _transposed(
    x: Array,
    w: Array,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    groups: int,
    sizes: Sequence[int],
) -> Array:
    """The adjoint of a convolution with kernel `w`, whose operand had the spatial `sizes`."""
    window: list[WindowDimension] = []
    for n, k, s, p, d, size in zip(
        x.shape[2:], w.shape[2:], stride, padding, dilation, sizes, strict=True
    ):
        low = (k - 1) * d - p
        high = size - ((n - 1) * s + 1) - low + (k - 1) * d
        window.append(
            WindowDimension(
                size=k, padding_low=low, padding_high=high, window_dilation=d, base_dilation=s,
                window_reversal=True,
            )
        )  # fmt: skip
    if groups > 1:
        # [groups * in, out, …] becomes [in, groups * out, …]: a group's features are neighbours.
        parts, rest = w.shape[0] // groups, w.shape[2:]
        w = ops.reshape(w, (groups, parts, *w.shape[1:]))
        order = (1, 0, *range(2, w.ndim))
        w = ops.transpose(w, order)
        w = ops.reshape(w, (parts, groups * w.shape[2], *rest))
    return _convolve(x, w, window, ("bf", "io", "bf"), groups=groups)


def _kernel_gradient(
    x: Array,
    grad: Array,
    kernel: Sequence[int],
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    groups: int,
) -> Array:
    """The gradient of the kernel `[out, in, …]` of a convolution of `x`."""
    window: list[WindowDimension] = []
    for n, g, k, s, p, d in zip(
        x.shape[2:], grad.shape[2:], kernel, stride, padding, dilation, strict=True
    ):
        high = (k - 1) * d + (g - 1) * s + 1 - n - p
        window.append(
            WindowDimension(size=g, stride=d, padding_low=p, padding_high=high, window_dilation=s)
        )
    return _convolve(x, grad, window, ("fb", "io", "fb"), batch_groups=groups)


@rule("convolution.default")
def _convolution(
    call: Call,
    x: Array,
    w: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Array:
    rank = w.ndim - 2
    s, p, d = (numbers(each, rank) for each in (stride, padding, dilation))
    if transposed:
        extra = numbers(output_padding, rank)
        sizes = [
            (n - 1) * s[i] - 2 * p[i] + d[i] * (w.shape[2 + i] - 1) + extra[i] + 1
            for i, n in enumerate(x.shape[2:])
        ]
        result = _transposed(x, w, s, p, d, groups, sizes)
    else:
        result = _forward(x, w, s, p, d, groups)
    if bias is None:
        return result
    return result + ops.broadcast(bias, result.shape, (1,))


@rule("convolution_backward.default")
def _convolution_backward(
    call: Call,
    grad: Array,
    x: Array,
    w: Array,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> list[Array | None]:
    rank = w.ndim - 2
    s, p, d = (numbers(each, rank) for each in (stride, padding, dilation))
    results: list[Array | None] = [None, None, None]
    if output_mask[0]:
        results[0] = (
            _forward(grad, w, s, p, d, groups)
            if transposed
            else _transposed(grad, w, s, p, d, groups, x.shape[2:])
        )
    if output_mask[1]:
        operand, other = (grad, x) if transposed else (x, grad)
        results[1] = _kernel_gradient(operand, other, w.shape[2:], s, p, d, groups)
    if output_mask[2]:
        results[2] = hnp.sum(grad, axis=(0, *range(2, grad.ndim)))
    return results
