"""Vectors put together and taken apart, triangles, diagonals: shapes of `jax.numpy` made of others."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index as as_index
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.elements import F32, I32, DTypeLike, as_dtype, kind_of
from mlirhlo.mosaic.language.faults import bad_shape
from mlirhlo.mosaic.language.functions.arithmetic import (
    broadcast_shape,
    broadcast_to,
    cast,
    equal,
    where,
)
from mlirhlo.mosaic.language.functions.products import dot_general
from mlirhlo.mosaic.language.functions.reductions import sum_
from mlirhlo.mosaic.language.functions.shapes import (
    broadcasted_iota,
    concatenate,
    expand_dims,
    normal_axes,
    normal_axis,
    reshape,
    sliced,
    split,
    swapaxes,
    transpose,
)
from mlirhlo.mosaic.language.value import ON_NUMPY, ArrayLike, Value, as_value


def _at_least(rank: int, x: ArrayLike) -> Value:
    value = as_value(x)
    if rank == 3 and value.ndim in (1, 2):  # numpy's order: rows in the middle
        return reshape(value, (1, *value.shape, 1) if value.ndim == 1 else (*value.shape, 1))
    return reshape(value, (1,) * (rank - value.ndim) + value.shape)


def _each(rank: int) -> Callable[..., Any]:
    def function(*arrays: ArrayLike) -> Any:
        made = [_at_least(rank, one) for one in arrays]
        return made[0] if len(made) == 1 else made

    function.__name__ = f"atleast_{rank}d"
    function.__doc__ = f"With dimensions of size one, so that there are {rank} at least."
    return function


atleast_1d, atleast_2d, atleast_3d = _each(1), _each(2), _each(3)


def vstack(arrays: Sequence[ArrayLike]) -> Value:
    """Put one under the other; vectors are rows."""
    return concatenate([_at_least(2, one) for one in arrays], 0)


def hstack(arrays: Sequence[ArrayLike]) -> Value:
    """Put side by side."""
    values = [_at_least(1, one) for one in arrays]
    return concatenate(values, 0 if values[0].ndim == 1 else 1)


def dstack(arrays: Sequence[ArrayLike]) -> Value:
    """Put one behind the other, along the third dimension."""
    return concatenate([_at_least(3, one) for one in arrays], 2)


def column_stack(arrays: Sequence[ArrayLike]) -> Value:
    """Put side by side; vectors are columns."""
    values = [as_value(one) for one in arrays]
    return concatenate([one if one.ndim > 1 else reshape(one, (-1, 1)) for one in values], 1)


def block(arrays: Any) -> Value:
    """A matrix of matrices: lists in lists are joined from the last dimension."""
    depth = _depth(arrays)

    def joined(tree: Any, level: int) -> Value:
        if not isinstance(tree, list):
            return _at_least(max(depth, 1), tree)
        return concatenate([joined(one, level + 1) for one in tree], level - depth)

    return joined(arrays, 0)


def _depth(tree: Any) -> int:
    return 1 + max(map(_depth, tree)) if isinstance(tree, list) else 0


def array_split(x: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Value]:
    """Into parts whose sizes differ by one at most, or at positions."""
    value = as_value(x)
    dim = normal_axis(axis, value.ndim)
    size = value.shape[dim]
    if isinstance(indices_or_sections, int):
        least, more = divmod(size, indices_or_sections)
        sizes = [least + (at < more) for at in range(indices_or_sections)]
        ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    else:
        ends = [*indices_or_sections, size]
    before = (slice(None),) * dim
    starts = [0, *ends[:-1]]
    return [
        sliced(value, (*before, slice(start, end))) for start, end in zip(starts, ends, strict=True)
    ]


def _splitter(axis: int) -> Callable[[ArrayLike, Any], list[Value]]:
    def function(x: ArrayLike, indices_or_sections: Any) -> list[Value]:
        value = as_value(x)
        return split(value, indices_or_sections, 0 if value.ndim == 1 else axis)

    function.__doc__ = f"Into equal parts, or at positions, along dimension {axis}."
    return function


vsplit, hsplit, dsplit = _splitter(0), _splitter(1), _splitter(2)


def broadcast_arrays(*arrays: ArrayLike) -> list[Value]:
    """All in the shape that they have together."""
    values = [as_value(one) for one in arrays]
    shape = broadcast_shape(*(one.shape for one in values))
    return [broadcast_to(one, shape) for one in values]


def rollaxis(x: ArrayLike, axis: int, start: int = 0) -> Value:
    """With a dimension in front of the one that is at `start`."""
    value = as_value(x)
    order = [*range(value.ndim)]
    at = normal_axis(axis, value.ndim)
    goal = start % (value.ndim + 1)
    order.remove(at)
    order.insert(goal - (at < goal), at)
    return transpose(value, order)


def matrix_transpose(x: ArrayLike) -> Value:
    """The last two dimensions exchanged."""
    return swapaxes(x, -1, -2)


# Triangles and diagonals.


def _places(shape: Sequence[int]) -> tuple[Value, Value]:
    if len(shape) < 2:
        raise bad_shape(f"a triangle of a value of shape {list(shape)}", "take a matrix")
    rank = len(shape)
    return broadcasted_iota(I32, shape, rank - 2), broadcasted_iota(I32, shape, rank - 1)


def _below(value: Value, k: int) -> Value:
    rows, columns = _places(value.shape)
    return rows + k >= columns


def tril(x: ArrayLike, k: int = 0) -> Value:
    """Zeros above a diagonal of matrices."""
    value = as_value(x)
    return where(_below(value, k), value, 0)


def triu(x: ArrayLike, k: int = 0) -> Value:
    """Zeros below a diagonal of matrices."""
    value = as_value(x)
    return where(_below(value, k - 1), 0, value)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = F32) -> Value:  # noqa: N803  (numpy's names)
    """Ones on a diagonal of an `N` by `M` matrix, zeros elsewhere."""
    rows, columns = _places((as_index(N), as_index(N if M is None else M)))
    return cast(equal(rows + k, columns), as_dtype(dtype))


def identity(n: int, dtype: DTypeLike = F32) -> Value:
    """Ones on the diagonal of a square matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = F32) -> Value:  # noqa: N803  (numpy's names)
    """Ones on and below a diagonal of an `N` by `M` matrix, zeros above."""
    rows, columns = _places((as_index(N), as_index(N if M is None else M)))
    return cast(rows + k >= columns, as_dtype(dtype))


