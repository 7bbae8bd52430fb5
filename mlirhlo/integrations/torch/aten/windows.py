"""Pooling and resampling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import mlirhlo.numpy as hnp
from mlirhlo.integrations.torch.aten.indexing import scatter_elements
from mlirhlo.integrations.torch.aten.rules import RULES, Call, Rule, numbers, rule
from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array

Numbers = tuple[int, ...]


def _output_size(n: int, k: int, s: int, p: int, d: int, *, ceil: bool) -> int:
    """Windows along a dimension; with `ceil` the last one may start inside and end outside."""
    span = n + 2 * p - d * (k - 1) - 1
    count = (span + (s - 1 if ceil else 0)) // s + 1
    return count - 1 if ceil and (count - 1) * s >= n + p else count


class _Windows:
    """Windows over the last dimensions of an array of `sizes`: one strided slice for each element of a window."""

    def __init__(
        self, sizes: Sequence[int], k: Numbers, s: Numbers, p: Numbers, d: Numbers, *, ceil: bool
    ) -> None:
        self.sizes, self.kernel, self.stride, self.padding, self.dilation = sizes, k, s, p, d
        self.counts = tuple(
            _output_size(*each, ceil=ceil) for each in zip(sizes, k, s, p, d, strict=True)
        )
        self.high = tuple(
            max((c - 1) * s[i] + d[i] * (k[i] - 1) + 1 - sizes[i] - p[i], 0)
            for i, c in enumerate(self.counts)
        )

    def padded(self, x: Array, value: Any) -> Array:
        """The array with a margin of a value."""
        lead = x.ndim - len(self.sizes)
        edges = [(0, 0, 0)] * lead + [
            (low, high, 0) for low, high in zip(self.padding, self.high, strict=True)
        ]
        return ops.pad(x, ops.constant(value, x.dtype), edges) if any(map(any, edges)) else x

    def offsets(self) -> Iterator[Numbers]:
        """Positions in the padded array of each element of the first window, in order."""
        ranges = [
            [d * i for i in range(k)] for k, d in zip(self.kernel, self.dilation, strict=True)
        ]
        return itertools.product(*ranges)

    def slice(self, padded: Array, offset: Numbers) -> Array:
        """The element at an offset of every window."""
        lead = padded.ndim - len(self.sizes)
        ranges = [(0, n, 1) for n in padded.shape[:lead]] + [
            (o, o + (c - 1) * s + 1, s)
            for o, c, s in zip(offset, self.counts, self.stride, strict=True)
        ]
        return ops.slice_(padded, ranges)

    def unslice(self, x: Array, offset: Numbers) -> Array:
        """The adjoint of `slice` and of the margin: an array of `sizes` that is 0 elsewhere."""
        lead = x.ndim - len(self.sizes)
        edges = [(0, 0, 0)] * lead
        for o, p, c, s, n in zip(
            offset, self.padding, self.counts, self.stride, self.sizes, strict=True
        ):
            edges.append((o - p, n - (o - p) - (c - 1) * s - 1, s - 1))
        return ops.pad(x, ops.constant(0, x.dtype), edges)

    def indices(self) -> np.ndarray[Any, Any]:
        """Flat positions in the array of what `slice` takes: offsets, then the windows' dimensions."""
        found: list[np.ndarray[Any, Any]] = []
        for offset in self.offsets():
            flat = np.zeros(self.counts, np.int64)
            for i, o in enumerate(offset):
                shape = [-1 if j == i else 1 for j in range(len(self.counts))]
                at = o + self.stride[i] * np.arange(self.counts[i]) - self.padding[i]
                flat = flat * self.sizes[i] + at.reshape(shape)
            found.append(flat)
        return np.stack(found)


def _lowest(dtype: Any) -> Any:
    return -np.inf if dt.kind_of(dtype) == "f" else np.iinfo(dtype).min


