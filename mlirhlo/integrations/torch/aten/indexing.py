"""Reads and writes at computed positions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import mlirhlo.numpy as hnp
from mlirhlo.diagnostics import HloError, error
from mlirhlo.integrations.torch.aten.rules import Call, axis, rule
from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array


def _wrapped(indices: Array, size: int) -> Array:
    """Indices counted from the front; those below 0 count from the end."""
    wide = ops.convert(indices, dt.int64)
    return hnp.where(hnp.less(wide, 0), wide + size, wide)


def _vectors(parts: Sequence[Array]) -> Array:
    """Index vectors `[..., k]` of index arrays that broadcast together."""
    together = hnp.broadcast_arrays(*parts) if len(parts) > 1 else list(parts)
    columns = [ops.reshape(part, (*part.shape, 1)) for part in together]
    return columns[0] if len(columns) == 1 else ops.concatenate(columns, columns[0].ndim - 1)


def _by_mask(what: str) -> HloError:
    return error(
        "HLO0612",
        f"torch.compile: no rule for {what}: how many elements there are is not known before the run",
        help="torch.where(mask, value, x) keeps the size; torch.compiler.disable leaves the rest to PyTorch",
    )


def _advanced(x: Array, indices: Sequence[Array | None]) -> tuple[Array, tuple[int, ...], int]:
    """Index vectors, the dimensions that they index, and where theirs stand in the result."""
    along = tuple(d for d, index in enumerate(indices) if index is not None)
    if any(index is not None and index.dtype == dt.bool for index in indices):
        raise _by_mask("masks among indices")
    vectors = _vectors([_wrapped(indices[d], x.shape[d]) for d in along])  # type: ignore[arg-type]
    is_run = along == tuple(range(along[0], along[-1] + 1))
    return vectors, along, along[0] if is_run else 0


@rule("index.Tensor", "_unsafe_index.Tensor")
def _index(call: Call, x: Array, indices: Sequence[Array | None]) -> Array:
    return ops.gather(x, *_advanced(x, indices))


@rule("index_put.default", "_unsafe_index_put.default")
def _index_put(
    call: Call,
    x: Array,
    indices: Sequence[Array | None],
    values: Array,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Array:
    first = indices[0]
    if first is not None and first.dtype == dt.bool and len(indices) == 1:
        if prod(values.shape) != 1:
            raise _by_mask("several values put by a mask")
        values = ops.reshape(ops.convert(values, x.dtype), ())
        mask = ops.reshape(first, (*first.shape, *(1,) * (x.ndim - first.ndim)))
        return hnp.where(mask, x + values if accumulate else values, x)
    vectors, along, at = _advanced(x, indices)
    rest = [n for d, n in enumerate(x.shape) if d not in along]
    shape = (*rest[:at], *vectors.shape[:-1], *rest[at:])
    updates = ops.broadcast_to(ops.convert(values, x.dtype), shape)
    return ops.scatter(x, vectors, updates, along, at, "add" if accumulate else None)


@rule("index_select.default")
def _index_select(call: Call, x: Array, dim: int, index: Array) -> Array:
    at = axis(dim, x.ndim)
    flat = ops.reshape(index, (index.shape[0] if index.ndim else 1,))
    return ops.gather(x, _vectors([_wrapped(flat, x.shape[at])]), (at,), at)


@rule("index_add.default")
def _index_add(
    call: Call, x: Array, dim: int, index: Array, source: Array, *, alpha: Any = 1
) -> Array:
    at = axis(dim, x.ndim)
    scaled = source if alpha == 1 else source * call.cast(alpha)
    return ops.scatter(x, _vectors([_wrapped(index, x.shape[at])]), scaled, (at,), at, "add")


@rule("embedding.default")
def _embedding(call: Call, weight: Array, indices: Array, *others: Any) -> Array:
    vectors = _vectors([ops.convert(indices, dt.int64)])
    return ops.gather(weight, vectors, (0,), 0)


@rule("embedding_dense_backward.default")
def _embedding_backward(
    call: Call, grad: Array, indices: Array, count: int, padding: int, by_frequency: bool
) -> Array:
    """Rows of the gradient added up by index; those of `padding` stay 0."""
    size = prod(indices.shape)
    flat = ops.convert(ops.reshape(indices, (size,)), dt.int64)
    rows = ops.reshape(grad, (size, grad.shape[-1]))
    if padding >= 0:
        is_kept = ops.reshape(hnp.not_equal(flat, padding), (size, 1))
        rows = hnp.where(is_kept, rows, ops.constant(0, rows.dtype))
    table = ops.splat(0, grad.dtype, (count, grad.shape[-1]))
    return ops.scatter(table, _vectors([flat]), rows, (0,), 0, "add")


def _elements(indices: Array, at: int, sizes: Sequence[int]) -> Array:
    """Index vectors of single elements: the element's own position, but `indices` along a dimension."""
    parts = [
        _wrapped(indices, sizes[at]) if d == at else ops.iota(dt.int64, indices.shape, d)
        for d in range(indices.ndim)
    ]
    return _vectors(parts)


