"""Elementwise functions of `jax.numpy` and `jax.scipy.special` that are made of others."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index as as_index
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.elements import F32, I32, kind_of
from mlirhlo.mosaic.language.faults import bad_type
from mlirhlo.mosaic.language.functions.arithmetic import (
    abs_,
    binary,
    bitcast_convert_type,
    cast,
    equal,
    exp2,
    floor_divide,
    less,
    less_equal,
    log,
    log1p,
    logical_and,
    logical_or,
    maximum,
    minimum,
    not_equal,
    rem,
    remainder,
    round_,
    sin,
    true_divide,
    trunc,
    where,
)
from mlirhlo.mosaic.language.functions.derived import copysign
from mlirhlo.mosaic.language.functions.shapes import concatenate
from mlirhlo.mosaic.language.value import ON_NUMPY, ArrayLike, Value, as_value, is_float


def _floats(x: ArrayLike) -> Value:
    value = as_value(x)
    return value if is_float(value) else cast(value, F32)


def positive(x: ArrayLike) -> Value:
    """x."""
    return as_value(x)


def around(x: ArrayLike, decimals: int = 0) -> Value:
    """The nearest number of so many decimals, halves to even ones."""
    value = as_value(x)
    if not is_float(value) and decimals >= 0:
        return value
    scale = 10.0**decimals
    return round_(value) if decimals == 0 else round_(_floats(value) * scale) * (1 / scale)


def degrees(x: ArrayLike) -> Value:
    """Radians as degrees."""
    return _floats(x) * (180 / math.pi)


def radians(x: ArrayLike) -> Value:
    """Degrees as radians."""
    return _floats(x) * (math.pi / 180)


def divmod_(x: ArrayLike, y: ArrayLike) -> tuple[Value, Value]:
    """x // y and x % y."""
    return floor_divide(x, y), remainder(x, y)


def fmod(x: ArrayLike, y: ArrayLike) -> Value:
    """What a division towards zero leaves, with the sign of x."""
    return rem(x, y)


def modf(x: ArrayLike) -> tuple[Value, Value]:
    """The part behind the point and the whole one, both with the sign of x."""
    value = _floats(x)
    whole = trunc(value)
    part = where(equal(abs_(value), math.inf), 0.0, value - whole)
    return copysign(part, value), whole


def fmax(x: ArrayLike, y: ArrayLike) -> Value:
    """The greater one; the other one where one is NaN."""
    one, other = as_value(x), as_value(y)
    return where(
        not_equal(one, one), other, where(not_equal(other, other), one, maximum(one, other))
    )


def fmin(x: ArrayLike, y: ArrayLike) -> Value:
    """The lesser one; the other one where one is NaN."""
    one, other = as_value(x), as_value(y)
    return where(
        not_equal(one, one), other, where(not_equal(other, other), one, minimum(one, other))
    )


def heaviside(x: ArrayLike, y: ArrayLike) -> Value:
    """0 below zero, 1 above, y at it."""
    value = _floats(x)
    step = where(less(value, 0.0), 0.0, where(equal(value, 0.0), y, 1.0))
    return where(not_equal(value, value), value, step)


