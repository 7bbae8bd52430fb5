"""Special functions of real numbers, in f32 or f64 (narrower types go through f32)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirhlo.rewrites.chlo_expansion import tables as t
from mlirhlo.rewrites.chlo_expansion.emitter import Operand, Value, chebyshev, polynomial


def _is_f64(x: Value) -> bool:
    return x.element_type.bits == 64


# ---------------------------------------------------------------- gamma

_LOG_BASE = math.log(t.LANCZOS_G + 0.5)


def _lanczos_point(x: Value) -> tuple[Value, Value]:
    """Whether the reflection is used (x < 1/2), and z: -x then, else x - 1."""
    reflected = x.compare("LT", 0.5)
    return reflected, reflected.select(-x, x - 1.0)


def lgamma(x: Value) -> Value:
    """Log |gamma(x)| by Lanczos' approximation, reflected below 1/2."""
    reflected, z = _lanczos_point(x)
    series: Operand = t.LANCZOS_BASE
    for index, coefficient in enumerate(t.LANCZOS, 1):
        series = (
            coefficient / (z + float(index)) + series
            if index == 1
            else (series + coefficient / (z + float(index)))
        )
    assert isinstance(series, Value)
    base = z + (t.LANCZOS_G + 0.5)
    log_base = (z / (t.LANCZOS_G + 0.5)).log_plus_one() + _LOG_BASE
    plain = ((z + 0.5) - base / log_base) * log_base + math.log(math.sqrt(2 * math.pi))
    plain = plain + series.log()
    size = x.abs()
    fraction = size - size.floor()
    # sin(pi f) = sin(pi (1 - f)): the smaller of both is the more exact one.
    nearer = x.emitter.like(0.5, x).compare("LT", fraction).select(1.0 - fraction, fraction)
    log_sine = (nearer * math.pi).sine().log()
    mirrored = log_sine.is_finite().select(math.log(math.pi) - log_sine - plain, -log_sine)
    result = reflected.select(mirrored, plain)
    return x.abs().compare("EQ", math.inf).select(math.inf, result)


def digamma(x: Value) -> Value:
    """The derivative of lgamma; NaN at 0 and negative integers."""
    reflected, z = _lanczos_point(x)
    numerator: Value | None = None
    series: Operand = t.LANCZOS_BASE
    for index, coefficient in enumerate(t.LANCZOS, 1):
        step = z + float(index)
        term = coefficient / (step * step)
        numerator = 0.0 - term if numerator is None else numerator - term
        series = coefficient / step + series if index == 1 else series + coefficient / step
    assert numerator is not None
    log_base = (z / (t.LANCZOS_G + 0.5)).log_plus_one() + _LOG_BASE
    base = z + (t.LANCZOS_G + 0.5)
    plain = log_base + numerator / series - t.LANCZOS_G / base
    # cot has the period pi: subtracting whole turns keeps its argument exact.
    turned = (x + (x + 0.5).floor().abs()) * math.pi
    mirrored = plain - turned.cosine() * math.pi / turned.sine()
    result = reflected.select(mirrored, plain)
    pole = x.compare("LE", 0.0) & x.compare("EQ", x.floor())
    return pole.select(math.nan, result)


def zeta(x: Value, q: Value) -> Value:
    """Hurwitz' zeta function, sum of (q + n)**-x, by Euler and Maclaurin after ten terms."""
    minus = -x
    power = q**minus
    total, a = power, q
    for _ in range(9):
        a = a + 1.0
        power = a**minus
        total = total + power
    a = a + 1.0
    power = a**minus
    s = total + power * a / (x - 1.0)
    inverse = 1.0 / (a * a)
    high = (x + 22.0) * (x + 21.0) * (inverse * t.ZETA[0])
    for index, coefficient in enumerate(t.ZETA[1:]):
        factor = (x + float(20 - 2 * index)) * (x + float(19 - 2 * index))
        high = factor * (inverse * (high + coefficient))
    # The last factor is of another form: x / a instead of two factors over a squared.
    s = s + power * ((x / a) * (high + t.ZETA_LAST) + 0.5)
    tiny = 4.94065645841247e-324 if _is_f64(x) else 1.401298464324817e-45
    done = power.abs().compare("LT", total.abs() * tiny).select(total, s)
    result = x.compare("LT", 1.0).select(math.nan, done)
    negative = q.compare("LE", 0.0)
    result = (negative & x.compare("NE", x.floor())).select(math.nan, result)
    even = x.compare("EQ", x.floor()) & (x % 2.0).compare("EQ", 0.0)
    nan = x.emitter.like(math.nan, x)
    poles = even.select(math.inf, nan)
    result = (negative & q.compare("EQ", q.floor())).select(poles, result)
    return x.compare("EQ", 1.0).select(math.inf, result)


