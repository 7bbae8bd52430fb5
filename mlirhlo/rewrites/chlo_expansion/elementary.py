"""Elementary functions of real numbers, and tests and steps of floats."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import IntegerType

from mlirhlo.rewrites.chlo_expansion.emitter import Value
from mlirhlo.rewrites.chlo_expansion.limits import largest

LOG_2 = math.log(2.0)


def acos(x: Value) -> Value:
    """Atan2(sqrt(1 - x²), x), the square taken apart so that it stays exact near 1."""
    return ((1.0 - x) * (x + 1.0)).sqrt().atan2(x)


def asin(x: Value) -> Value:
    """2 atan2(x, 1 + sqrt(1 - x²))."""
    half = x.atan2(((1.0 - x) * (x + 1.0)).sqrt() + 1.0)
    return half + half


def atan(x: Value) -> Value:
    """Atan2(x, 1)."""
    return x.atan2(1.0)


def acosh(x: Value) -> Value:
    """Log1p(s (sqrt(x + 1) + s)), s = sqrt(x - 1); of huge numbers log x + log 2."""
    huge = x.compare("GE", largest(x) / 2)
    root = (x - 1.0).sqrt()
    near = (root * ((x + 1.0).sqrt() + root)).log_plus_one()
    return huge.select(x.log() + LOG_2, near)


def asinh(x: Value) -> Value:
    """Sign(x) log1p(|x| + x² / (1 + sqrt(x² + 1))); of huge numbers log |x| + log 2."""
    size = x.abs()
    huge = size.compare("GE", math.sqrt(largest(x)))
    square = size * size
    near = (size + square / ((square + 1.0).sqrt() + 1.0)).log_plus_one()
    return x.sign() * huge.select(size.log() + LOG_2, near)


def atanh(x: Value) -> Value:
    """(log1p(x) - log1p(-x)) / 2; NaN beyond 1."""
    outside = x.abs().compare("GT", 1.0)
    inside = (x.log_plus_one() - (-x).log_plus_one()) * 0.5
    return outside.select(math.nan, inside)


def cosh(x: Value) -> Value:
    """E**(x - log 2) + e**(-log 2 - x): no part overflows before the sum does."""
    return (x + -LOG_2).exponential() + (-LOG_2 - x).exponential()


def sinh(x: Value) -> Value:
    """As cosh; near 0, (m + m / (m + 1)) / 2 with m = e**x - 1."""
    large = (x + -LOG_2).exponential() - (-LOG_2 - x).exponential()
    m = x.exponential_minus_one()
    small = (m + m / (m + 1.0)) * 0.5
    return x.abs().compare("LT", 1.0).select(small, large)


def square(x: Value) -> Value:
    """X * x."""
    return x * x


def is_inf(x: Value) -> Value:
    """|x| = inf."""
    return x.abs().compare("EQ", math.inf)


def is_pos_inf(x: Value) -> Value:
    """X = inf."""
    return x.compare("EQ", math.inf)


def is_neg_inf(x: Value) -> Value:
    """X = -inf."""
    return x.compare("EQ", -math.inf)


def next_after(x: Value, y: Value) -> Value:
    """The next number after x towards y, by a step of its bits."""
    bits = x.element_type.bits
    word = IntegerType(bits)
    sign = -(1 << (bits - 1))
    magnitude = ~sign
    from_, to = x.bitcast(word), y.bitcast(word)
    is_nan = x.compare("NE", x) | y.compare("NE", y)
    nan = x.emitter.constant(math.nan, x.type).bitcast(word)
    from_size, to_size = from_ & magnitude, to & magnitude
    from_sign, to_sign = from_ & sign, to & sign
    leaves_zero = to_size.compare("EQ", 0).select(to, to_sign | 1)
    shrinks = from_size.compare("GT", to_size) | from_sign.compare("NE", to_sign)
    one = x.emitter.constant(1, from_.type)
    stepped = from_ + shrinks.select(-1, one)
    moved = from_size.compare("EQ", 0).select(leaves_zero, stepped)
    there = x.compare("EQ", y).select(to, moved)
    return is_nan.select(nan, there).bitcast(x.type.element_type)
