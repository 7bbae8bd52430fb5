"""Products of arrays.

Source: Python array API standard 2024.12, "Linear algebra functions".
"""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array, axis_of
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.eager import kernel
from mlirhlo.numpy.errors import HloValueError, problem
from mlirhlo.numpy.manipulation import expand_dims, moveaxis, squeeze
from mlirhlo.numpy.operands import as_array, broadcast_shapes, common_dtype


@kernel
def _matmul(a: Array, b: Array, *, batch: tuple[int, ...], dtype: DType) -> Array:
    """Stacks of matrices, brought to one batch."""
    a, b = ops.convert(a, dtype), ops.convert(b, dtype)
    dims = tuple(range(len(batch)))
    a = ops.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = ops.broadcast_to(b, (*batch, *b.shape[-2:]))
    rank = len(batch)
    return ops.dot(a, b, ((rank + 1,), (rank,)), (dims, dims))


def matmul(x1: Any, x2: Any, /) -> Array:
    """Products of matrices; arrays of rank 1 are rows on the left and columns on the right."""
    a, b = as_array(x1, "matmul"), as_array(x2, "matmul")
    dtype = common_dtype("matmul", "numeric", (a, b))
    if a.ndim == 0 or b.ndim == 0:
        raise problem(HloValueError, "HLO0626", "matmul: takes no scalars", help="use x1 * x2")
    is_row, is_column = a.ndim == 1, b.ndim == 1
    left, right = a, b
    a = expand_dims(a, axis=0) if is_row else a
    b = expand_dims(b, axis=1) if is_column else b
    if a.shape[-1] != b.shape[-2]:
        raise problem(
            HloValueError,
            "HLO0626",
            f"matmul: {left.describe()} has {a.shape[-1]} columns,"
            f" {right.describe()} has {b.shape[-2]} rows",
        )
    batch = broadcast_shapes("matmul", a.shape[:-2], b.shape[:-2])
    found = _matmul(a, b, batch=batch, dtype=dtype)
    if is_row:
        found = squeeze(found, -2)
    return squeeze(found, -1) if is_column else found


@kernel
def _matrix_transpose(x: Array) -> Array:
    rank = x.ndim
    return ops.transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def matrix_transpose(x: Any, /) -> Array:
    """The transposes of a stack of matrices."""
    array = as_array(x, "matrix_transpose")
    if array.ndim < 2:
        raise problem(
            HloValueError, "HLO0626", f"matrix_transpose: {array.describe()} has no matrices"
        )
    return _matrix_transpose(array)


@kernel
def _tensordot(
    a: Array, b: Array, *, axes: tuple[tuple[int, ...], tuple[int, ...]], dtype: DType
) -> Array:
    return ops.dot(ops.convert(a, dtype), ops.convert(b, dtype), axes, ((), ()))


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Array:
    """Sums of products over pairs of axes: the last n and the first n, or two lists."""
    a, b = as_array(x1, "tensordot"), as_array(x2, "tensordot")
    dtype = common_dtype("tensordot", "numeric", (a, b))
    if isinstance(axes, (tuple, list)):
        lists = cast("Sequence[Any]", axes)
        left = tuple(axis_of(axis, a.ndim, "tensordot") for axis in _listed(lists[0]))
        right = tuple(axis_of(axis, b.ndim, "tensordot") for axis in _listed(lists[1]))
    else:
        count = int(axes)
        left, right = tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    if [a.shape[d] for d in left] != [b.shape[d] for d in right]:
        raise problem(
            HloValueError,
            "HLO0626",
            f"tensordot: axes {left} of {a.describe()} and {right} of {b.describe()} differ in size",
        )
    return _tensordot(a, b, axes=(left, right), dtype=dtype)


def _listed(axes: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", axes if isinstance(axes, (tuple, list)) else (axes,))


@kernel
def _vecdot(a: Array, b: Array, *, batch: tuple[int, ...], dtype: DType) -> Array:
    a, b = ops.convert(a, dtype), ops.convert(b, dtype)
    if dt.kind_of(dtype) == "c":
        parts = ops.unary("real", a, dt.real_of(dtype)), ops.unary("imag", a, dt.real_of(dtype))
        a = ops.complex_(parts[0], ops.unary("negate", parts[1]))
    size, rank = a.shape[-1], len(batch)
    a, b = ops.broadcast_to(a, (*batch, size)), ops.broadcast_to(b, (*batch, size))
    dims = tuple(range(rank))
    return ops.dot(a, b, ((rank,), (rank,)), (dims, dims))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Sums of products along an axis, the first operand conjugated."""
    a, b = as_array(x1, "vecdot"), as_array(x2, "vecdot")
    dtype = common_dtype("vecdot", "numeric", (a, b))
    a, b = (moveaxis(x, axis_of(axis, x.ndim, "vecdot"), -1) for x in (a, b))
    if a.shape[-1] != b.shape[-1]:
        raise problem(
            HloValueError,
            "HLO0626",
            f"vecdot: {a.shape[-1]} and {b.shape[-1]} elements along axis {axis}",
        )
    batch = broadcast_shapes("vecdot", a.shape[:-1], b.shape[:-1])
    return _vecdot(a, b, batch=batch, dtype=dtype)