def trace(x: ArrayLike, offset: int = 0) -> Value:
    """The sum of a diagonal of matrices."""
    value = as_value(x)
    if value.ndim != 2:
        raise bad_shape(f"the trace of a value of shape {list(value.shape)}", "take a matrix")
    rows, columns = _places(value.shape)
    return sum_(where(equal(rows + offset, columns), value, 0))


def indices(dimensions: Sequence[int], dtype: DTypeLike = I32) -> list[Value]:
    """The index along each dimension, for every element of a shape."""
    shape = tuple(dimensions)
    return [cast(broadcasted_iota(I32, shape, dim), as_dtype(dtype)) for dim in range(len(shape))]


# Products.


def outer(x: ArrayLike, y: ArrayLike) -> Value:
    """Every element of one times every element of the other."""
    one, other = as_value(x), as_value(y)
    return reshape(one, (-1, 1)) * reshape(other, (1, -1))


def kron(x: ArrayLike, y: ArrayLike) -> Value:
    """Every element of one matrix times the other matrix, in the place of the element."""
    one, other = _at_least(2, x), _at_least(2, y)
    (m, n), (p, q) = one.shape, other.shape
    made = reshape(one, (m, 1, n, 1)) * reshape(other, (1, p, 1, q))
    return reshape(made, (m * p, n * q))


def inner(x: ArrayLike, y: ArrayLike, **options: Any) -> Value:
    """The sum of products along the last dimension of both."""
    return tensordot(x, y, ((-1,), (-1,)), **options)


def tensordot(x: ArrayLike, y: ArrayLike, axes: Any = 2, **options: Any) -> Value:
    """The sum of products along pairs of dimensions: the last `axes` of one and first of the other, or two
    lists of them. Options are those of `lax.dot_general`.
    """
    one, other = as_value(x), as_value(y)
    if isinstance(axes, int):
        axes = (range(one.ndim - axes, one.ndim), range(axes))
    listed: Any = [[side] if isinstance(side, int) else [*side] for side in axes]
    pair = [
        tuple(normal_axis(dim, value.ndim) for dim in dims)
        for value, dims in zip((one, other), listed, strict=True)
    ]
    return dot_general(one, other, (tuple(pair), ((), ())), **options)


def vecdot(x1: ArrayLike, x2: ArrayLike, *, axis: int = -1) -> Value:
    """The sum of products along one dimension."""
    return sum_(as_value(x1) * x2, axis)


def vdot(a: ArrayLike, b: ArrayLike) -> Value:
    """The sum of all products."""
    return sum_(as_value(a) * b)


def matvec(x1: ArrayLike, x2: ArrayLike) -> Value:
    """Matrices times vectors."""
    return sum_(as_value(x1) * expand_dims(x2, -2), -1)


def vecmat(x1: ArrayLike, x2: ArrayLike) -> Value:
    """Vectors times matrices."""
    return sum_(expand_dims(x1, -1) * as_value(x2), -2)


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: float = 1.0, axis: int = -1) -> Value:
    """The area under samples `y` along a dimension, at places `x` or `dx` apart."""
    value = as_value(y)
    value = value if kind_of(value.dtype) == "f" else cast(value, F32)
    (dim,) = normal_axes(axis, value.ndim)
    size, before = value.shape[dim], (slice(None),) * dim
    last, first = (*before, slice(1, size)), (*before, slice(0, size - 1))
    width: Any = dx
    if x is not None:
        places = broadcast_to(as_value(x), value.shape)
        width = places[last] - places[first]
    return sum_((value[last] + value[first]) * 0.5 * width, dim)


_NUMPYS: dict[Any, Callable[..., Any]] = {
    np.atleast_1d: atleast_1d,
    np.atleast_2d: atleast_2d,
    np.atleast_3d: atleast_3d,
    np.vstack: vstack,
    np.hstack: hstack,
    np.dstack: dstack,
    np.column_stack: column_stack,
    np.block: block,
    np.array_split: array_split,
    np.broadcast_arrays: broadcast_arrays,
    np.rollaxis: rollaxis,
    np.tril: tril,
    np.triu: triu,
    np.trace: trace,
    np.outer: outer,
    np.kron: kron,
    np.inner: inner,
    np.tensordot: tensordot,
    np.vdot: vdot,
    np.trapezoid: trapezoid,
}
ON_NUMPY.update(_NUMPYS)
