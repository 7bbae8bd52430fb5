"""Complex functions, on c128 arrays (c64 operands are widened first)."""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from mlirhlo.interp.registry import Array

Complex: TypeAlias = np.ndarray[Any, np.dtype[np.complex128]]


def make(real: Array, imag: Array) -> Array:
    """Real + i*imag, exactly: no product touches infinities or the signs of zeros."""
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype=np.complex128)
    result.real = real
    result.imag = imag
    return result


def magnitude(x: Complex) -> Array:
    """|x| without overflow on the way, in double."""
    return np.hypot(x.real.astype(np.float64), x.imag.astype(np.float64))


def divide(x: Complex, y: Complex) -> Array:
    """X / y with scaling; zero divisors and infinities as in C99 Annex G."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    _, exponent = np.frexp(np.maximum(np.abs(c), np.abs(d)))
    scale = np.where(np.isfinite(c) & np.isfinite(d), -exponent, 0)
    c_, d_ = np.ldexp(c, scale), np.ldexp(d, scale)
    denominator = c_ * c_ + d_ * d_
    real = np.ldexp((a * c_ + b * d_) / denominator, scale)
    imag = np.ldexp((b * c_ - a * d_) / denominator, scale)
    lost = np.isnan(real) & np.isnan(imag)
    if np.any(lost):
        real, imag = _recover(a, b, c, d, denominator, real, imag, lost)
    return make(real, imag)


def _recover(
    a: Array,
    b: Array,
    c: Array,
    d: Array,
    denominator: Array,
    real: Array,
    imag: Array,
    lost: Array,
) -> tuple[Array, Array]:
    zero = lost & (denominator == 0) & ~(np.isnan(a) & np.isnan(b))
    infinity = np.copysign(np.inf, c)
    real = np.where(zero, infinity * a, real)
    imag = np.where(zero, infinity * b, imag)
    finite_y = np.isfinite(c) & np.isfinite(d)
    large = lost & ~zero & (np.isinf(a) | np.isinf(b)) & finite_y
    a_, b_ = (np.copysign(np.isinf(v).astype(np.float64), v) for v in (a, b))
    real = np.where(large, np.inf * (a_ * c + b_ * d), real)
    imag = np.where(large, np.inf * (b_ * c - a_ * d), imag)
    finite_x = np.isfinite(a) & np.isfinite(b)
    small = lost & ~zero & ~large & (np.isinf(c) | np.isinf(d)) & finite_x
    c_, d_ = (np.copysign(np.isinf(v).astype(np.float64), v) for v in (c, d))
    real = np.where(small, 0.0 * (a * c_ + b * d_), real)
    imag = np.where(small, 0.0 * (b * c_ - a * d_), imag)
    return real, imag


def sign(x: Complex) -> Array:
    """X / |x|; 0 stays 0, NaN in any part gives NaN."""
    size = magnitude(x)
    safe = np.where(size == 0, 1.0, size)
    return make(x.real / safe, x.imag / safe)


def exponential(x: Complex) -> Array:
    """e**x; a real argument stays real even when its part overflows, e**-inf is 0 at any angle."""
    nothing = np.isneginf(x.real) & ~np.isfinite(x.imag)
    return np.where(nothing, 0, np.exp(x))


def log(x: Complex) -> Array:
    """Log |x| + i * angle(x)."""
    return np.log(x)


def log1p(x: Complex) -> Array:
    """log(1 + x), accurate near 0."""
    real, imag = x.real.astype(np.longdouble), x.imag.astype(np.longdouble)
    near = 0.5 * np.log1p(real * (2 + real) + imag * imag)
    far = np.log(np.hypot(1 + real, imag))
    small = (np.abs(real) < 0.5) & (np.abs(imag) < 0.5)
    return make(np.where(small, near, far).astype(np.float64), np.arctan2(x.imag, 1.0 + x.real))


def expm1(x: Complex) -> Array:
    """e**x - 1, accurate near 0."""
    half = np.sin(x.imag / 2)
    real = np.expm1(x.real) * np.cos(x.imag) - 2 * half * half
    imag = np.exp(x.real) * np.sin(x.imag)
    return make(real, np.where(x.imag == 0, x.imag, imag))


def logistic(x: Complex) -> Array:
    """1 / (1 + e**-x)."""
    return divide(np.ones_like(x), 1 + np.exp(-x))


def rsqrt(x: Complex) -> Array:
    """1 / sqrt(x)."""
    return divide(np.ones_like(x), np.sqrt(x))


def cbrt(x: Complex) -> Array:
    """The principal cube root."""
    size, angle = np.cbrt(magnitude(x)), np.angle(x) / 3
    return make(size * np.cos(angle), size * np.sin(angle))


def _endless(x: Complex) -> Array:
    """Where the angle of a sine is none and its size infinite."""
    return ~np.isfinite(x.real) & np.isinf(x.imag)


def sine(x: Complex) -> Array:
    """Sin a cosh b + i cos a sinh b; of the signs that C99 leaves open, those without a minus."""
    return np.where(_endless(x), complex(np.nan, np.inf), np.sin(x))


def cosine(x: Complex) -> Array:
    """Cos a cosh b - i sin a sinh b; of the signs that C99 leaves open, those of a part that is zero."""
    result: Any = np.where(_endless(x), complex(np.inf, np.nan), np.cos(x))
    imag = np.where(~np.isfinite(x.real) & (x.imag == 0), 0.0, result.imag)
    return make(result.real, np.where((x.real == 0) & np.isnan(x.imag), x.real, imag))


def tanh(x: Complex) -> Array:
    """Sinh x / cosh x without overflow; NaN where the imaginary part is no number and the real one is."""
    lost = np.isfinite(x.real) & ~np.isfinite(x.imag)
    return np.where(lost, complex(np.nan, np.nan), np.tanh(x))


def tan(x: Complex) -> Array:
    """-i tanh(i x)."""
    result: Any = tanh(make(-x.imag, x.real))
    return make(result.imag, -result.real)


def asin(x: Complex) -> Array:
    """Arc sine; cuts on the real axis outside [-1, 1]."""
    return np.arcsin(x)


def acos(x: Complex) -> Array:
    """Arc cosine; cuts on the real axis outside [-1, 1]."""
    return np.arccos(x)


def atan(x: Complex) -> Array:
    """-i atanh(i x); cuts on the imaginary axis outside [-i, i]."""
    result: Any = np.arctanh(make(-x.imag, x.real))
    return make(result.imag, -result.real)


def asinh(x: Complex) -> Array:
    """Inverse hyperbolic sine."""
    return np.arcsinh(x)


def acosh(x: Complex) -> Array:
    """Inverse hyperbolic cosine; cut on the real axis below 1."""
    return np.arccosh(x)


def atanh(x: Complex) -> Array:
    """Inverse hyperbolic tangent; cuts on the real axis outside [-1, 1]."""
    return np.arctanh(x)


def atan2(y: Complex, x: Complex) -> Array:
    """-i * log((x + i*y) / sqrt(x*x + y*y))."""
    turned = make(x.real - y.imag, x.imag + y.real)
    result: Any = np.log(divide(turned, np.sqrt(x * x + y * y)))
    return make(result.imag, -result.real)


def power(x: Complex, y: Complex) -> Array:
    """e**(y * log x) in polar form; x**0 and 1**y are 1, 0**y and inf**-y are 0 and inf**y is inf for real y > 0."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    size, angle = np.log(magnitude(x)), np.arctan2(b, a)
    length = np.exp(c * size - d * angle)
    turn = d * size + c * angle
    result = make(length * np.cos(turn), length * np.sin(turn))
    real = (b == 0) & (d == 0)
    zero, infinite = real & (a == 0), real & np.isposinf(a)
    result = np.where((zero & (c > 0)) | (infinite & (c < 0)), 0, result)
    result = np.where(infinite & (c > 0), np.inf, result)
    return np.where((c == 0) & (d == 0) | (a == 1) & (b == 0), 1, result)


def maximum(x: Complex, y: Complex) -> Array:
    """The one with the greater real part, the first of equal ones (as XLA:CPU has it)."""
    return np.where(x.real >= y.real, x, y)


def minimum(x: Complex, y: Complex) -> Array:
    """The one with the lesser real part, the first of equal ones (as XLA:CPU has it)."""
    return np.where(x.real <= y.real, x, y)
