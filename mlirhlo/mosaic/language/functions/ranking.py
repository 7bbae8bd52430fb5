"""The greatest elements along a dimension."""

from __future__ import annotations

from mlirhlo.mosaic.language.control import fori_loop
from mlirhlo.mosaic.language.elements import BOOL, I32
from mlirhlo.mosaic.language.faults import bad_shape, bad_type
from mlirhlo.mosaic.language.functions.arithmetic import (
    equal,
    greater,
    less,
    logical_and,
    logical_or,
    where,
)
from mlirhlo.mosaic.language.functions.reductions import max_, min_, neutral
from mlirhlo.mosaic.language.functions.shapes import full, iota, normal_axis
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Value]:
    """The k greatest elements along a dimension, falling, and their places as i32; of equal ones the first
    comes first. Each takes a walk through the elements; there is no NaN among them.

    Raises `HloError` HLO0721 for a k beyond the dimension, HLO0722 for booleans.
    """
    x = as_value(operand)
    if x.dtype == BOOL:
        raise bad_type("top_k of booleans", "cast them to int32")
    dim = normal_axis(axis, x.ndim)
    if not 1 <= k <= x.shape[dim]:
        raise bad_shape(f"the {k} greatest of {x.shape[dim]} elements")
    places = iota(I32, x.shape, dim)
    shape = (*x.shape[:dim], k, *x.shape[dim + 1 :])
    columns = iota(I32, shape, dim)
    one = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
    least, greatest = neutral("max", x.dtype), neutral("min", x.dtype)

    def step(number: Value, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        best, place, values, found = carried
        # What comes behind the last one in order; the elements themselves stay as they are.
        behind = logical_and(equal(x, best), greater(places, place))
        left = logical_or(less(x, best), behind)
        best = max_(where(left, x, least), dim, keepdims=True)
        is_best = logical_and(left, equal(x, best))
        place = min_(where(is_best, places, x.shape[dim]), dim, keepdims=True)
        chosen = equal(columns, number)
        return best, place, where(chosen, best, values), where(chosen, place, found)

    start = full(one, greatest, x.dtype), full(one, -1, I32)
    empty = full(shape, 0, x.dtype), full(shape, 0, I32)
    _, _, values, found = fori_loop(0, k, step, (*start, *empty))
    return [values, found]


__all__ = ["top_k"]