def scatter_elements(
    x: Array, dim: int, indices: Array, source: Array, opcode: str | None
) -> Array:
    """Elements of `source` put, or folded by `opcode`, at `indices` along a dimension of `x`."""
    ranges = [(0, n, 1) for n in indices.shape]
    part = source if source.shape == indices.shape else ops.slice_(source, ranges)
    vectors = _elements(indices, dim, x.shape)
    return ops.scatter(x, vectors, part, tuple(range(x.ndim)), 0, opcode)


@rule("gather.default")
def _gather(call: Call, x: Array, dim: int, index: Array, *, sparse_grad: bool = False) -> Array:
    if x.ndim == 0:
        return ops.broadcast_to(x, index.shape)
    vectors = _elements(index, axis(dim, x.ndim), x.shape)
    return ops.gather(x, vectors, tuple(range(x.ndim)), 0)


@rule("scatter.src")
def _scatter(call: Call, x: Array, dim: int, index: Array, source: Array) -> Array:
    return scatter_elements(x, axis(dim, x.ndim), index, source, None)


@rule("scatter.value")
def _scatter_value(call: Call, x: Array, dim: int, index: Array, value: Any) -> Array:
    source = ops.splat(value, x.dtype, index.shape)
    return scatter_elements(x, axis(dim, x.ndim), index, source, None)


@rule("scatter_add.default")
def _scatter_add(call: Call, x: Array, dim: int, index: Array, source: Array) -> Array:
    return scatter_elements(x, axis(dim, x.ndim), index, source, "add")


_REDUCERS = {"sum": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}


@rule("scatter_reduce.two")
def _scatter_reduce(
    call: Call,
    x: Array,
    dim: int,
    index: Array,
    source: Array,
    reduce: str,
    *,
    include_self: bool = True,
) -> Array:
    at = axis(dim, x.ndim)
    opcode = "add" if reduce == "mean" else _REDUCERS[reduce]
    start = x
    ones = ops.splat(1, x.dtype, index.shape)
    zeros = ops.splat(0, x.dtype, x.shape)
    counts = scatter_elements(zeros, at, index, ones, "add")
    is_written = hnp.greater(counts, 0)
    if not include_self:
        neutral = ops.splat(ops.identity(opcode, x.dtype), x.dtype, x.shape)
        start = hnp.where(is_written, neutral, x)
    result = scatter_elements(start, at, index, source, opcode)
    if reduce != "mean":
        return result
    divisor = counts + 1 if include_self else hnp.maximum(counts, ops.constant(1, x.dtype))
    quotient = hnp.divide if dt.kind_of(x.dtype) == "f" else hnp.floor_divide
    return quotient(result, divisor)
