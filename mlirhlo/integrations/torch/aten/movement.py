"""Operations that make arrays, and move elements by fixed positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import mlirhlo.numpy as hnp
from mlirhlo.integrations.torch.aten.rules import Call, axes, axis, rule
from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array

# ------------------------------------------------------------------ new arrays


@rule("full.default")
def _full(call: Call, size: Sequence[int], value: Any, **more: Any) -> Array:
    return ops.splat(value, call.dtype, tuple(size))


@rule("full_like.default")
def _full_like(call: Call, x: Array, value: Any, **more: Any) -> Array:
    return ops.splat(value, call.dtype, x.shape)


@rule("new_full.default")
def _new_full(call: Call, x: Array, size: Sequence[int], value: Any, **more: Any) -> Array:
    return ops.splat(value, call.dtype, tuple(size))


@rule("zeros.default", "empty.memory_format", "empty_strided.default", "empty_permuted.default")
def _zeros(call: Call, size: Sequence[int], *others: Any, **more: Any) -> Array:
    return ops.splat(0, call.dtype, tuple(size))


@rule("ones.default")
def _ones(call: Call, size: Sequence[int], **more: Any) -> Array:
    return ops.splat(1, call.dtype, tuple(size))


@rule("zeros_like.default", "empty_like.default")
def _zeros_like(call: Call, x: Array, **more: Any) -> Array:
    return ops.splat(0, call.dtype, x.shape)


@rule("ones_like.default")
def _ones_like(call: Call, x: Array, **more: Any) -> Array:
    return ops.splat(1, call.dtype, x.shape)


@rule("new_zeros.default", "new_empty.default", "new_empty_strided.default")
def _new_zeros(call: Call, x: Array, size: Sequence[int], *others: Any, **more: Any) -> Array:
    return ops.splat(0, call.dtype, tuple(size))


@rule("new_ones.default")
def _new_ones(call: Call, x: Array, size: Sequence[int], **more: Any) -> Array:
    return ops.splat(1, call.dtype, tuple(size))


@rule("scalar_tensor.default")
def _scalar_tensor(call: Call, value: Any, **more: Any) -> Array:
    return call.cast(value)


@rule("arange.start_step")
def _arange(call: Call, start: Any, end: Any, step: Any = 1, **more: Any) -> Array:
    count = max(math.ceil((end - start) / step), 0)
    if call.dtype in dt.FLOATS:
        numbers = ops.iota(call.dtype, (count,), 0)
        return numbers * call.cast(step) + call.cast(start)
    return ops.constant(start + step * np.arange(count), call.dtype)


@rule("arange.start")
def _arange_start(call: Call, start: Any, end: Any, **more: Any) -> Array:
    return _arange(call, start, end, 1)


@rule("arange.default")
def _arange_end(call: Call, end: Any, **more: Any) -> Array:
    return _arange(call, 0, end, 1)


@rule("iota.default")
def _iota(call: Call, length: int, *, start: int = 0, step: int = 1, **more: Any) -> Array:
    return ops.constant(start + step * np.arange(length), call.dtype)


@rule("eye.default", "eye.m")
def _eye(call: Call, n: int, m: int | None = None, **more: Any) -> Array:
    return ops.constant(np.eye(n, m), call.dtype)


# ------------------------------------------------------------------ the same elements


@rule(
    "alias.default",
    "clone.default",
    "contiguous.default",
    "detach.default",
    "lift_fresh_copy.default",
    "lift_fresh.default",
    "alias_copy.default",
    "view_of.default",
)
def _same(call: Call, x: Array, **more: Any) -> Array:
    return x


@rule("copy.default")
def _copy(call: Call, x: Array, source: Array, non_blocking: bool = False) -> Array:
    return ops.broadcast_to(ops.convert(source, x.dtype), x.shape)


@rule("view.default", "reshape.default", "_unsafe_view.default", "_reshape_alias.default")
def _view(call: Call, x: Array, size: Sequence[int], *strides: Any) -> Array:
    known = math.prod(n for n in size if n != -1)
    shape = tuple(math.prod(x.shape) // max(known, 1) if n == -1 else n for n in size)
    return ops.reshape(x, shape)


@rule("as_strided.default")
def _as_strided(
    call: Call, x: Array, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Array:
    """Elements by their positions in the operand's memory, which must have no holes."""
    order = tuple(sorted(range(x.ndim), key=lambda d: -call.strides[d])) if call.strides else ()
    stored = ops.transpose(x, order) if order else x
    flat = ops.reshape(stored, (math.prod(x.shape),))
    at = np.full(tuple(size), offset or 0, np.int64)
    for d, (n, s) in enumerate(zip(size, stride, strict=True)):
        at += (np.arange(n) * s).reshape([-1 if i == d else 1 for i in range(len(size))])
    if at.size == math.prod(x.shape) and (at.ravel() == np.arange(at.size)).all():
        return ops.reshape(flat, tuple(size))
    return ops.gather(flat, ops.constant(at[..., None], dt.int64), (0,), 0)


