"""Random numbers of distributions, out of the core's generator of bits (`prng_seed`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlirhlo.mosaic.language.elements import F32, DTypeLike, as_dtype
from mlirhlo.mosaic.language.faults import bad_type
from mlirhlo.mosaic.language.functions.arithmetic import (
    abs_,
    bitcast_convert_type,
    cast,
    equal,
    less,
    log1p,
    maximum,
    negative,
    shift_right_logical,
    sign,
    sqrt,
    square,
    where,
)
from mlirhlo.mosaic.language.functions.extras import prng_random_bits
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value

_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def erf_inv(x: ArrayLike) -> Value:
    """The number whose `erf` is x, of f32; infinities for 1 and -1.

    Source: Giles, "Approximating the erfinv function"; XLA computes the same polynomials.
    """
    value = as_value(x)
    if value.dtype != F32:
        raise bad_type(f"erf_inv of {value.dtype.name}", "cast it to f32")
    w = negative(log1p(negative(square(value))))
    is_near = less(w, 5.0)
    v = where(is_near, w - 2.5, sqrt(maximum(w, 5.0)) - 3.0)
    result = where(is_near, _NEAR[0], _FAR[0])
    for near, far in zip(_NEAR[1:], _FAR[1:], strict=True):
        result = result * v + where(is_near, near, far)
    return where(equal(abs_(value), 1.0), sign(value) * np.float32(np.inf), result * value)


def stateful_bits(shape: Sequence[int] = (), dtype: DTypeLike = np.uint32) -> Value:
    """Random words of 32 bits, without sign or with one."""
    target = as_dtype(dtype)
    if target.itemsize != 4 or target.kind not in "iu":
        raise bad_type(f"random bits of {target.name}", "ask for uint32 or int32")
    return bitcast_convert_type(prng_random_bits(shape), target)


def stateful_uniform(
    shape: Sequence[int] = (),
    dtype: DTypeLike = F32,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
) -> Value:
    """Numbers of equal chance from `minval` up to, without, `maxval`."""
    mantissa = shift_right_logical(prng_random_bits(shape), 9) | 0x3F800000
    unit = bitcast_convert_type(mantissa, F32) - 1.0
    return cast(maximum(minval, unit * (as_value(maxval) - minval) + minval), as_dtype(dtype))


def stateful_bernoulli(p: ArrayLike = 0.5, shape: Sequence[int] = ()) -> Value:
    """True with the chance p."""
    return less(stateful_uniform(shape), p)


def stateful_normal(shape: Sequence[int] = (), dtype: DTypeLike = F32) -> Value:
    """Numbers of the normal distribution."""
    low = float(np.nextafter(np.float32(-1), np.float32(0)))
    return cast(erf_inv(stateful_uniform(shape, F32, low, 1.0)) * math.sqrt(2), as_dtype(dtype))


__all__ = [
    "erf_inv",
    "stateful_bernoulli",
    "stateful_bits",
    "stateful_normal",
    "stateful_uniform",
]
