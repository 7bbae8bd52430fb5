"""Hyperbolic and inverse functions from HLO's basic ones.

XLA compiles no opcodes for them on the CPU, so they are written out, real ones so that nothing
cancels or overflows on the way, complex ones after W. Kahan, "Branch cuts for complex elementary
functions" (1987), which gets every branch cut and its sides right. Infinite and undefined parts
give what C99, annex G, and with it the standard, asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array

Rule = Callable[[Array], Array]


def _real(x: Array) -> Array:
    return ops.unary("real", x, dt.real_of(x.dtype))


def _imag(x: Array) -> Array:
    return ops.unary("imag", x, dt.real_of(x.dtype))


def _negated(x: Array) -> Array:
    return ops.unary("negate", x)


def _sum(a: Array, b: Array) -> Array:
    return ops.binary("add", a, b)


def _difference(a: Array, b: Array) -> Array:
    return ops.binary("subtract", a, b)


def _product(a: Array, b: Array) -> Array:
    return ops.binary("multiply", a, b)


def _scaled(x: Array, factor: float) -> Array:
    return _product(x, ops.like(factor, x))


def _root(x: Array) -> Array:
    return ops.unary("sqrt", x)


def _signed_as(size: Array, x: Array) -> Array:
    """A magnitude with the sign of `x`, zeros included."""
    bits = ops.unary("bitcast-convert", x, getattr(dt, f"int{x.dtype.itemsize * 8}"))
    return ops.select(ops.compare("LT", bits, ops.like(0, bits)), _negated(size), size)


def by_kind(real: Rule, complex_: Rule) -> Rule:
    """A rule for real and one for complex numbers."""
    return lambda x: complex_(x) if dt.kind_of(x.dtype) == "c" else real(x)


def by_type(real: Rule, complex_: Rule) -> Rule:
    """A rule for real and one for complex numbers; narrow floats work in float32."""

    def widened(x: Array) -> Array:
        if x.dtype in (dt.float16, dt.bfloat16):
            return ops.convert(real(ops.convert(x, dt.float32)), x.dtype)
        return real(x)

    return by_kind(widened, complex_)


# ------------------------------------------------------------------ real numbers


def _halves(x: Array) -> tuple[Array, Array]:
    """e**x / 2 and e**-x / 2, which are finite where their sum is."""
    half = ops.like(math.log(0.5), x)
    return (
        ops.unary("exponential", _sum(x, half)),
        ops.unary("exponential", _sum(_negated(x), half)),
    )


def _real_cosh(x: Array) -> Array:
    return _sum(*_halves(x))


def _real_sinh(x: Array) -> Array:
    grown = ops.unary("exponential-minus-one", x)
    near = _scaled(_sum(grown, ops.binary("divide", grown, _sum(grown, ops.like(1, x)))), 0.5)
    is_near = ops.compare("LT", ops.unary("abs", x), ops.like(1, x))
    return ops.select(is_near, near, _difference(*_halves(x)))


def _real_asin(x: Array) -> Array:
    one = ops.like(1, x)
    rest = _root(_product(_difference(one, x), _sum(one, x)))
    return _scaled(ops.binary("atan2", x, _sum(one, rest)), 2)


def _real_acos(x: Array) -> Array:
    one = ops.like(1, x)
    above = _sum(one, x)
    angle = _scaled(ops.binary("atan2", _root(_product(_difference(one, x), above)), above), 2)
    return ops.select(ops.compare("EQ", above, ops.like(0, x)), ops.like(math.pi, x), angle)


def _is_large(x: Array) -> Array:
    """Whether the square of a magnitude may overflow."""
    return ops.compare("GE", x, ops.like(math.sqrt(dt.finfo(x.dtype).max) / 2, x))


def _real_asinh(x: Array) -> Array:
    size, one = ops.unary("abs", x), ops.like(1, x)
    square = _product(size, size)
    part = ops.binary("divide", square, _sum(one, _root(_sum(square, one))))
    near = ops.unary("log-plus-one", _sum(size, part))
    far = _sum(ops.unary("log", size), ops.like(math.log(2), x))
    found = _signed_as(ops.select(_is_large(size), far, near), x)
    return ops.select(ops.compare("NE", x, x), x, found)


def _real_acosh(x: Array) -> Array:
    above = _difference(x, ops.like(1, x))
    root = _root(_product(above, _sum(above, ops.like(2, x))))
    near = ops.unary("log-plus-one", _sum(above, root))
    far = _sum(ops.unary("log", x), ops.like(math.log(2), x))
    found = ops.select(_is_large(x), far, near)
    is_outside = ops.compare("LT", x, ops.like(1, x))
    return ops.select(is_outside, ops.like(math.nan, x), found)


def _real_atanh(x: Array) -> Array:
    up, down = ops.unary("log-plus-one", x), ops.unary("log-plus-one", _negated(x))
    return _scaled(_difference(up, down), 0.5)


# ------------------------------------------------------------------ complex numbers


def _is_infinite(x: Array) -> Array:
    return ops.compare("EQ", ops.unary("abs", x), ops.like(math.inf, x))


def _is_undefined(x: Array) -> Array:
    return ops.compare("NE", x, x)


def _is_zero(x: Array) -> Array:
    return ops.compare("EQ", x, ops.like(0, x))


def _both(a: Array, b: Array) -> Array:
    return ops.binary("and", a, b)


def _either(a: Array, b: Array) -> Array:
    return ops.binary("or", a, b)


def _times(size: Array, wave: Array) -> Array:
    """A product in which a wave of 0 stays 0, however great the other factor."""
    one = ops.like(1, size)
    unit = ops.select(_is_undefined(size), one, _signed_as(one, size))
    return _product(ops.select(_is_zero(wave), unit, size), wave)


def _complex_sinh(z: Array) -> Array:
    x, y = _real(z), _imag(z)
    sine, cosine = ops.unary("sine", y), ops.unary("cosine", y)
    size = _real_sinh(x)
    # 0 and infinities need no direction: they stay what they are.
    is_kept = _both(_is_undefined(sine), _either(_is_zero(x), _is_infinite(x)))
    real = ops.select(is_kept, size, _product(size, cosine))
    return ops.complex_(real, _times(_real_cosh(x), sine))


def _complex_cosh(z: Array) -> Array:
    x, y = _real(z), _imag(z)
    sine, cosine = ops.unary("sine", y), ops.unary("cosine", y)
    size, is_lost = _real_cosh(x), _is_undefined(sine)
    real = ops.select(_both(is_lost, _is_infinite(x)), size, _product(size, cosine))
    imag = ops.select(_both(is_lost, _is_zero(x)), x, _times(_real_sinh(x), sine))
    return ops.complex_(real, imag)


def _complex_expm1(z: Array) -> Array:
    x, y = _real(z), _imag(z)
    found = ops.unary("exponential-minus-one", z)
    is_lost = _both(_is_infinite(x), ops.unary("not", ops.unary("is-finite", y, dt.bool)))
    grown = ops.unary("exponential-minus-one", x)
    zero, none = ops.like(0, x), ops.like(math.nan, x)
    rest = ops.select(ops.compare("LT", x, zero), zero, none)
    real = ops.select(is_lost, grown, _real(found))
    real = ops.select(_is_zero(real), zero, real)  # The standard has 0 for -0 here.
    return ops.complex_(real, ops.select(is_lost, rest, _imag(found)))


def _directions(z: Array) -> tuple[Array, Array]:
    """Both parts of the direction of an infinite number: infinities to 1, the finite ones to 0."""

    def direction(x: Array) -> Array:
        size = ops.select(_is_infinite(x), ops.like(1, x), ops.like(0, x))
        return ops.select(_is_undefined(x), x, _signed_as(size, x))

    return direction(_real(z)), direction(_imag(z))


def _with_infinities(z: Array, found: Array, real: Array, imag: Array) -> Array:
    """Another result where a part of `z` is infinite."""
    is_far = _either(_is_infinite(_real(z)), _is_infinite(_imag(z)))
    return ops.complex_(
        ops.select(is_far, real, _real(found)), ops.select(is_far, imag, _imag(found))
    )


def _undefined_beside_zero(z: Array) -> Array:
    """Whether the real part is 0 and the imaginary part undefined."""
    return _both(_is_zero(_real(z)), _is_undefined(_imag(z)))


def _around_one(z: Array) -> tuple[Array, Array, Array, Array]:
    """Parts of sqrt(1 - z) and of sqrt(1 + z)."""
    x, y = _real(z), _imag(z)
    one = ops.like(1, x)
    below = _root(ops.complex_(_difference(one, x), _negated(y)))
    above = _root(ops.complex_(_sum(one, x), y))
    return _real(below), _imag(below), _real(above), _imag(above)


def _complex_asin(z: Array) -> Array:
    a, b, c, d = _around_one(z)
    real = ops.binary("atan2", _real(z), _difference(_product(a, c), _product(b, d)))
    real = ops.select(_undefined_beside_zero(z), _real(z), real)
    imag = _real_asinh(_difference(_product(a, d), _product(b, c)))
    u, v = _directions(z)
    angle = ops.binary("atan2", u, ops.unary("abs", v))
    height = _signed_as(ops.like(math.inf, v), _imag(z))
    return _with_infinities(z, ops.complex_(real, imag), angle, height)


def _complex_acos(z: Array) -> Array:
    a, b, c, d = _around_one(z)
    real = _scaled(ops.binary("atan2", a, c), 2)
    real = ops.select(_undefined_beside_zero(z), ops.like(math.pi / 2, real), real)
    imag = _real_asinh(_difference(_product(c, b), _product(d, a)))
    u, v = _directions(z)
    angle = ops.binary("atan2", ops.unary("abs", v), u)
    height = _negated(_signed_as(ops.like(math.inf, v), _imag(z)))
    return _with_infinities(z, ops.complex_(real, imag), angle, height)


def _complex_acosh(z: Array) -> Array:
    x, y = _real(z), _imag(z)
    one = ops.like(1, x)
    below = _root(ops.complex_(_difference(x, one), y))
    above = _root(ops.complex_(_sum(x, one), y))
    a, b, c, d = _real(below), _imag(below), _real(above), _imag(above)
    real = _real_asinh(_sum(_product(a, c), _product(b, d)))
    imag = _scaled(ops.binary("atan2", b, c), 2)
    imag = ops.select(_undefined_beside_zero(z), ops.like(math.pi / 2, imag), imag)
    u, v = _directions(z)
    far = ops.like(math.inf, x)
    return _with_infinities(z, ops.complex_(real, imag), far, ops.binary("atan2", v, u))


def _turned(z: Array) -> Array:
    """i z."""
    return ops.complex_(_negated(_imag(z)), _real(z))


def _turned_back(z: Array) -> Array:
    """-i z."""
    return ops.complex_(_imag(z), _negated(_real(z)))


def _complex_asinh(z: Array) -> Array:
    return _turned_back(_complex_asin(_turned(z)))


def _complex_atanh(z: Array) -> Array:
    x, y = _real(z), _imag(z)
    size, one = ops.unary("abs", x), ops.like(1, x)
    gap = _difference(one, size)
    square = _sum(_product(gap, gap), _product(y, y))
    ratio = ops.binary("divide", _scaled(size, 4), square)
    near = _scaled(ops.unary("log-plus-one", ratio), 0.25)
    # Where the square of what is left beside 1 and -1 loses digits, its logarithm does not.
    loses = _both(
        _is_zero(gap),
        ops.compare("LT", square, ops.like(dt.finfo(x.dtype).smallest_normal * 4, x)),
    )
    log = ops.unary("log", _scaled(ops.unary("abs", y), 0.5))
    real = _signed_as(ops.select(loses, _scaled(log, -0.5), near), x)
    # Both operands of the angle are differences that stay exact near 1.
    bottom = _difference(_product(gap, _sum(one, size)), _product(y, y))
    imag = _scaled(ops.binary("atan2", _scaled(y, 2), bottom), 0.5)
    # Far out the squares overflow: there the result is 1/z up to its rounding, beside pi/2.
    limit = ops.like(math.sqrt(dt.finfo(x.dtype).max) / 4, x)
    is_far = ops.binary(
        "or", ops.compare("GT", size, limit), ops.compare("GT", ops.unary("abs", y), limit)
    )
    quarter = _signed_as(ops.like(math.pi / 2, y), y)
    inverse = _real(ops.binary("divide", ops.like(1, z), z))
    real = ops.select(is_far, _signed_as(ops.unary("abs", inverse), x), real)
    is_kept = _both(_is_undefined(y), _either(_is_zero(x), _is_infinite(x)))
    real = ops.select(is_kept, _signed_as(ops.like(0, x), x), real)
    return ops.complex_(real, ops.select(_both(is_far, ops.compare("EQ", y, y)), quarter, imag))


def _complex_tanh(z: Array) -> Array:
    """HLO's, with C23's values on the imaginary axis: 0 and NaN where C99 has NaN twice."""
    x, y = _real(z), _imag(z)
    result = ops.unary("tanh", z)
    is_kept = _both(_is_zero(x), _either(_is_undefined(y), _is_infinite(y)))
    return ops.complex_(ops.select(is_kept, x, _real(result)), _imag(result))


def _complex_tan(z: Array) -> Array:
    return _turned_back(_complex_tanh(_turned(z)))


def _complex_atan(z: Array) -> Array:
    return _turned_back(_complex_atanh(_turned(z)))


def _real_atan(x: Array) -> Array:
    return ops.binary("atan2", x, ops.like(1, x))


def _real_expm1(x: Array) -> Array:
    return ops.unary("exponential-minus-one", x)


acos = by_type(_real_acos, _complex_acos)
acosh = by_type(_real_acosh, _complex_acosh)
asin = by_type(_real_asin, _complex_asin)
asinh = by_type(_real_asinh, _complex_asinh)
atan = by_type(_real_atan, _complex_atan)
atanh = by_type(_real_atanh, _complex_atanh)
cosh = by_type(_real_cosh, _complex_cosh)
expm1 = by_type(_real_expm1, _complex_expm1)
sinh = by_type(_real_sinh, _complex_sinh)
tan = by_kind(lambda x: ops.unary("tan", x), _complex_tan)
tanh = by_kind(lambda x: ops.unary("tanh", x), _complex_tanh)
