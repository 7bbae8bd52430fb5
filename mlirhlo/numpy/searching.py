"""Searching, sorting and sets.

Source: Python array API standard 2024.12. Functions whose result's shape depends on values
(`nonzero`, `unique_*`) run outside of `jit` only.
"""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array, axis_of
from mlirhlo.numpy.creation import zeros
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.eager import kernel
from mlirhlo.numpy.elementwise import is_nan
from mlirhlo.numpy.errors import HloTypeError, HloValueError, problem
from mlirhlo.numpy.indexing import take
from mlirhlo.numpy.manipulation import data_dependent, reshape
from mlirhlo.numpy.operands import (
    as_array,
    broadcast_shapes,
    checked,
    common_dtype,
    operand,
    weak_of,
    with_weak,
)
from mlirhlo.numpy.statistical import kept


@kernel
def _arg_extreme(x: Array, *, axis: int, keepdims: bool, opcode: str) -> Array:
    extreme = ops.reduce(opcode, x, (axis,))
    others = tuple(d for d in range(x.ndim) if d != axis)
    found = ops.compare("EQ", x, ops.broadcast(extreme, x.shape, others))
    if dt.kind_of(x.dtype) == "f":
        found = ops.binary("or", found, is_nan(x))
    places = ops.iota(dt.int64, x.shape, axis)
    first = ops.reduce(
        "minimum", ops.select(found, places, ops.like(x.shape[axis], places)), (axis,)
    )
    return kept(first, (axis,), keepdims, x.shape)


def _place_of_extreme(x: Any, axis: int | None, keepdims: bool, name: str, opcode: str) -> Array:
    array = as_array(x, name)
    checked(name, "real", array.dtype)
    rank = array.ndim
    if axis is None:
        array, place = reshape(array, (-1,)), 0
    else:
        place = axis_of(axis, rank, name)
    if array.shape[place] == 0:
        raise problem(
            HloValueError, "HLO0626", f"{name}: nothing to choose from in {array.describe()}"
        )
    found = _arg_extreme(array, axis=place, keepdims=keepdims and axis is not None, opcode=opcode)
    return reshape(found, (1,) * rank) if keepdims and axis is None else found


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the greatest element is, the first of equals; NaN wins."""
    return _place_of_extreme(x, axis, keepdims, "argmax", "maximum")


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the least element is, the first of equals; NaN wins."""
    return _place_of_extreme(x, axis, keepdims, "argmin", "minimum")


def _values_of(array: Array, what: str, help: str) -> np.ndarray[Any, Any]:
    if array.data is None:
        raise data_dependent(what, help)
    return array.known(what, help)


def nonzero(x: Any, /) -> tuple[Array, ...]:
    """The indices of the elements that are not 0. Raises HLO0621 inside of `jit`."""
    array = as_array(x, "nonzero")
    if array.ndim == 0:
        raise problem(HloValueError, "HLO0626", "nonzero: an array of rank 0 has no indices")
    data = _values_of(array, "nonzero", "use where(condition, x, y), or count_nonzero")
    return tuple(Array.concrete(part) for part in np.nonzero(data))


@kernel
def _where(condition: Array, a: Array, b: Array, *, dtype: DType, shape: tuple[int, ...]) -> Array:
    first, second = (ops.broadcast_to(ops.convert(x, dtype), shape) for x in (a, b))
    return ops.select(ops.broadcast_to(condition, shape), first, second)


def where(condition: Any, x1: Any, x2: Any, /) -> Array:
    """x1 where the condition holds, else x2."""
    test = as_array(condition, "where")
    if test.dtype != dt.bool:
        raise problem(
            HloTypeError,
            "HLO0625",
            f"where: the condition is a boolean array, not {test.describe()}",
            help="write the comparison: where(x != 0, …)",
        )
    x1, x2 = operand(x1, "where"), operand(x2, "where")
    dtype = common_dtype("where", "any", (x1, x2))
    a, b = as_array(x1, "where", dtype), as_array(x2, "where", dtype)
    shape = broadcast_shapes("where", test.shape, a.shape, b.shape)
    return with_weak(_where(test, a, b, dtype=dtype, shape=shape), weak_of((x1, x2)))


