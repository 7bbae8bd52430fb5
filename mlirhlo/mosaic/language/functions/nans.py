"""Reductions that leave NaNs out, weighted means, and variances."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.elements import F32, I32, DTypeLike, as_dtype
from mlirhlo.mosaic.language.functions.arithmetic import (
    broadcast_to,
    cast,
    equal,
    not_equal,
    sqrt,
    square,
)
from mlirhlo.mosaic.language.functions.arithmetic import where as choose
from mlirhlo.mosaic.language.functions.reductions import (
    all_,
    argmax,
    argmin,
    max_,
    min_,
    sum_,
)
from mlirhlo.mosaic.language.functions.reductions import mean as mean_
from mlirhlo.mosaic.language.functions.shapes import normal_axes, reshape
from mlirhlo.mosaic.language.value import ON_NUMPY, ArrayLike, Value, as_value, is_float


def _floats(x: ArrayLike, dtype: DTypeLike = None) -> Value:
    value = as_value(x)
    if dtype is not None:
        return cast(value, as_dtype(dtype))
    return value if is_float(value) else cast(value, F32)


def var(
    x: ArrayLike,
    axis: Any = None,
    dtype: DTypeLike = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Value:
    """The mean of squared distances from the mean (or from `mean`); with `where`, of the elements where it
    holds. `ddof`, or `correction`, is taken off the number of elements.
    """
    value = _floats(x, dtype)
    middle = mean_(value, axis, keepdims=True, where=where) if mean is None else mean
    away = square(value - middle)
    less = ddof if correction is None else correction
    if where is None:
        found = mean_(away, axis, keepdims=keepdims)
        count = value.size // max(1, found.size)
        return found * (count / (count - less)) if less else found
    total = sum_(away, axis, keepdims=keepdims, where=where)
    return total / (_count(where, value, axis, keepdims) - less)


def _count(chosen: ArrayLike, value: Value, axis: Any, keepdims: bool) -> Value:
    """How many elements hold, as floats."""
    ones = broadcast_to(choose(chosen, as_value(1.0), 0.0), value.shape)
    return cast(sum_(ones, axis, keepdims=keepdims), value.dtype)


def std(x: ArrayLike, axis: Any = None, dtype: DTypeLike = None, **options: Any) -> Value:
    """The square root of `var`, with its options."""
    return sqrt(var(x, axis, dtype, **options))


def average(
    x: ArrayLike,
    axis: Any = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The mean over dimensions, with weights of the same shape, or of one dimension's; with `returned`, the
    sum of the weights too.
    """
    value = _floats(x)
    if weights is None:
        found = mean_(value, axis, keepdims=keepdims)
        return (found, value.size / max(1, found.size)) if returned else found
    scale = _floats(weights)
    if scale.shape != value.shape:
        dims = normal_axes(axis, value.ndim)
        scale = reshape(scale, [n if dim in dims else 1 for dim, n in enumerate(value.shape)])
        scale = broadcast_to(scale, value.shape)
    total = sum_(scale, axis, keepdims=keepdims)
    found = sum_(value * scale, axis, keepdims=keepdims) / total
    return (found, total) if returned else found


def _is_number(value: Value) -> Value:
    return equal(value, value)


def nansum(x: ArrayLike, axis: Any = None, dtype: DTypeLike = None, **options: Any) -> Value:
    """`sum` of what is no NaN."""
    value = as_value(x)
    return sum_(choose(_is_number(value), value, 0), axis, dtype, **options)


def _extreme(reduce: Callable[..., Value], limit: float) -> Callable[..., Value]:
    def function(x: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Value:
        value = as_value(x)
        if not is_float(value):
            return reduce(value, axis, keepdims=keepdims)
        known = _is_number(value)
        found = reduce(choose(known, value, limit), axis, keepdims=keepdims)
        lost = all_(not_equal(value, value), axis, keepdims=keepdims)
        return choose(lost, float("nan"), found)

    function.__doc__ = "The extreme of what is no NaN; NaN where nothing else is."
    return function


nanmax = _extreme(max_, float("-inf"))
nanmin = _extreme(min_, float("inf"))


def nanmean(x: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The mean of what is no NaN."""
    value = _floats(x)
    return mean_(value, axis, keepdims=keepdims, where=_is_number(value))


def nanvar(x: ArrayLike, axis: Any = None, **options: Any) -> Value:
    """`var` of what is no NaN."""
    value = _floats(x)
    return var(value, axis, where=_is_number(value), **options)


def nanstd(x: ArrayLike, axis: Any = None, **options: Any) -> Value:
    """The square root of `nanvar`."""
    return sqrt(nanvar(x, axis, **options))


def nanargmax(x: ArrayLike, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """The first place of the greatest element that is no NaN; -1 where there is none."""
    return _place(argmax, float("-inf"), x, axis, keepdims)


def nanargmin(x: ArrayLike, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """The first place of the least element that is no NaN; -1 where there is none."""
    return _place(argmin, float("inf"), x, axis, keepdims)


def _place(find: Any, limit: float, x: ArrayLike, axis: int | None, keepdims: bool) -> Value:
    value = _floats(x)
    found = find(choose(_is_number(value), value, limit), axis, keepdims=keepdims)
    lost = all_(not_equal(value, value), axis, keepdims=keepdims)
    return choose(lost, -1, cast(found, I32))


ON_NUMPY.update(
    {
        np.var: var,
        np.std: std,
        np.average: average,
        np.nansum: nansum,
        np.nanmax: nanmax,
        np.nanmin: nanmin,
        np.nanmean: nanmean,
        np.nanvar: nanvar,
        np.nanstd: nanstd,
        np.nanargmax: nanargmax,
        np.nanargmin: nanargmin,
    }
)
