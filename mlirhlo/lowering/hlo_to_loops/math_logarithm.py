"""log, log1p, power, the cube root and the inverse hyperbolic functions.

x = 2**k m with m between √½ and √2; f = m - 1 is exact. f32 takes a polynomial in f, f64 the series
in s = f / (2 + f), which needs a division but half as many terms.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.lowering.builder import element_of
from mlirhlo.lowering.hlo_to_loops.math_coefficients import TABLES
from mlirhlo.lowering.hlo_to_loops.math_exponential import exp
from mlirhlo.lowering.hlo_to_loops.math_numbers import INFINITY, NAN, Numbers


def _root_bits(n: Numbers) -> int:
    """Bits of √½."""
    form = ("<f", "<i") if n.is_f32 else ("<d", "<q")
    return int(struct.unpack(form[1], struct.pack(form[0], math.sqrt(0.5)))[0])


def _split(n: Numbers, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """k as an integer and m of normal numbers."""
    b, root = n.b, _root_bits(n)
    above = b.subi(n.bits(x), n.i(root))
    k = b.shrsi(above, n.i(n.mantissa))
    m = n.real(b.addi(b.andi(above, n.i((1 << n.mantissa) - 1)), n.i(root)))
    return k, m


def _split_all(n: Numbers, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """k as a number and m, of subnormal numbers too."""
    if n.single:  # f32 has no number that is subnormal here
        k, m = _split(n, x)
        return n.from_integer(k), m
    small = n.cmp("olt", x, n.least_normal)
    scaled = n.select(small, n.mul(x, n.c(2.0 ** (n.mantissa + 1))), x)
    k, m = _split(n, scaled)
    shift = n.select(small, n.c(-(n.mantissa + 1.0)), n.c(0.0))
    return n.add(n.from_integer(k), shift), m


def _sum(n: Numbers, k: SSAValue, f: SSAValue, rest: SSAValue | None) -> SSAValue:
    """k ln 2 + log(1 + f) + rest."""
    high, low = TABLES["LN2.f32" if n.is_f32 else "LN2.pair"]
    small = n.mul(k, n.c(low))
    if rest is not None:
        small = n.add(small, rest)
    square = n.mul(f, f)
    if n.is_f32:
        series = n.fma(n.mul(f, square), n.poly(f, n.table("LOG")), small)
        inner = n.add(f, n.fma(square, n.c(-0.5), series))
    else:
        s = n.div(f, n.add(f, n.c(2.0)))
        z = n.mul(s, s)
        half = n.mul(square, n.c(0.5))
        series = n.fma(z, n.poly(z, n.table("LOG_RATIO")), half)
        inner = n.sub(f, n.sub(half, n.fma(s, series, small)))
    return n.fma(k, n.c(high), inner)


def _of_positive(n: Numbers, x: SSAValue) -> SSAValue:
    """log of finite numbers above 0."""
    k, m = _split_all(n, x)
    return _sum(n, k, n.sub(m, n.c(1.0)), None)


def _ends(n: Numbers, result: SSAValue, x: SSAValue, zero: float) -> SSAValue:
    """-inf at `zero`, NaN below it, x itself where it is infinite or NaN."""
    result = n.select(n.cmp("olt", x, INFINITY), result, x)
    outside = n.select(n.cmp("oeq", x, zero), n.c(-INFINITY), n.c(NAN))
    return n.select(n.cmp("ole", x, zero), outside, result)


def log(n: Numbers, x: SSAValue) -> SSAValue:
    """1 ULP."""
    return _ends(n, _of_positive(n, x), x, 0.0)


def log1p(n: Numbers, x: SSAValue) -> SSAValue:
    """log(1 + x), 1.5 ULP: what 1 + x lost comes back as a quotient."""
    one = n.c(1.0)
    u = n.add(x, one)
    k, m = _split(n, u)
    near = n.b.cmpi("eq", k, n.i(0))
    lost = n.div(n.sub(x, n.sub(u, one)), u)
    f = n.select(near, x, n.sub(m, one))
    rest = n.select(near, n.c(0.0), lost)
    result = _ends(n, _sum(n, n.from_integer(k), f, rest), x, -1.0)
    return n.with_sign(result, x)


def asinh(n: Numbers, x: SSAValue) -> SSAValue:
    """2.5 ULP."""
    size = n.abs(x)
    square = n.mul(size, size)
    root = n.sqrt(n.add(square, n.c(1.0)))
    argument = n.add(size, n.div(square, n.add(root, n.c(1.0))))
    return n.with_sign(_log1p_of_large(n, argument, size), x)


def acosh(n: Numbers, x: SSAValue) -> SSAValue:
    """3 ULP; NaN below 1."""
    t = n.sub(x, n.c(1.0))
    argument = n.add(t, n.sqrt(n.mul(t, n.add(t, n.c(2.0)))))
    return n.select(n.cmp("olt", x, 1.0), n.c(NAN), _log1p_of_large(n, argument, x))


def _log1p_of_large(n: Numbers, argument: SSAValue, x: SSAValue) -> SSAValue:
    """log1p(argument), or log(2x) where x is so large that the argument may have overflowed."""
    large = n.cmp("ogt", x, 2.0**60)
    result = log1p(n, n.select(large, x, argument))
    return n.add(result, n.select(large, n.c(math.log(2)), n.c(0.0)))


def atanh(n: Numbers, x: SSAValue) -> SSAValue:
    """2.5 ULP; NaN beyond 1."""
    size = n.abs(x)
    quotient = n.div(n.add(size, size), n.sub(n.c(1.0), size))
    # At 1 the quotient is infinite, beyond it below -1.
    return n.with_sign(n.mul(log1p(n, quotient), n.c(0.5)), x)


def cbrt(n: Numbers, x: SSAValue) -> SSAValue:
    """1 ULP, of f64: a polynomial, a step of Halley's and one of Newton's."""
    b = n.b
    size = n.abs(x)
    if n.single:
        k, m = _exponent(n, size)
    else:
        small = n.cmp("olt", size, n.least_normal)
        k, m = _exponent(n, n.select(small, n.mul(size, n.c(2.0**54)), size))
        k = n.sub(k, n.select(small, n.c(54.0), n.c(0.0)))
    third = n.floor(n.fma(k, n.c(1 / 3), n.c(1 / 6)))
    rest = b.cast(casts.FPToSIOp, n.fma(third, n.c(-3.0), k), element_of(n.word))
    m = n.mul(m, n.ldexp1(rest))
    t = n.poly(m, n.table("CBRT"))
    cube = n.mul(n.mul(t, t), t)
    two_m = n.add(m, m)
    t = n.mul(t, n.div(n.add(cube, two_m), n.add(n.add(cube, cube), m)))
    square, lost = n.two_product(t, t)
    residue = n.fma(lost, t, n.fma(square, t, n.neg(m)))
    t = n.sub(t, n.div(residue, n.mul(square, n.c(3.0))))
    scale = n.ldexp1(b.cast(casts.FPToSIOp, third, element_of(n.word)))
    inside = b.andi(n.cmp("ogt", size, 0.0), n.cmp("olt", size, INFINITY))
    return n.select(inside, n.with_sign(n.mul(t, scale), x), x)


def _exponent(n: Numbers, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """k as a number and m between 1 and 2."""
    b, bits = n.b, n.bits(x)
    k = b.subi(b.shrui(bits, n.i(n.mantissa)), n.i(n.bias))
    m = b.ori(b.andi(bits, n.i((1 << n.mantissa) - 1)), n.i(n.bias << n.mantissa))
    return n.from_integer(k), n.real(m)


def power(n: Numbers, x: SSAValue, y: SSAValue) -> SSAValue:
    """x**y of f64 as C99 has it, 1.2 ULP."""
    assert element_of(n.type) == f64
    b = n.b
    size = n.abs(x)
    if n.single:
        product, rest = n.mul(y, _of_positive(n, size)), None
    else:
        product, rest = _exact_product(n, y, size)
    # Zero and infinity have logarithms that are infinite; NaN keeps.
    logarithm = n.select(n.cmp("oeq", size, 0.0), n.c(-INFINITY), size)
    inside = b.andi(n.cmp("ogt", size, 0.0), n.cmp("olt", size, INFINITY))
    product = n.select(inside, product, n.mul(y, logarithm))
    if rest is not None:
        ordinary = b.andi(inside, n.cmp("olt", n.abs(product), 1000.0))
        rest = n.select(ordinary, rest, n.c(0.0))
    result = exp(n, product, rest=rest)
    whole = n.cmp("oeq", n.floor(y), y)
    half = n.mul(y, n.c(0.5))
    odd = b.andi(whole, n.cmp("une", n.floor(half), half))
    negative = n.is_negative(x)
    result = n.select(b.andi(odd, negative), n.neg(result), result)
    finite_negative = b.andi(n.cmp("olt", x, 0.0), n.cmp("ogt", x, -INFINITY))
    fraction = n.cmp("une", n.floor(y), y)
    result = n.select(b.andi(finite_negative, fraction), n.c(NAN), result)
    infinite = n.cmp("oeq", n.abs(y), INFINITY)
    is_one = b.ori(n.cmp("oeq", x, 1.0), b.andi(infinite, n.cmp("oeq", size, 1.0)))
    return n.select(b.ori(is_one, n.cmp("oeq", y, 0.0)), n.c(1.0), result)


def _exact_product(n: Numbers, y: SSAValue, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """y log x as the sum of two numbers, x finite and above 0."""
    k, m = _split_all(n, x)
    one = n.c(1.0)
    f = n.sub(m, one)
    d = n.add(m, one)
    d_low = n.sub(m, n.sub(d, one))
    s = n.div(f, d)
    s_low = n.div(n.fma(n.neg(s), d_low, n.fma(n.neg(s), d, f)), d)
    z, z_low = n.two_product(s, s)
    z_low = n.fma(n.add(s, s), s_low, z_low)
    # s z 2/3, then the rest of the series in one number.
    a, a_low = n.two_product(s, z)
    a_low = n.fma(s, z_low, n.fma(s_low, z, a_low))
    two_thirds = 2 / 3
    beyond = float(Fraction(2, 3) - Fraction(two_thirds))
    c, c_low = n.two_product(a, n.c(two_thirds))
    c_low = n.fma(a_low, n.c(two_thirds), n.fma(a, n.c(beyond), c_low))
    tail = n.mul(n.mul(a, z), n.poly(z, TABLES["LOG_RATIO_REST.f64"]))
    short, short_low = TABLES["LN2.short"]
    total, lost = n.two_sum(n.mul(k, n.c(short)), n.add(s, s))
    total, lost_too = n.two_sum(total, c)
    low = n.add(n.add(lost, lost_too), n.fma(k, n.c(short_low), n.add(s_low, s_low)))
    low = n.add(low, n.add(c_low, tail))
    total, low = n.fast_two_sum(total, low)
    product, rest = n.two_product(y, total)
    return product, n.fma(y, low, rest)
