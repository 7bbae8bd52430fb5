"""exp, expm1, tanh, logistic, sinh and cosh.

x = k ln 2 + r, |r| <= ln 2 / 2, and e**r - 1 = r + r*r*q(r); k is found by adding 1.5 * 2**mantissa,
whose low bits then count it, so that no float becomes an integer.
"""

from __future__ import annotations

import math
import struct

from xdsl.ir import SSAValue

from mlirhlo.lowering.hlo_to_loops.math_coefficients import TABLES
from mlirhlo.lowering.hlo_to_loops.math_numbers import Numbers


def _split(n: Numbers, x: SSAValue, magic: float) -> tuple[SSAValue, SSAValue, SSAValue]:
    """r, k, and a number whose low bits count it, in whole numbers or in what the last bit of `magic` is."""
    most = n.c(magic)
    shifted = n.fma(x, n.c(1 / math.log(2)), most)
    k = n.sub(shifted, most)
    high, low = TABLES["LN2.f32" if n.is_f32 else "LN2.pair"]
    return n.fma(k, n.c(-low), n.fma(k, n.c(-high), x)), k, shifted


def _reduced(
    n: Numbers, x: SSAValue, rest: SSAValue | None = None, less: int = 0
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """e**r - 1, k, and a number whose low bits are k - `less`; `rest` is added to x."""
    r, k, shifted = _split(n, x, 1.5 * 2.0**n.mantissa - less)
    if rest is not None:
        r = n.add(r, rest)
    square = n.mul(r, r)
    table = n.table("EXP")
    # The long one of f64 would lose more digits than bounds of the functions allow.
    q = n.poly_of_square(r, square, table) if n.is_f32 else n.poly(r, table)
    return n.fma(square, q, r), k, shifted


def _scaled_exp(
    n: Numbers,
    x: SSAValue,
    rest: SSAValue | None = None,
    factor: float = 1.0,
    exact: bool = False,
) -> tuple[SSAValue, SSAValue]:
    """m and k, of which `factor` times e**x is m * 2**floor(k); where numbers can be looked up, k counts
    parts of one, whose powers of two are, and r is short. `exact`: what these lost by rounding is added."""
    if not n.can_look_up:
        tail, k, _ = _reduced(n, x, rest)
        one = n.c(factor)
        return n.add(tail, one) if factor == 1.0 else n.fma(tail, one, one), k
    powers = n.table("POWERS")
    r, k, shifted = _split(n, x, 1.5 * 2.0**n.mantissa / len(powers))
    if rest is not None:
        r = n.add(r, rest)
    power = n.looked_up([factor * p for p in powers], n.bits(shifted))
    tail = n.fma(n.mul(r, r), n.poly(r, n.table("EXP_STEP")), r)
    if exact and n.is_f32:
        tail = n.add(tail, n.looked_up(n.table("POWERS.rest"), n.bits(shifted)))
    return n.fma(power, tail, power), k


def _exponent(n: Numbers, counted: SSAValue) -> SSAValue:
    """The low bits in the place of the exponent."""
    return n.b.shli(n.bits(counted), n.i(n.mantissa))


def exp(
    n: Numbers,
    x: SSAValue,
    *,
    rest: SSAValue | None = None,
    half: bool = False,
    exact: bool = False,
) -> SSAValue:
    """e**x, 1.1 ULP; `rest` is a small number added to x, `half` gives half of it, `exact` with less error
    where powers of two are looked up."""
    if n.has_exp2:
        return _exp_by_exp2(n, x, rest, half)
    # Results that are zero are not computed by underflow: that takes the processor 100 times longer,
    # and masks of attention are made of them.
    lowest = -104.0 if n.is_f32 else -746.0
    highest = (n.bias + 1 + half) * math.log(2) + 0.2
    if n.can_scale:
        mantissa, k = _scaled_exp(n, n.at_most(x, highest), rest, 0.5 if half else 1.0, exact)
        return n.scaled(n.select(n.cmp("uge", x, lowest), mantissa, n.c(0.0)), k)
    far = n.select(n.cmp("olt", x, 0.0), n.c(0.0), x)  # zero or NaN
    # k - 1 is added to the exponent, and 2 multiplied, so that what is too large overflows; what is
    # less than normal has its exponent raised and goes the rest of the way by a product too.
    tail, _, counted = _reduced(n, n.at_most(x, highest), rest, 2 if half else 1)
    k = _exponent(n, counted)
    small = n.cmp("olt", x, math.log(n.least_normal) + 2.0)
    up = n.bias // 2 + 1
    k = n.select(small, n.b.addi(k, n.i(up << n.mantissa)), k)
    scaled = n.real(n.b.addi(n.bits(n.add(tail, n.c(1.0))), k))
    factor = n.select(small, n.c(2.0 ** (1 - up)), n.c(2.0))
    return n.select(n.cmp("oge", x, lowest), n.mul(scaled, factor), far)


def _exp_by_exp2(n: Numbers, x: SSAValue, rest: SSAValue | None, half: bool) -> SSAValue:
    """e**x as 2**h * (1 + l ln 2), where h is x / ln 2 as rounded, and l what it lost by that."""
    scale = 1 / math.log(2)
    high = struct.unpack("f", struct.pack("f", scale))[0]
    x = n.max(n.min(x, n.c(91.0)), n.c(-106.0))
    negative = n.mul(x, n.c(-high))
    low = n.fma(x, n.c(scale - high), n.fma(x, n.c(high), negative))
    if rest is not None:
        low = n.fma(rest, n.c(high), low)
    h = n.sub(n.c(-1.0), negative) if half else n.neg(negative)
    return n.mul(n.exp2(h), n.fma(low, n.c(math.log(2)), n.c(1.0)))


def exp_normal(n: Numbers, x: SSAValue) -> SSAValue:
    """e**x of an x whose result is a normal number."""
    if n.has_exp2:
        return exp(n, x)
    if n.can_scale:
        return n.scaled(*_scaled_exp(n, x))
    tail, _, counted = _reduced(n, x)
    scale = n.real(n.b.addi(_exponent(n, counted), n.i(n.bias << n.mantissa)))
    return n.mul(n.add(tail, n.c(1.0)), scale)


def _half_expm1(n: Numbers, x: SSAValue) -> SSAValue:
    """(e**x - 1) / 2 of a number that is clamped already."""
    tail, _, counted = _reduced(n, x)
    scale = n.real(n.b.addi(_exponent(n, counted), n.i((n.bias - 1) << n.mantissa)))
    return n.fma(scale, tail, n.sub(scale, n.c(0.5)))


def expm1(n: Numbers, x: SSAValue) -> SSAValue:
    """e**x - 1, 2 ULP."""
    low = -18.0 if n.is_f32 else -39.0
    half = _half_expm1(n, n.at_most(n.at_least(x, low), 89.0 if n.is_f32 else 709.9))
    return n.with_sign(n.add(half, half), x)


def tanh(n: Numbers, x: SSAValue) -> SSAValue:
    """2.5 ULP: t / (t + 2) with t = e**(2|x|) - 1; in f32 a polynomial for each of 32 pieces, 1.5 ULP."""
    size = n.abs(x)
    if n.is_f32 and n.can_look_up:
        return n.with_sign(_tanh_by_pieces(n, n.at_most(size, 9.25)), x)
    half = _half_expm1(n, n.at_most(n.add(size, size), 20.0 if n.is_f32 else 44.0))
    return n.with_sign(n.div(half, n.add(half, n.c(1.0))), x)


def _tanh_by_pieces(n: Numbers, size: SSAValue) -> SSAValue:
    """Pieces are the numbers whose sum with 0.625 has the same exponent and the same first three bits."""
    word = n.mantissa - 3
    found = n.bits(n.add(size, n.c(0.625)))
    places = n.b.shrui(found, n.i(word))
    low = n.sub(n.real(n.b.andi(found, n.i(-1 << word))), n.c(0.625))
    t = n.sub(size, low)
    table = n.table("TANH")
    *rest, last = [n.looked_up(table[at : at + 32], places) for at in range(0, len(table), 32)]
    for coefficient in reversed(rest):
        last = n.fma(last, t, coefficient)
    return last


def logistic(n: Numbers, x: SSAValue) -> SSAValue:
    """1 / (1 + e**-x), 2.5 ULP: e**-|x| cannot overflow, and small results come from it."""
    power = exp(n, n.neg(n.abs(x)), exact=True)
    one = n.c(1.0)
    above = n.select(n.cmp("olt", x, 0.0), power, one)
    return n.div(above, n.add(power, one))


def sinh(n: Numbers, x: SSAValue) -> SSAValue:
    """2 ULP."""
    size = n.abs(x)
    square = n.mul(x, x)
    near = n.fma(n.mul(x, square), n.poly(square, n.table("SINH")), x)
    half = exp(n, size, half=True)
    far = n.with_sign(n.sub(half, n.div(n.c(0.25), half)), x)
    return n.select(n.cmp("olt", size, 1.0), near, far)


def cosh(n: Numbers, x: SSAValue) -> SSAValue:
    """2 ULP."""
    half = exp(n, n.abs(x), half=True)
    return n.add(half, n.div(n.c(0.25), half))
