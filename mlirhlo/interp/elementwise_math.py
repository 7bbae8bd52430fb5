"""Real functions that numpy lacks, on f32 or f64 arrays."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

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


def _near(x: Array) -> Array:
    """erf of |x| <= 1.25 by 2/sqrt(pi) x e**(-x*x) (1 + 2xx/3 (1 + 2xx/5 (1 + …))).

    All terms are positive, so nothing cancels.
    """
    square = x * x
    result = np.ones_like(x)
    for term in range(_NEAR_TERMS, 0, -1):
        result = 1.0 + 2.0 * square / (2 * term + 1) * result
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


def erf(x: Array) -> Array:
    """The error function, within 4 units of the last place in f64.

    Small arguments take a series; beyond, 1 - erfc with a Chebyshev series that interpolates the C
    library's scalar `erfc` once.
    """
    dtype = x.dtype
    wide = x.astype(np.float64, copy=False)
    size = np.abs(wide)
    near = size <= 1.25
    result = _near(np.where(near, wide, 0.0))
    if not np.all(near):
        clipped = np.clip(np.where(near | np.isnan(size), 1.25, size), 1.0, 6.5)
        u = (1.0 / clipped - _LOW) / (_HIGH - _LOW) * 2.0 - 1.0
        tail = np.exp(-clipped * clipped) / clipped * chebyshev.chebval(u, _far())
        far = np.copysign(1.0 - tail, wide)
        result = np.where(near, result, np.where(np.isnan(wide), wide, far))
    return np.asarray(result).astype(dtype, copy=False)
