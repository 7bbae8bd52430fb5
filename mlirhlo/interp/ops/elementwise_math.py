"""Real functions that numpy lacks, on f32 or f64 arrays."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from mlirhlo.dialects.hlo.element_types import F64, PrimitiveType
from mlirhlo.interp.numerics import ArrayFunction
from mlirhlo.interp.registry import Array


def logistic(x: Array) -> Array:
    """1 / (1 + e**-x)."""
    one = x.dtype.type(1)
    return one / (one + np.exp(-x))


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x); of -0 -inf."""
    return x.dtype.type(1) / np.sqrt(x)


def round_away(x: Array) -> Array:
    """Nearest integer, halves away from zero, the sign of zero kept."""
    whole = np.trunc(x)
    # x - whole is exact, so adding 0.5 first (which rounds 0.49999997 up) is not needed.
    away = np.abs(x - whole) >= 0.5
    return np.where(away, whole + np.copysign(np.ones((), x.dtype), x), whole)


_FAR_DEGREE = 30
_NEAR_TERMS = 26
_SINGLE_FAR_DEGREE = 11
_SINGLE_NEAR_TERMS = 13
"""Enough for results that are rounded to f32."""
_PIECE = 1 << 15


def _near(x: Array, terms: int) -> Array:
    """erf of |x| <= 1.25 by 2/sqrt(pi) x e**(-x*x) (1 + 2xx/3 (1 + 2xx/5 (1 + …))).

    All terms are positive, so nothing cancels.
    """
    square = x * x
    result = np.ones_like(x)
    for term in range(terms, 0, -1):
        result *= square
        result *= 2.0 / (2 * term + 1)
        result += 1.0
    return 2.0 / math.sqrt(math.pi) * x * np.exp(-square) * result


@cache
def _far() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Chebyshev series of x * e**(x*x) * erfc(x) over the x in [1, 6], mapped by 1/x."""
    points = np.asarray(chebyshev.chebpts1(_FAR_DEGREE + 1), dtype=np.float64)
    x = 1.0 / _far_inverse(points)
    values = np.array([v * math.exp(v * v) * math.erfc(v) for v in x.tolist()])
    # Interpolating at Chebyshev points is a discrete orthogonal projection.
    basis = chebyshev.chebvander(points, _FAR_DEGREE)
    series = basis.T @ values * (2.0 / points.size)
    series[0] /= 2.0
    return np.asarray(series, dtype=np.float64)


_LOW, _HIGH = 1.0 / 6.5, 1.0


def _far_inverse(u: Array) -> Array:
    return _LOW + (_HIGH - _LOW) * (u + 1.0) / 2.0


def erf(x: Array, single: bool = False) -> Array:
    """The error function of f64, within 4 units of the last place; `single`: within 1e-9.

    Small arguments take a series; beyond, 1 - erfc with a Chebyshev series that interpolates the C
    library's scalar `erfc` once.
    """
    flat = x.reshape(-1)
    # In pieces that stay in the cache over the many steps of a series.
    pieces = [_erf(flat[at : at + _PIECE], single) for at in range(0, flat.size, _PIECE)]
    return np.concatenate([flat[:0], *pieces]).reshape(x.shape)


def _erf(flat: Array, single: bool) -> Array:
    size = np.abs(flat)
    near = size <= 1.25
    far = ~near & (size < 6.5)
    # What is neither is so large that the result is 1, or NaN.
    result = np.where(np.isnan(flat), flat, np.copysign(1.0, flat))
    result[near] = _near(flat[near], _SINGLE_NEAR_TERMS if single else _NEAR_TERMS)
    if np.any(far):
        large = size[far]
        u = (1.0 / large - _LOW) / (_HIGH - _LOW) * 2.0 - 1.0
        series = _far()[: _SINGLE_FAR_DEGREE + 1] if single else _far()
        tail = np.exp(-large * large) / large * chebyshev.chebval(u, series)
        result[far] = np.copysign(1.0 - tail, flat[far])
    return result


def erf_of(type_: PrimitiveType) -> ArrayFunction | None:
    """`erf` for an element type."""
    if not type_.is_float:
        return None
    if type_ is F64:
        return erf
    dtype = type_.dtype

    def rounded(x: Array) -> Array:
        return erf(x.astype(np.float32).astype(np.float64), single=True).astype(dtype)

    return rounded
