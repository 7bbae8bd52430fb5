"""The error function, the exact remainder, and rounding to fewer bits."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from mlirhlo.lowering.hlo_to_loops.math_coefficients import TABLES
from mlirhlo.lowering.hlo_to_loops.math_exponential import exp_normal
from mlirhlo.lowering.hlo_to_loops.math_numbers import Numbers


def erf(n: Numbers, x: SSAValue) -> SSAValue:
    """1.5 ULP in f32, 2 in f64: an odd polynomial near 0, 1 - exp(polynomial) beyond."""
    size = n.abs(x)
    z = n.mul(x, x)
    near = n.fma(x, n.poly(z, n.table("ERF")), x)
    (middle,) = TABLES["ERF.middle"]
    v = n.sub(n.at_most(size, 4.125 if n.is_f32 else 6.125), n.c(middle))
    far = n.sub(n.c(1.0), exp_normal(n, n.poly(v, n.table("ERFC"))))
    return n.select(n.cmp("olt", size, 0.875), near, n.with_sign(far, x))


def remainder(n: Numbers, x: SSAValue, y: SSAValue) -> SSAValue:
    """C's fmod of f64, exact. Rounds of long division, one where the quotient is below 2**51."""
    b = n.b
    divisor, rest = n.abs(y), n.abs(x)
    rest = _step(n, rest, divisor)
    # NaN of y = 0 and of x = inf need no more rounds.
    finite = n.cmp("olt", n.abs(x), float("inf"))
    more = b.andi(n.cmp("oge", rest, divisor), b.andi(finite, n.cmp("ogt", divisor, 0.0)))
    rounds = 6 if n.single else 42
    with b.otherwise(n.any(more), [rest]) as choice:
        with b.loop(0, rounds, 1, [n.abs(x)]) as loop:
            (left,) = loop.carried
            loop.carry(_step(n, left, _raised(n, left, divisor)))
        choice.give(n.select(more, loop.results[0], rest))
    (rest,) = choice.results
    outside = b.ori(n.cmp("ueq", y, 0.0), n.cmp("uge", n.abs(x), float("inf")))
    bad = b.ori(outside, n.cmp("uno", y, y))
    rest = n.select(n.cmp("olt", n.abs(x), divisor), n.abs(x), rest)
    product = n.mul(x, y)
    # NaN as the processor makes it, of either operand, of x infinite and of y zero.
    return n.select(bad, n.div(product, product), n.with_sign(rest, x))


def _step(n: Numbers, rest: SSAValue, by: SSAValue) -> SSAValue:
    """Rest less a multiple of `by`; unchanged where the quotient is not known to the last digit."""
    quotient = n.trunc(n.div(rest, by))
    left = n.fma(n.neg(quotient), by, rest)
    # The quotient may be one too great.
    left = n.select(n.cmp("olt", left, 0.0), n.add(left, by), left)
    fits = n.cmp("olt", quotient, 2.0**52)
    return n.select(fits, left, rest)


def _raised(n: Numbers, rest: SSAValue, divisor: SSAValue) -> SSAValue:
    """The divisor times a power of two, so that rest / it is below 2**52."""
    b = n.b
    small = n.cmp("olt", divisor, n.least_normal)
    normal = n.select(small, n.mul(divisor, n.c(2.0**54)), divisor)
    least = b.subi(b.shrui(n.bits(normal), n.i(52)), b.select(small, n.i(54), n.i(0)))
    gap = b.subi(b.subi(b.shrui(n.bits(rest), n.i(52)), least), n.i(51))
    gap = b.integer(arith.MinSIOp, b.integer(arith.MaxSIOp, gap, n.i(0)), n.i(2046))
    half = b.shrsi(gap, n.i(1))
    return n.mul(n.mul(divisor, n.ldexp1(half)), n.ldexp1(b.subi(gap, half)))


def reduce_precision(n: Numbers, x: SSAValue, exponent_bits: int, mantissa_bits: int) -> SSAValue:
    """Rounded to nearest even among numbers of fewer bits, subnormal ones to zero; NaN stays."""
    b = n.b
    bits = n.bits(x)
    result = bits
    width = 32 if n.is_f32 else 64
    dropped = n.mantissa - mantissa_bits
    if dropped > 0:
        odd = b.andi(b.shrui(bits, n.i(dropped)), n.i(1))
        result = b.addi(b.addi(bits, n.i((1 << (dropped - 1)) - 1)), odd)
        result = b.andi(result, n.i(-1 << dropped))
    own_exponent = width - 1 - n.mantissa
    if exponent_bits < own_exponent:
        sign = b.andi(bits, n.i(1 << (width - 1)))
        field = n.i(((1 << own_exponent) - 1) << n.mantissa)
        small_bias = (1 << (exponent_bits - 1)) - 1
        power = b.andi(result, field)
        above = b.cmpi("ugt", power, n.i((n.bias + small_bias) << n.mantissa))
        below = b.cmpi("ule", power, n.i((n.bias - small_bias) << n.mantissa))
        result = b.select(above, b.ori(sign, field), b.select(below, sign, result))
    return n.select(n.cmp("uno", x, x), x, n.real(result))
