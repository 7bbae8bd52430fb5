"""Sums and extremes over dimensions, and running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirhlo.mosaic.language.elements import (
    BOOL,
    F32,
    I32,
    DType,
    DTypeLike,
    as_dtype,
    bits_of,
    kind_of,
)
from mlirhlo.mosaic.language.faults import bad_spec, bad_type
from mlirhlo.mosaic.language.functions.arithmetic import (
    add,
    broadcast_to,
    cast,
    cast_bool,
    from_bool,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
)
from mlirhlo.mosaic.language.functions.arithmetic import where as select
from mlirhlo.mosaic.language.functions.shapes import (
    element,
    expand_dims,
    iota,
    normal_axes,
    normal_axis,
    reshape,
    roll,
)
from mlirhlo.mosaic.language.trace import attribute, emit_one, int_attr, ints, vector_type
from mlirhlo.mosaic.language.value import ON_NUMPY, ArrayLike, Value, as_value, constant

_KINDS = {
    ("sum", "f"): "add",
    ("sum", "i"): "add",
    ("sum", "u"): "add",
    ("max", "f"): "maximumf",
    ("max", "i"): "maxsi",
    ("max", "u"): "maxui",
    ("min", "f"): "minimumf",
    ("min", "i"): "minsi",
    ("min", "u"): "minui",
}


def neutral(name: str, dtype: DType) -> Any:
    """What changes no result: 0, or the least or greatest number."""
    if name == "sum":
        return 0
    sign = -1 if name == "max" else 1
    if kind_of(dtype) == "f":
        return sign * float("inf")
    bits, is_signed = bits_of(dtype), kind_of(dtype) == "i"
    if sign < 0:
        return -(1 << (bits - 1)) if is_signed else 0
    return (1 << (bits - 1)) - 1 if is_signed else (1 << bits) - 1


def _reduce(name: str, value: Value, axis: Any, keepdims: bool) -> Value:
    axes = normal_axes(axis, value.ndim)
    if not axes:
        return value
    kept = tuple(1 if dim in axes else n for dim, n in enumerate(value.shape))
    shape = kept if keepdims else tuple(n for d, n in enumerate(value.shape) if d not in axes)
    if len(axes) == value.ndim:
        # A scalar comes out of a vector with a dimension more: the compiler reduces to vectors.
        lead = reshape(value, (1, *value.shape))
        row = _multi(name, lead, tuple(range(1, lead.ndim)))
        scalar = element(reshape(row, (1,) * lead.ndim), (0,) * lead.ndim)
        return broadcast_to(scalar, shape)
    return reshape(_multi(name, value, axes), shape)


def _multi(name: str, value: Value, axes: tuple[int, ...]) -> Value:
    kind = _KINDS.get((name, kind_of(value.dtype)))
    if kind is None:
        raise bad_type(f"{name} over elements of {value.dtype.name}")
    shape = tuple(n for dim, n in enumerate(value.shape) if dim not in axes)
    start = constant(neutral(name, value.dtype), value.dtype, shape)
    ssa = emit_one(
        "vector.multi_reduction",
        [value.ssa, start.ssa],
        vector_type(shape, value.dtype),
        {"kind": attribute(f"#vector.kind<{kind}>"), "reduction_dims": ints(axes)},
    )
    return Value(ssa, shape, value.dtype)


_JOINS = {"sum": add, "max": maximum, "min": minimum}
"""By reduction, what joins two of its results."""


def _over(
    name: str, value: Value, axis: Any, keepdims: bool, initial: ArrayLike | None, where_: Any
) -> Value:
    """A reduction of the elements where `where_` holds, joined with `initial`."""
    if where_ is not None:
        if name != "sum" and initial is None:
            raise bad_spec(
                f"{name} of the elements where a mask holds has no result for none of them",
                "give it initial=…",
            )
        value = select(where_, value, neutral(name, value.dtype))
    found = _reduce(name, value, axis, keepdims)
    return found if initial is None else _JOINS[name](found, initial)


def sum_(
    x: ArrayLike,
    axis: Any = None,
    dtype: DTypeLike = None,
    *,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    """The sum over dimensions, over all if none is said; of the elements as `dtype`, if it is given.

    `where`: booleans, of which elements; `initial`: what is added to the sum.
    """
    value = as_value(x) if dtype is None else cast(as_value(x), as_dtype(dtype))
    return _over("sum", _counted(value), axis, keepdims, initial, where)


def max_(
    x: ArrayLike,
    axis: Any = None,
    *,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    """The greatest element over dimensions, and of `initial`; with `where`, of the elements where it holds.

    Raises `HloError` HLO0726 for `where` without `initial`.
    """
    return _over("max", _counted(as_value(x)), axis, keepdims, initial, where)


def min_(
    x: ArrayLike,
    axis: Any = None,
    *,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    """The least element over dimensions, as `max_`."""
    return _over("min", _counted(as_value(x)), axis, keepdims, initial, where)


def mean(
    x: ArrayLike,
    axis: Any = None,
    dtype: DTypeLike = None,
    *,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Value:
    """The mean over dimensions, of the elements as `dtype`; with `where`, of those where it holds."""
    value = as_value(x) if dtype is None else cast(as_value(x), as_dtype(dtype))
    if kind_of(value.dtype) != "f":
        value = cast(value, F32)
    total = sum_(value, axis, keepdims=keepdims, where=where)
    if where is not None:
        chosen = broadcast_to(from_bool(_truth(where), I32), value.shape)
        return total / cast(sum_(chosen, axis, keepdims=keepdims), value.dtype)
    count = 1
    for dim in normal_axes(axis, value.ndim):
        count *= value.shape[dim]
    return total * (1.0 / count)


def any_(
    x: ArrayLike, axis: Any = None, *, keepdims: bool = False, where: ArrayLike | None = None
) -> Value:
    """Whether any element is true, of those where `where` holds."""
    value = _truth(x) if where is None else logical_and(_truth(x), where)
    return cast_bool(max_(from_bool(value, I32), axis, keepdims=keepdims))


def all_(
    x: ArrayLike, axis: Any = None, *, keepdims: bool = False, where: ArrayLike | None = None
) -> Value:
    """Whether all elements are true, of those where `where` holds."""
    value = _truth(x) if where is None else logical_or(_truth(x), logical_not(where))
    return cast_bool(min_(from_bool(value, I32), axis, keepdims=keepdims))


def _counted(value: Value) -> Value:
    """Booleans as 0 and 1."""
    return from_bool(value, I32) if value.dtype == BOOL else value


def _truth(x: ArrayLike) -> Value:
    value = as_value(x)
    return value if value.dtype == BOOL else cast_bool(value)


def argmax(x: ArrayLike, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """The first place of the greatest element of f32 vectors along a dimension, as i32; among all elements in
    a line for None.
    """
    return _place("arg_max", x, axis, keepdims)


def argmin(x: ArrayLike, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """The first place of the least element, as `argmax`."""
    return _place("arg_min", x, axis, keepdims)


def _place(kind: str, x: ArrayLike, axis: int | None, keepdims: bool) -> Value:
    value = as_value(x)
    if axis is None:
        found = _place(kind, reshape(value, (-1,)), 0, False)
        return broadcast_to(found, (1,) * value.ndim) if keepdims else found
    if value.dtype != F32:
        value = cast(value, F32)
    dim = normal_axis(axis, value.ndim)
    shape = value.shape[:dim] + value.shape[dim + 1 :]
    if not shape:
        return element(_place(kind, reshape(value, (1, *value.shape)), 1, True), (0, 0))
    ssa = emit_one(
        "tpu.reduce_index",
        [value.ssa],
        vector_type(shape, I32),
        {"axis": int_attr(dim), "kind": attribute(f"#tpu.reduction_kind<{kind}>")},
    )
    found = Value(ssa, shape, I32)
    return expand_dims(found, dim) if keepdims else found


def cumsum(
    x: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, *, reverse: bool = False
) -> Value:
    """The sum up to each element along a dimension, or from each one to the end, by doubling steps; of all
    elements in a line for None.
    """
    value = _counted(as_value(x)) if dtype is None else cast(as_value(x), as_dtype(dtype))
    if axis is None:
        line = reshape(value, (1, -1))
        return reshape(cumsum(line, 1, reverse=reverse), (-1,))
    dim = normal_axis(axis, value.ndim)
    if value.ndim == 1:
        return reshape(cumsum(reshape(value, (1, -1)), 1, reverse=reverse), value.shape)
    size, places = value.shape[dim], iota(I32, value.shape, dim)
    step = 1
    while step < size:
        there = places < size - step if reverse else places >= step
        value = value + select(there, roll(value, size - step if reverse else step, dim), 0)
        step *= 2
    return value


ON_NUMPY.update(
    {
        np.sum: sum_,
        np.max: max_,
        np.min: min_,
        np.mean: mean,
        np.any: any_,
        np.all: all_,
        np.argmax: argmax,
        np.argmin: argmin,
        np.cumsum: cumsum,
    }
)