def polygamma(n: Value, x: Value) -> Value:
    """The n-th derivative of digamma; NaN where n is no natural number."""
    sign = (n % 2.0) * 2.0 - 1.0
    following = n + 1.0
    value = sign * lgamma(following).exponential() * zeta(following, x)
    value = n.compare("EQ", 0.0).select(digamma(x), value)
    bad = n.compare("NE", n.floor()) | n.compare("LT", 0.0)
    return bad.select(math.nan, value)


# ---------------------------------------------------------------- error function


def erf(x: Value) -> Value:
    """1 - erfc(x) far out, a polynomial near 0."""
    return x.abs().compare("LT", 1.0).select(_erf_near(x), 1.0 - _erfc_far(x))


def _erf_near(x: Value) -> Value:
    square = x * x
    if not _is_f64(x):
        return x * polynomial(square, t.ERF_32)
    return x * polynomial(square, t.ERF_64_TOP) / _monic(square, t.ERF_64_BOTTOM)


def _monic(x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's rule for a polynomial whose first coefficient is 1."""
    result = x + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


def _erfc_far(x: Value) -> Value:
    size = x.abs()
    exponent = -(x * x)
    if _is_f64(x):
        z = exponent.exponential()
        near = z * polynomial(size, t.ERFC_64_NEAR_TOP) / _monic(size, t.ERFC_64_NEAR_BOTTOM)
        far = z * polynomial(size, t.ERFC_64_FAR_TOP) / _monic(size, t.ERFC_64_FAR_BOTTOM)
        y = size.compare("LT", 8.0).select(near, far)
        y = exponent.compare("LT", -t.LOG_MAX_64).select(0.0, y)
    else:
        q = 1.0 / size
        inverse = 1.0 / (x * x)
        near = polynomial(inverse, t.ERFC_32_NEAR)
        far = polynomial(inverse, t.ERFC_32_FAR)
        p = size.compare("LT", 2.0).select(near, far)
        y = exponent.exponential() * q * p
        y = exponent.compare("LT", -t.LOG_MAX_32).select(0.0, y)
    return x.compare("LT", 0.0).select(2.0 - y, y)


def erfc(x: Value) -> Value:
    """1 - erf(x), exact where erf is near 1."""
    return x.abs().compare("LT", 1.0).select(1.0 - _erf_near(x), _erfc_far(x))


def erf_inv(x: Value) -> Value:
    """The inverse of erf, by polynomials in w = -log(1 - x²)."""
    w = -(x * -x).log_plus_one()
    value = _erf_inv_64(w) if _is_f64(x) else _erf_inv_32(w)
    return x.abs().compare("EQ", 1.0).select(x * math.inf, value * x)


def _erf_inv_32(w: Value) -> Value:
    near = w.compare("LT", 5.0)
    z = near.select(w - 2.5, w.sqrt() - 3.0)
    pairs = zip(t.ERF_INV_32_NEAR, t.ERF_INV_32_FAR, strict=True)
    result: Value | None = None
    for a, b in pairs:
        coefficient = near.select(w.emitter.like(a, w), b)
        result = coefficient if result is None else coefficient + result * z
    assert result is not None
    return result


def _erf_inv_64(w: Value) -> Value:
    near, middle = w.compare("LT", 6.25), w.compare("LT", 16.0)
    like = w.emitter.like
    root = w.sqrt() - middle.select(like(3.25, w), 5.0)
    z = near.select(w - 3.125, root)
    result: Value | None = None
    for index, a in enumerate(t.ERF_INV_64_NEAR):
        if index >= len(t.ERF_INV_64_MIDDLE):
            assert result is not None
            result = near.select(result * z + a, result)
            continue
        coefficient = near.select(like(a, w), t.ERF_INV_64_MIDDLE[index])
        if index < len(t.ERF_INV_64_FAR):
            coefficient = middle.select(coefficient, t.ERF_INV_64_FAR[index])
            result = coefficient if result is None else coefficient + result * z
        else:
            assert result is not None
            result = middle.select(coefficient + result * z, result)
    assert result is not None
    return result


# ---------------------------------------------------------------- Bessel


def bessel_i1e(x: Value) -> Value:
    """Exp(-|x|) I1(x), the modified Bessel function of the first kind and order 1."""
    near, far = t.BESSEL_NEAR, t.BESSEL_FAR
    if not _is_f64(x):
        near, far = near[-17:], far[-7:]
    size = x.abs()
    small = size * chebyshev(size * 0.5 - 2.0, near)
    large = chebyshev(32.0 / size - 2.0, far) / size.sqrt()
    return x.sign() * size.compare("LE", 8.0).select(small, large)
