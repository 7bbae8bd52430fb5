"""Grids of coordinates, differences along them, diagonals. The names are numpy's."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.elements import F32, I32
from mlirhlo.mosaic.language.faults import bad_shape
from mlirhlo.mosaic.language.functions.arithmetic import (
    broadcast_to,
    cast,
    equal,
    true_divide,
    where,
)
from mlirhlo.mosaic.language.functions.reductions import sum_
from mlirhlo.mosaic.language.functions.shapes import (
    broadcasted_iota,
    concatenate,
    expand_dims,
    normal_axis,
    reshape,
    strided_slice,
)
from mlirhlo.mosaic.language.value import ON_NUMPY, ArrayLike, Value, as_value, is_float


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Value]:
    """Coordinates along each dimension, of vectors, for all points; `sparse` ones are not repeated.

    The first two dimensions are exchanged unless `indexing` is `ij`. Raises `HloError` HLO0721 for what is no vector.
    """
    del copy
    values = [as_value(x) for x in xi]
    if any(value.ndim > 1 for value in values):
        raise bad_shape("meshgrid is of vectors")
    order = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        order[0], order[1] = 1, 0
    sizes = [value.size for value in values]
    shape = tuple(sizes[dim] for dim in order)
    columns: list[Value] = []
    for number, value in enumerate(values):
        own = [1] * len(values)
        own[order.index(number)] = value.size
        column = reshape(value, tuple(own))
        columns.append(column if sparse else broadcast_to(column, shape))
    return columns


def gradient(
    f: ArrayLike, *varargs: Any, axis: Any = None, edge_order: int = 1
) -> Value | list[Value]:
    """Half of the differences of neighbours on both sides, whole ones at the ends, divided by the distances:
    numbers, one for all dimensions or one for each.

    Raises `HloError` HLO0721 for fewer than two elements, and for distances that are vectors.
    """
    value = as_value(f)
    value = value if is_float(value) else cast(value, F32)
    many = axis is None or isinstance(axis, Sequence)
    dims = [normal_axis(dim, value.ndim) for dim in _dims(axis, value.ndim)]
    steps = list(varargs) * (len(dims) if len(varargs) == 1 else 1) or [1.0] * len(dims)
    if len(steps) != len(dims) or edge_order != 1 or any(np.ndim(step) for step in steps):
        raise bad_shape(
            f"gradient along {len(dims)} dimensions with {len(varargs)} distances",
            "give a number for each dimension; edges are of the first order",
        )
    found = [_gradient(value, dim, step) for dim, step in zip(dims, steps, strict=True)]
    return found if many and len(dims) != 1 else found[0]


def _dims(axis: Any, rank: int) -> Sequence[int]:
    if axis is None:
        return range(rank)
    return axis if isinstance(axis, Sequence) else [axis]


def _gradient(value: Value, dim: int, step: Any) -> Value:
    count = value.shape[dim]
    if count < 2:
        raise bad_shape(f"gradient along a dimension of size {count}", "it takes two at least")

    def part(start: int, size: int) -> Value:
        offsets, sizes = [0] * value.ndim, list(value.shape)
        offsets[dim], sizes[dim] = start, size
        return strided_slice(value, offsets, sizes)

    first = part(1, 1) - part(0, 1)
    last = part(count - 1, 1) - part(count - 2, 1)
    inner = [(part(2, count - 2) - part(0, count - 2)) * 0.5] if count > 2 else []
    joined = concatenate([first, *inner, last], dim)
    return true_divide(joined, step)


def diag(v: ArrayLike, k: int = 0) -> Value:
    """The matrix with a vector on a diagonal, zero elsewhere; of a matrix, the diagonal."""
    value = as_value(v)
    if value.ndim == 2:
        return diagonal(value, k)
    if value.ndim != 1:
        raise bad_shape(f"diag of {value.ndim} dimensions", "it is of a vector or a matrix")
    size = value.shape[0] + abs(k)
    rows = broadcasted_iota(I32, (value.shape[0], size), 0)
    columns = broadcasted_iota(I32, (value.shape[0], size), 1)
    found = where(equal(columns, rows + max(k, 0)), expand_dims(value, 1), 0)
    if not k:
        return found
    zeros = cast(broadcast_to(as_value(0), (abs(k), size)), value.dtype)
    if k > 0:
        return concatenate([found, zeros], 0)
    return concatenate([zeros, found], 0)


def diagonal(a: ArrayLike, offset: int = 0) -> Value:
    """A diagonal of a matrix. Raises `HloError` HLO0721 for other ranks, and for a diagonal without elements."""
    value = as_value(a)
    if value.ndim != 2:
        raise bad_shape(f"a diagonal of {value.ndim} dimensions", "it is of a matrix")
    rows, columns = value.shape
    first, begin = max(-offset, 0), max(offset, 0)
    count = min(rows - first, columns - begin)
    if count <= 0:
        raise bad_shape(f"diagonal {offset} of {rows} by {columns} has no elements")
    square = strided_slice(value, [first, begin], [count, count])
    at = (broadcasted_iota(I32, (count, count), dim) for dim in (0, 1))
    return sum_(where(equal(*at), square, 0), 0)


ON_NUMPY.update(
    {np.meshgrid: meshgrid, np.gradient: gradient, np.diag: diag, np.diagonal: diagonal}
)

__all__ = ["diag", "diagonal", "gradient", "meshgrid"]