def isclose(
    x: ArrayLike,
    y: ArrayLike,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Value:
    """Whether |x - y| <= atol + rtol * |y|; infinities are close to themselves."""
    one, other = _floats(x), _floats(y)
    near = less_equal(abs_(one - other), atol + rtol * abs_(other))
    finite = logical_and(less(abs_(one), math.inf), less(abs_(other), math.inf))
    found = logical_or(logical_and(finite, near), equal(one, other))
    if equal_nan:
        found = logical_or(found, logical_and(not_equal(one, one), not_equal(other, other)))
    return found


def allclose(x: ArrayLike, y: ArrayLike, **options: Any) -> Value:
    """Whether all elements are close; options as of `isclose`."""
    return isclose(x, y, **options).all()


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Value:
    """Whether two vectors have the same shape and elements."""
    one, other = as_value(a1), as_value(a2)
    if one.shape != other.shape:
        return as_value(False)
    same = equal(one, other)
    if equal_nan:
        same = logical_or(same, logical_and(not_equal(one, one), not_equal(other, other)))
    return same.all()


def float_power(x: ArrayLike, y: ArrayLike) -> Value:
    """x to the y, as floats."""
    return binary("power", _floats(x), y)


def isneginf(x: ArrayLike) -> Value:
    """Whether floats are the negative infinity."""
    return equal(x, -math.inf)


def isposinf(x: ArrayLike) -> Value:
    """Whether floats are the positive infinity."""
    return equal(x, math.inf)


def signbit(x: ArrayLike) -> Value:
    """Whether the sign is negative, also of zeros and NaNs."""
    value = as_value(x)
    if kind_of(value.dtype) == "f":
        value = bitcast_convert_type(cast(value, F32), I32)
    return less(value, 0)


def ldexp(x: ArrayLike, y: ArrayLike) -> Value:
    """x times 2 to the y, in two steps, so that neither overflows alone."""
    power = cast(as_value(y), I32)
    half = binary("right_shift", power, 1)
    return (_floats(x) * exp2(cast(half, F32))) * exp2(cast(power - half, F32))


def logaddexp2(x: ArrayLike, y: ArrayLike) -> Value:
    """log2(2 to the x + 2 to the y)."""
    one, other = _floats(x), _floats(y)
    away = one - other
    found = maximum(one, other) + log1p(exp2(-abs_(away))) * (1 / math.log(2))
    return where(not_equal(away, away), one + other, found)


def sinc(x: ArrayLike) -> Value:
    """sin(pi x) / (pi x), 1 at zero."""
    angle = _floats(x) * math.pi
    is_zero = equal(angle, 0.0)
    return where(is_zero, 1.0, true_divide(sin(angle), where(is_zero, 1.0, angle)))


def nextafter(x: ArrayLike, y: ArrayLike) -> Value:
    """The next f32 after x on the way to y."""
    one, other = as_value(x, F32), as_value(y, F32)
    if one.dtype != F32 or other.dtype != F32:
        raise bad_type(f"nextafter of {one.dtype.name} and {other.dtype.name}", "cast to float32")
    bits = bitcast_convert_type(one, I32)
    away = equal(less(one, other), less(0, bits))  # to larger bits
    moved = bits + where(away, 1, -1)
    least = where(less(other, 0.0), -(2**31) + 1, 1)
    moved = where(equal(one, 0.0), least, moved)
    moved = where(equal(one, other), bitcast_convert_type(other, I32), moved)
    found = bitcast_convert_type(moved, F32)
    lost = logical_or(not_equal(one, one), not_equal(other, other))
    return where(lost, math.nan, found)


def xlogy(x: ArrayLike, y: ArrayLike) -> Value:
    """x log(y), 0 where x is."""
    one = _floats(x)
    is_zero = equal(one, 0.0)
    return where(is_zero, 0.0, one * log(where(is_zero, 1.0, y)))


def xlog1py(x: ArrayLike, y: ArrayLike) -> Value:
    """x log(1 + y), 0 where x is."""
    one = _floats(x)
    is_zero = equal(one, 0.0)
    return where(is_zero, 0.0, one * log1p(where(is_zero, 0.0, y)))


def entr(x: ArrayLike) -> Value:
    """-x log(x), 0 at zero and the negative infinity below it."""
    value = _floats(x)
    return where(less(value, 0.0), -math.inf, -xlogy(value, value))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Value:
    """p log(p / q), 0 where p is, infinite where one is negative or only q is 0."""
    one, other = _floats(p), _floats(q)
    both = logical_and(less(0.0, one), less(0.0, other))
    found = one * log(where(both, one, 1.0)) - one * log(where(both, other, 1.0))
    nothing = logical_and(equal(one, 0.0), less_equal(0.0, other))
    return where(both, found, where(nothing, 0.0, math.inf))


def kl_div(p: ArrayLike, q: ArrayLike) -> Value:
    """`rel_entr` - p + q."""
    one, other = _floats(p), _floats(q)
    return rel_entr(one, other) - one + other


def logit(x: ArrayLike) -> Value:
    """log(x / (1 - x))"""
    value = _floats(x)
    return log(value) - log1p(-value)


def isin(x: ArrayLike, test_elements: ArrayLike) -> Value:
    """Whether each element is one of a vector, or of the numbers that Python has."""
    value = as_value(x)
    if isinstance(test_elements, Value):
        line = test_elements.reshape((1,) * value.ndim + (-1,))
        return equal(value.reshape((*value.shape, 1)), line).any(axis=-1)
    found: Any = False
    for one in np.asarray(test_elements).ravel().tolist():
        hit = equal(value, one)
        found = hit if found is False else logical_or(found, hit)
    return not_equal(value, value) if found is False else found


def diff(x: ArrayLike, n: int = 1, axis: int = -1) -> Value:
    """Each element less the one before along a dimension, `n` times."""
    value = as_value(x)
    dim = axis % value.ndim
    for _ in range(as_index(n)):
        size = value.shape[dim]
        before = (slice(None),) * dim
        value = value[(*before, slice(1, size))] - value[(*before, slice(0, size - 1))]
    return value


def append(x: ArrayLike, values: ArrayLike, axis: int | None = None) -> Value:
    """One after the other along a dimension; all elements in a line for None."""
    one, other = as_value(x), as_value(values)
    return (
        concatenate([one.ravel(), other.ravel()], 0)
        if axis is None
        else concatenate([one, other], axis)
    )


_NUMPYS: dict[Any, Callable[..., Any]] = {
    np.positive: positive,
    np.around: around,
    np.degrees: degrees,
    np.rad2deg: degrees,
    np.radians: radians,
    np.deg2rad: radians,
    np.divmod: divmod_,
    np.fmod: fmod,
    np.modf: modf,
    np.fmax: fmax,
    np.fmin: fmin,
    np.heaviside: heaviside,
    np.isclose: isclose,
    np.isneginf: isneginf,
    np.isposinf: isposinf,
    np.signbit: signbit,
    np.ldexp: ldexp,
    np.logaddexp2: logaddexp2,
    np.sinc: sinc,
    np.nextafter: nextafter,
    np.isin: isin,
    np.diff: diff,
    np.append: append,
}
ON_NUMPY.update(_NUMPYS)