def _max_pool(
    x: Array, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, rank: int
) -> tuple[Array, Array]:
    k = numbers(kernel, rank)
    s = numbers(stride, rank) if stride else k
    windows = _Windows(
        x.shape[-rank:], k, s, numbers(padding, rank), numbers(dilation, rank), ceil=ceil
    )
    padded = windows.padded(x, _lowest(x.dtype))
    best: Array | None = None
    where: Array | None = None
    for offset, flat in zip(windows.offsets(), windows.indices(), strict=True):
        value = windows.slice(padded, offset)
        index = ops.broadcast(
            ops.constant(flat, dt.int64), value.shape, tuple(range(value.ndim - rank, value.ndim))
        )
        if best is None or where is None:
            best, where = value, index
            continue
        is_better = hnp.greater(value, best)
        if dt.kind_of(x.dtype) == "f":
            is_better = hnp.logical_or(is_better, hnp.not_equal(value, value))
        best, where = hnp.where(is_better, value, best), hnp.where(is_better, index, where)
    assert best is not None
    assert where is not None
    return best, where


def _max_pool_rule(rank: int) -> Rule:
    def meaning(
        call: Call,
        x: Array,
        kernel: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> tuple[Array, Array]:
        return _max_pool(x, kernel, stride, padding, dilation, ceil_mode, rank)

    return meaning


for _rank in (2, 3):
    RULES[f"max_pool{_rank}d_with_indices.default"] = _max_pool_rule(_rank)


@rule("max_pool2d_with_indices_backward.default")
def _max_pool2d_backward(
    call: Call,
    grad: Array,
    x: Array,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Array,
) -> Array:
    lead = x.shape[:-2]
    flat = ops.splat(0, x.dtype, (*lead, x.shape[-2] * x.shape[-1]))
    windows = (*lead, grad.shape[-2] * grad.shape[-1])
    source, at = ops.reshape(grad, windows), ops.reshape(indices, windows)
    return ops.reshape(scatter_elements(flat, len(lead), at, source, "add"), x.shape)


def _divisors(windows: _Windows, include: bool, override: int | None) -> np.ndarray[Any, Any]:
    """How many elements of each window are averaged."""
    counts = np.ones(windows.counts)
    for i, c in enumerate(windows.counts):
        shape = [-1 if j == i else 1 for j in range(len(windows.counts))]
        n, p, k = windows.sizes[i], windows.padding[i], windows.kernel[i]
        first = windows.stride[i] * np.arange(c) - p
        last = np.minimum(first + k, n + p)
        if not include:
            first, last = np.maximum(first, 0), np.minimum(last, n)
        counts = counts * (last - first).reshape(shape)
    return counts if override is None else np.full(windows.counts, float(override))


def _average_windows(
    sizes: Sequence[int], kernel: Any, stride: Any, padding: Any, ceil: bool
) -> _Windows:
    rank = 2
    k = numbers(kernel, rank)
    s = numbers(stride, rank) if stride else k
    return _Windows(sizes, k, s, numbers(padding, rank), (1,) * rank, ceil=ceil)


@rule("avg_pool2d.default")
def _avg_pool2d(
    call: Call,
    x: Array,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    windows = _average_windows(x.shape[-2:], kernel, stride, padding, ceil_mode)
    padded = windows.padded(x, 0)
    total: Array | None = None
    for offset in windows.offsets():
        part = windows.slice(padded, offset)
        total = part if total is None else total + part
    assert total is not None
    divisors = _divisors(windows, count_include_pad, divisor_override)
    return total / ops.constant(divisors, x.dtype)


@rule("avg_pool2d_backward.default")
def _avg_pool2d_backward(
    call: Call,
    grad: Array,
    x: Array,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    windows = _average_windows(x.shape[-2:], kernel, stride, padding, ceil_mode)
    share = grad / ops.constant(_divisors(windows, count_include_pad, divisor_override), grad.dtype)
    total: Array | None = None
    for offset in windows.offsets():
        part = windows.unslice(share, offset)
        total = part if total is None else total + part
    assert total is not None
    return total


# ------------------------------------------------------------------ resampling by matrices


def _resampled(x: Array, matrices: Sequence[np.ndarray[Any, Any]]) -> Array:
    """The last dimensions multiplied by matrices `[out, in]`, one each."""
    for number, matrix in enumerate(matrices):
        at = x.ndim - len(matrices) + number
        if matrix.shape[0] == matrix.shape[1] and (matrix == np.eye(len(matrix))).all():
            continue
        product = ops.dot(x, ops.constant(matrix, x.dtype), ((at,), (1,)), ((), ()))
        order = [*range(at), x.ndim - 1, *range(at, x.ndim - 1)]
        x = ops.transpose(product, tuple(order))
    return x


def _averages(size: int, count: int) -> np.ndarray[Any, Any]:
    """The matrix of adaptive averages: window i runs from floor(i*n/m) to ceil((i+1)*n/m)."""
    matrix = np.zeros((count, size))
    for i in range(count):
        first, last = i * size // count, -(-(i + 1) * size // count)
        matrix[i, first:last] = 1 / (last - first)
    return matrix


def _nearest(size: int, count: int, scale: float | None) -> np.ndarray[Any, Any]:
    """The matrix of nearest neighbours, which are at floor(i * n/m), or by the inverse of a given scale."""
    step = np.float32(1 / scale if scale else size / count)
    at = np.minimum(np.floor(np.arange(count, dtype=np.float32) * step).astype(int), size - 1)
    return np.asarray(np.eye(size)[at])


def _linear(size: int, count: int, aligned: bool, scale: float | None) -> np.ndarray[Any, Any]:
    """The matrix of linear interpolation; with `aligned` corners stay where they are."""
    if aligned:
        at = np.arange(count) * ((size - 1) / (count - 1) if count > 1 else 0.0)
    else:
        at = np.maximum((np.arange(count) + 0.5) * (1 / scale if scale else size / count) - 0.5, 0)
    low = np.minimum(at.astype(int), size - 1)
    high, part = np.minimum(low + 1, size - 1), at - low
    rows = np.eye(size)
    return np.asarray(rows[low] * (1 - part)[:, None] + rows[high] * part[:, None])


@rule("_adaptive_avg_pool2d.default")
def _adaptive(call: Call, x: Array, size: Sequence[int]) -> Array:
    pairs = zip(x.shape[-2:], size, strict=True)
    return _resampled(x, [_averages(n, m) for n, m in pairs])


@rule("_adaptive_avg_pool2d_backward.default")
def _adaptive_backward(call: Call, grad: Array, x: Array) -> Array:
    pairs = zip(x.shape[-2:], grad.shape[-2:], strict=True)
    return _resampled(grad, [_averages(n, m).T for n, m in pairs])


def _scales(given: Sequence[float | None]) -> list[float | None]:
    return [*given, None, None][:2]


@rule("upsample_nearest2d.default")
def _upsample_nearest(call: Call, x: Array, size: Sequence[int], *scales: float | None) -> Array:
    each = zip(x.shape[-2:], size, _scales(scales), strict=True)
    return _resampled(x, [_nearest(*one) for one in each])


@rule("upsample_nearest2d_backward.default")
def _upsample_nearest_backward(
    call: Call, grad: Array, size: Sequence[int], before: Sequence[int], *scales: float | None
) -> Array:
    each = zip(before[-2:], size, _scales(scales), strict=True)
    return _resampled(grad, [_nearest(*one).T for one in each])


@rule("upsample_bilinear2d.default")
def _upsample_bilinear(
    call: Call, x: Array, size: Sequence[int], align_corners: bool, *scales: float | None
) -> Array:
    each = zip(x.shape[-2:], size, _scales(scales), strict=True)
    return _resampled(x, [_linear(n, m, align_corners, scale) for n, m, scale in each])


@rule("upsample_bilinear2d_backward.default")
def _upsample_bilinear_backward(
    call: Call,
    grad: Array,
    size: Sequence[int],
    before: Sequence[int],
    align_corners: bool,
    *scales: float | None,
) -> Array:
    each = zip(before[-2:], size, _scales(scales), strict=True)
    return _resampled(grad, [_linear(n, m, align_corners, scale).T for n, m, scale in each])