@rule("unsqueeze.default")
def _unsqueeze(call: Call, x: Array, dim: int) -> Array:
    at = axis(dim, x.ndim + 1)
    return ops.reshape(x, (*x.shape[:at], 1, *x.shape[at:]))


@rule("squeeze.default", "squeeze.dim", "squeeze.dims")
def _squeeze(call: Call, x: Array, dim: Any = None) -> Array:
    gone = {d for d in axes(dim, x.ndim) if x.ndim and x.shape[d] == 1}
    return ops.reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in gone))


@rule("permute.default")
def _permute(call: Call, x: Array, dims: Sequence[int]) -> Array:
    return ops.transpose(x, tuple(axis(d, x.ndim) for d in dims)) if x.ndim else x


@rule("transpose.int")
def _transpose(call: Call, x: Array, first: int, second: int) -> Array:
    order = list(range(x.ndim))
    a, b = axis(first, x.ndim), axis(second, x.ndim)
    order[a], order[b] = order[b], order[a]
    return ops.transpose(x, tuple(order))


@rule("t.default")
def _t(call: Call, x: Array) -> Array:
    return ops.transpose(x, (1, 0)) if x.ndim == 2 else x


@rule("expand.default")
def _expand(call: Call, x: Array, size: Sequence[int], *, implicit: bool = False) -> Array:
    lead = len(size) - x.ndim
    shape = tuple(x.shape[d - lead] if n == -1 else n for d, n in enumerate(size))
    return ops.broadcast_to(x, shape)


@rule("repeat.default")
def _repeat(call: Call, x: Array, repeats: Sequence[int]) -> Array:
    return hnp.tile(x, tuple(repeats))


@rule("flip.default")
def _flip(call: Call, x: Array, dims: Sequence[int]) -> Array:
    return ops.reverse(x, axes(dims, x.ndim)) if dims else x


@rule("roll.default")
def _roll(call: Call, x: Array, shifts: Any, dims: Any = ()) -> Array:
    if not dims:
        return ops.reshape(
            hnp.roll(ops.reshape(x, (-1 % 1 + math.prod(x.shape),)), shifts[0]), x.shape
        )
    return hnp.roll(x, tuple(shifts), axis=axes(dims, x.ndim))


# ------------------------------------------------------------------ parts and wholes


