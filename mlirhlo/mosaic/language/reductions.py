"""Sums and extremes over dimensions, and running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirhlo.mosaic.language.arithmetic import broadcast_to, cast_bool, from_bool, where
from mlirhlo.mosaic.language.casts import cast
from mlirhlo.mosaic.language.elements import (
    BOOL,
    F32,
    I32,
    DTypeLike,
    as_dtype,
    bits_of,
    kind_of,
)
from mlirhlo.mosaic.language.faults import bad_type
from mlirhlo.mosaic.language.shapes import (
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


def _neutral(name: str, value: Value) -> Any:
    """What changes no result: 0, or the least or greatest number."""
    if name == "sum":
        return 0
    sign = -1 if name == "max" else 1
    if kind_of(value.dtype) == "f":
        return sign * float("inf")
    bits, is_signed = bits_of(value.dtype), kind_of(value.dtype) == "i"
    if sign < 0:
        return -(1 << (bits - 1)) if is_signed else 0
    return (1 << (bits - 1)) - 1 if is_signed else (1 << bits) - 1


def _reduce(name: str, x: ArrayLike, axis: Any, keepdims: bool) -> Value:
    value = as_value(x)
    if value.dtype == BOOL:
        value = from_bool(value, I32)
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
    start = constant(_neutral(name, value), value.dtype, shape)
    ssa = emit_one(
        "vector.multi_reduction",
        [value.ssa, start.ssa],
        vector_type(shape, value.dtype),
        {"kind": attribute(f"#vector.kind<{kind}>"), "reduction_dims": ints(axes)},
    )
    return Value(ssa, shape, value.dtype)


def sum_(
    x: ArrayLike, axis: Any = None, dtype: DTypeLike = None, *, keepdims: bool = False
) -> Value:
    """The sum over dimensions, over all if none is said; of the elements as `dtype`, if it is given."""
    value = as_value(x) if dtype is None else cast(as_value(x), as_dtype(dtype))
    return _reduce("sum", value, axis, keepdims)


def max_(x: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The greatest element over dimensions."""
    return _reduce("max", x, axis, keepdims)


def min_(x: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The least element over dimensions."""
    return _reduce("min", x, axis, keepdims)


def mean(x: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The mean over dimensions."""
    value = as_value(x)
    count = 1
    for dim in normal_axes(axis, value.ndim):
        count *= value.shape[dim]
    if kind_of(value.dtype) != "f":
        value = cast(value, F32)
    return sum_(value, axis, keepdims=keepdims) * (1.0 / count)


def any_(x: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Value:
    """Whether any element is true."""
    return cast_bool(max_(from_bool(_truth(x), I32), axis, keepdims=keepdims))


def all_(x: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Value:
    """Whether all elements are true."""
    return cast_bool(min_(from_bool(_truth(x), I32), axis, keepdims=keepdims))


def _truth(x: ArrayLike) -> Value:
    value = as_value(x)
    return value if value.dtype == BOOL else cast_bool(value)


def argmax(x: ArrayLike, axis: int, *, keepdims: bool = False) -> Value:
    """The first place of the greatest element of f32 vectors along a dimension, as i32."""
    return _place("arg_max", x, axis, keepdims)


def argmin(x: ArrayLike, axis: int, *, keepdims: bool = False) -> Value:
    """The first place of the least element of f32 vectors along a dimension, as i32."""
    return _place("arg_min", x, axis, keepdims)


def _place(kind: str, x: ArrayLike, axis: int, keepdims: bool) -> Value:
    value = as_value(x)
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


def cumsum(x: ArrayLike, axis: int) -> Value:
    """The sum up to each element along a dimension, by doubling steps."""
    value = as_value(x)
    dim = normal_axis(axis, value.ndim)
    places = iota(I32, value.shape, dim)
    step = 1
    while step < value.shape[dim]:
        value = value + where(places >= step, roll(value, step, dim), 0)
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