@kernel
def _searchsorted(x: Array, values: Array, *, dtype: DType, right: bool) -> Array:
    ordered, wanted = ops.convert(x, dtype), ops.convert(values, dtype)
    shape, size = values.shape, x.shape[0]
    low, high = ops.splat(0, dt.int64, shape), ops.splat(size, dt.int64, shape)
    one = ops.like(1, low)
    for _ in range(size.bit_length()):
        is_open = ops.compare("LT", low, high)
        middle = ops.binary("shift-right-logical", ops.binary("add", low, high), one)
        index = ops.reshape(ops.binary("minimum", middle, ops.like(size - 1, middle)), (*shape, 1))
        item = ops.gather(ordered, index, (0,), 0)
        # NaN counts as the greatest value, as `sort` has it.
        if right:
            goes_up = ops.unary("not", _before(wanted, item))
        else:
            goes_up = _before(item, wanted)
        up, down = ops.binary("and", is_open, goes_up), ops.unary("not", goes_up)
        low, high = (
            ops.select(up, ops.binary("add", middle, one), low),
            ops.select(ops.binary("and", is_open, down), middle, high),
        )
    return low


def _before(a: Array, b: Array) -> Array:
    is_less = ops.compare("LT", a, b)
    if dt.kind_of(a.dtype) != "f":
        return is_less
    return ops.binary("or", is_less, ops.binary("and", is_nan(b), ops.unary("not", is_nan(a))))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Array:
    """Where each of x2 belongs in the sorted x1: before its equals, or after them (`right`)."""
    ordered, values = as_array(x1, "searchsorted"), as_array(x2, "searchsorted")
    if ordered.ndim != 1:
        raise problem(
            HloValueError, "HLO0626", f"searchsorted: {ordered.describe()} is no sorted list"
        )
    if side not in ("left", "right"):
        raise problem(
            HloValueError, "HLO0626", f"searchsorted: side is 'left' or 'right', not {side!r}"
        )
    if sorter is not None:
        ordered = take(ordered, sorter, axis=0)
    dtype = common_dtype("searchsorted", "real", (ordered, values))
    if ordered.size == 0:
        return zeros(values.shape, dtype=dt.int64)
    return _searchsorted(ordered, values, dtype=dtype, right=side == "right")


@kernel
def _isin(x: Array, ordered: Array, *, dtype: DType, invert: bool) -> Array:
    values, wanted = ops.convert(ordered, dtype), ops.convert(x, dtype)
    size = values.shape[0]
    shape = (*x.shape, size)
    pairs = ops.compare(
        "EQ",
        ops.broadcast(wanted, shape, tuple(range(x.ndim))),
        ops.broadcast(values, shape, (x.ndim,)),
    )
    found = ops.reduce("or", pairs, (x.ndim,))
    return ops.unary("not", found) if invert else found


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Whether each of x1 is among the elements of x2."""
    x1, x2 = operand(x1, "isin"), operand(x2, "isin")
    dtype = common_dtype("isin", "any", (x1, x2))
    a, b = as_array(x1, "isin", dtype), reshape(as_array(x2, "isin", dtype), (-1,))
    return _isin(a, b, dtype=dtype, invert=bool(invert))


# ------------------------------------------------------------------ sorting


@kernel
def _sort(x: Array, *, axis: int, descending: bool) -> Array:
    return ops.sort((x,), axis, descending=descending)[0]


@kernel
def _argsort(x: Array, *, axis: int, descending: bool) -> Array:
    places = ops.iota(dt.int64, x.shape, axis)
    return ops.sort((x, places), axis, descending=descending)[1]


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis; NaN counts as the greatest value."""
    array = as_array(x, "sort")
    if array.dtype != dt.bool:
        checked("sort", "real", array.dtype)
    return _sort(array, axis=axis_of(axis, array.ndim, "sort"), descending=bool(descending))


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The indices that sort along an axis; equals keep their order."""
    array = as_array(x, "argsort")
    if array.dtype != dt.bool:
        checked("argsort", "real", array.dtype)
    return _argsort(array, axis=axis_of(axis, array.ndim, "argsort"), descending=bool(descending))


# ------------------------------------------------------------------ sets


class UniqueAll(NamedTuple):
    """Result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def _unique(x: Any, what: str) -> list[Array]:
    array = as_array(x, what)
    data = _values_of(array, what, "sort(x) has a shape that is known")
    found: Any = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    values, indices, inverse, counts = found
    parts = (values, indices, inverse.reshape(data.shape), counts)
    # `ascontiguousarray` would make a scalar's indices one-dimensional.
    return [Array.concrete(np.asarray(part, order="C")) for part in parts]


def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements, where each is first, which each element is, how often each is there."""
    return UniqueAll(*_unique(x, "unique_all"))


def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct elements and how often each is there."""
    values, _, _, counts = _unique(x, "unique_counts")
    return UniqueCounts(values, counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct elements and which of them each element is."""
    values, _, inverse, _ = _unique(x, "unique_inverse")
    return UniqueInverse(values, inverse)


def unique_values(x: Any, /) -> Array:
    """The distinct elements."""
    return _unique(x, "unique_values")[0]