def bounds(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """The range of a slice as Python has it."""
    first, last, _ = slice(start, end).indices(size)
    return first, max(first, last)


@rule("slice.Tensor")
def _slice(
    call: Call,
    x: Array,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Array:
    at = axis(dim, x.ndim)
    ranges = [(0, n, 1) for n in x.shape]
    ranges[at] = (*bounds(x.shape[at], start, end), step)
    return x if ranges[at] == (0, x.shape[at], 1) else ops.slice_(x, ranges)


@rule("select.int")
def _select(call: Call, x: Array, dim: int, index: int) -> Array:
    at = axis(dim, x.ndim)
    start = index % x.shape[at]
    part = ops.slice_axis(x, at, start, start + 1)
    return ops.reshape(part, (*x.shape[:at], *x.shape[at + 1 :]))


@rule("slice_scatter.default")
def _slice_scatter(
    call: Call,
    x: Array,
    source: Array,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Array:
    at = axis(dim, x.ndim)
    first, last = bounds(x.shape[at], start, end)
    source = ops.convert(source, x.dtype)
    if step == 1:
        starts = [ops.constant(first if d == at else 0, dt.int32) for d in range(x.ndim)]
        return ops.dynamic_update_slice(x, source, starts) if last > first else x
    count = len(range(first, last, step))
    padding = [(0, 0, 0)] * x.ndim
    covered = first + (count - 1) * step + 1
    padding[at] = (first, x.shape[at] - covered, step - 1)
    spread = ops.pad(source, ops.constant(0, x.dtype), padding)
    mask = np.zeros(x.shape[at], bool)
    mask[first:last:step] = True
    shape = tuple(x.shape[at] if d == at else 1 for d in range(x.ndim))
    return hnp.where(ops.constant(mask.reshape(shape), dt.bool), spread, x)


@rule("select_scatter.default")
def _select_scatter(call: Call, x: Array, source: Array, dim: int, index: int) -> Array:
    at = axis(dim, x.ndim)
    part = ops.reshape(ops.convert(source, x.dtype), (*x.shape[:at], 1, *x.shape[at + 1 :]))
    starts = [ops.constant(index % x.shape[at] if d == at else 0, dt.int32) for d in range(x.ndim)]
    return ops.dynamic_update_slice(x, part, starts)


@rule("cat.default")
def _cat(call: Call, parts: Sequence[Array], dim: int = 0) -> Array:
    kept = [call.cast(p) for p in parts if p.shape != (0,)] or [call.cast(parts[0])]
    return kept[0] if len(kept) == 1 else ops.concatenate(kept, axis(dim, kept[0].ndim))


@rule("stack.default")
def _stack(call: Call, parts: Sequence[Array], dim: int = 0) -> Array:
    return _cat(call, [_unsqueeze(call, part, dim) for part in parts], axis(dim, parts[0].ndim + 1))


@rule("split_with_sizes.default")
def _split_with_sizes(call: Call, x: Array, sizes: Sequence[int], dim: int = 0) -> list[Array]:
    ends = np.cumsum(sizes).tolist()
    return [_slice(call, x, dim, end - size, end) for size, end in zip(sizes, ends, strict=True)]


@rule("split.Tensor")
def _split(call: Call, x: Array, size: int, dim: int = 0) -> list[Array]:
    total = x.shape[axis(dim, x.ndim)]
    return [_slice(call, x, dim, at, at + size) for at in range(0, max(total, 1), size)]


@rule("unbind.int")
def _unbind(call: Call, x: Array, dim: int = 0) -> list[Array]:
    return [_select(call, x, dim, index) for index in range(x.shape[axis(dim, x.ndim)])]


@rule("constant_pad_nd.default")
def _pad(call: Call, x: Array, padding: Sequence[int], value: Any = 0) -> Array:
    edges = [(0, 0, 0)] * x.ndim
    for number in range(len(padding) // 2):
        edges[x.ndim - 1 - number] = (padding[2 * number], padding[2 * number + 1], 0)
    return ops.pad(x, call.cast(value), edges)


@rule("diagonal.default")
def _diagonal(call: Call, x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    a, b = axis(dim1, x.ndim), axis(dim2, x.ndim)
    rest = [d for d in range(x.ndim) if d not in (a, b)]
    return hnp.linalg.diagonal(ops.transpose(x, (*rest, a, b)), offset=offset)


@rule("tril.default")
def _tril(call: Call, x: Array, diagonal: int = 0) -> Array:
    return hnp.tril(x, k=diagonal)


@rule("triu.default")
def _triu(call: Call, x: Array, diagonal: int = 0) -> Array:
    return hnp.triu(x, k=diagonal)
