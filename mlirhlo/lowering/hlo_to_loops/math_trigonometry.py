"""Sine, cosine, tangent and their inverses, all in f64.

Arguments are reduced by π/2: in steps with parts of π/2 where n π/2 comes out exact, else, in a branch
that is taken when a lane needs it, with as many digits of 2/π as its exponent asks for (Payne and Hanek).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import INDEX, lanes_of
from mlirhlo.lowering.hlo_to_loops.math_coefficients import TABLES
from mlirhlo.lowering.hlo_to_loops.math_numbers import Numbers

_DIGIT_BITS = 26
_DIGITS = 8
"""Digits of 2/π taken at a time."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """x = n π/2 + high + low, of n the two lowest bits count."""

    high: SSAValue
    low: SSAValue | None
    bits: SSAValue


def reduced(n: Numbers, x: SSAValue) -> Reduced:
    """|high| <= π/4. Infinities give NaN."""
    high, low, bits = _in_steps(n, x)
    limit = 2.0**40 if n.single else 2.0**20
    large = n.cmp("uge", n.abs(x), limit)
    fast = [high, bits] if low is None else [high, bits, low]
    with n.b.otherwise(n.any(large), fast) as choice:
        far_high, far_low, far_bits = _by_digits(n, x)
        slow = [far_high, far_bits] if low is None else [far_high, far_bits, far_low]
        choice.give(*(n.select(large, y, v) for y, v in zip(slow, fast, strict=True)))
    high, bits, *rest = choice.results
    return Reduced(high, rest[0] if rest else None, bits)


def _in_steps(n: Numbers, x: SSAValue) -> tuple[SSAValue, SSAValue | None, SSAValue]:
    magic = n.c(1.5 * 2.0**52)
    shifted = n.fma(x, n.c(2 / 3.141592653589793), magic)
    k = n.sub(shifted, magic)
    if n.single:
        upper, lower = TABLES["HALF_PI.pair"]
        return n.fma(k, n.c(-lower), n.fma(k, n.c(-upper), x)), None, n.bits(shifted)
    first, second, third, fourth = TABLES["HALF_PI.parts"]
    # The products with the first three parts are exact.
    r = n.fma(k, n.c(-first), x)
    r, lost = n.two_sum(r, n.mul(k, n.c(-second)))
    r, lost_too = n.two_sum(r, n.mul(k, n.c(-third)))
    rest = n.fma(k, n.c(-fourth), n.add(lost, lost_too))
    r, low = n.fast_two_sum(r, rest)
    return r, low, n.bits(shifted)


def _by_digits(n: Numbers, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Of any size from 2**20 on: |x| = M 2**E, times the digits of 2/π that matter to it."""
    b = n.b
    bits = n.bits(n.abs(x))
    exponent = b.subi(b.shrui(bits, n.i(52)), n.i(1023 + 52))
    # Digits in front of the first make multiples of 4. Division by 26, of numbers below 2048.
    above = b.integer(arith.MaxSIOp, b.subi(exponent, n.i(2)), n.i(0))
    first = b.shrui(b.muli(above, n.i(2521)), n.i(16))
    scale = n.ldexp1(b.subi(exponent, b.muli(first, n.i(_DIGIT_BITS))))
    mantissa = n.i((1 << 52) - 1)
    whole = n.real(b.ori(b.andi(bits, mantissa), n.i((1023 + 52) << 52)))
    upper = n.real(b.andi(n.bits(whole), n.i(-1 << 26)))
    pieces = [n.mul(upper, scale), n.mul(n.sub(whole, upper), scale)]
    digits = b.table(TABLES["TWO_OVER_PI.digits"], f64)
    # Terms that may reach 4 lose their multiples of it, and what their sums lose is kept.
    total, low, late = n.c(0.0), n.c(0.0), list[SSAValue]()
    for number in range(_DIGITS):
        digit = _look_up(n, digits, b.addi(first, n.i(number)))
        digit = n.mul(digit, n.c(2.0 ** (-_DIGIT_BITS * (number + 1))))
        for part, piece in enumerate(pieces):
            term = n.mul(piece, digit)
            if number + part > 3:
                late.append(term)
                continue
            total, lost = n.two_sum(total, _modulo(n, term))
            total, low = _modulo(n, total), n.add(low, lost)
    nearest, count = n.nearest(total)
    high, low = n.two_sum(n.sub(total, nearest), low)
    for term in late:
        high, lost = n.two_sum(high, term)
        low = n.add(low, lost)
    high, low = n.two_sum(high, low)
    first_part, second_part = TABLES["HALF_PI.pair"]
    r, lost = n.two_product(high, n.c(first_part))
    lost = n.fma(high, n.c(second_part), n.fma(low, n.c(first_part), lost))
    r, lost = n.fast_two_sum(r, lost)
    negative = n.cmp("olt", x, 0.0)
    # Infinities and NaN stay out of the sums above only in what they give.
    r = n.select(n.cmp("olt", n.abs(x), float("inf")), r, n.sub(x, x))
    count = b.select(negative, b.subi(n.i(0), count), count)
    return (
        n.select(negative, n.neg(r), r),
        n.select(negative, n.neg(lost), lost),
        count,
    )


def _look_up(n: Numbers, digits: SSAValue, place: SSAValue) -> SSAValue:
    b = n.b
    # Infinities would stand beyond the end.
    at = b.integer(arith.MinSIOp, place, n.i(len(TABLES["TWO_OVER_PI.digits"]) - 1))
    index = b.cast_index(at, INDEX)
    if lanes_of(n.type):
        return b.gather(digits, [0], index)
    return b.load(digits, [index])


def _modulo(n: Numbers, x: SSAValue) -> SSAValue:
    """X less the multiple of 4 next to it, exact."""
    quarter = n.mul(x, n.c(0.25))
    near = n.rint(quarter)
    return n.fma(near, n.c(-4.0), x)


def _sine(n: Numbers, r: Reduced, z: SSAValue) -> SSAValue:
    x = r.high
    series = n.poly(z, n.table("SIN"))
    cube = n.mul(z, x)
    if r.low is None:
        return n.fma(cube, series, x)
    # sin(x + y) = sin x + y cos x
    return n.add(x, n.fma(cube, series, n.fma(n.mul(z, n.c(-0.5)), r.low, r.low)))


def _cosine(n: Numbers, r: Reduced, z: SSAValue) -> SSAValue:
    one = n.c(1.0)
    series = n.mul(n.mul(z, z), n.poly(z, n.table("COS")))
    half = n.mul(z, n.c(0.5))
    near = n.sub(one, half)
    # What the difference lost comes back.
    lost = n.sub(n.sub(one, near), half)
    if r.low is not None:
        lost = n.fma(n.neg(r.high), r.low, lost)
    return n.add(near, n.add(series, lost))


def _is_odd(n: Numbers, bits: SSAValue) -> SSAValue:
    return n.b.cmpi("ne", n.b.andi(bits, n.i(1)), n.i(0))


def _signed(n: Numbers, x: SSAValue, bits: SSAValue) -> SSAValue:
    """-x where the second lowest bit is set."""
    sign = n.b.shli(n.b.andi(bits, n.i(2)), n.i(62))
    return n.real(n.b.xori(n.bits(x), sign))


def sine_and_cosine(n: Numbers, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Both, 1 ULP each."""
    r = reduced(n, x)
    z = n.mul(r.high, r.high)
    odd = _is_odd(n, r.bits)
    sine, cosine = _sine(n, r, z), _cosine(n, r, z)
    first = _signed(n, n.select(odd, cosine, sine), r.bits)
    after = n.b.addi(r.bits, n.i(1))
    return _kept_zero(n, first, x), _signed(n, n.select(odd, sine, cosine), after)


def _kept_zero(n: Numbers, result: SSAValue, x: SSAValue) -> SSAValue:
    return n.select(n.cmp("oeq", x, 0.0), x, result)


def sine(n: Numbers, x: SSAValue) -> SSAValue:
    """1 ULP, of any argument."""
    return sine_and_cosine(n, x)[0]


def cosine(n: Numbers, x: SSAValue) -> SSAValue:
    """1 ULP, of any argument."""
    r = reduced(n, x)
    z = n.mul(r.high, r.high)
    either = n.select(_is_odd(n, r.bits), _sine(n, r, z), _cosine(n, r, z))
    return _signed(n, either, n.b.addi(r.bits, n.i(1)))


def tan(n: Numbers, x: SSAValue) -> SSAValue:
    """2.5 ULP, of any argument."""
    above, below = sine_and_cosine(n, x)
    return n.div(above, below)


def atan2(n: Numbers, y: SSAValue, x: SSAValue) -> SSAValue:
    """Angle of (x, y), 2 ULP; quadrants and zeros as C99 has them."""
    b = n.b
    width, height = n.abs(x), n.abs(y)
    steep = n.cmp("ogt", height, width)
    large, small = n.select(steep, height, width), n.select(steep, width, height)
    if not n.single:
        # Neither sums nor quotients leave the range.
        big = n.cmp("ogt", large, 2.0**1000)
        tiny = n.cmp("olt", large, 2.0**-900)
        scale = n.select(big, n.c(2.0**-60), n.select(tiny, n.c(2.0**120), n.c(1.0)))
        large, small = n.mul(large, scale), n.mul(small, scale)
    zero, one = n.c(0.0), n.c(1.0)
    equal = n.cmp("oeq", large, small)
    # 0/0 and inf/inf: the diagonal, and the axis for two zeros.
    large, small = n.select(equal, one, large), n.select(equal, one, small)
    middle = n.cmp("ogt", small, n.mul(large, n.c(0.4142135623730950)))
    above = n.select(middle, n.sub(small, large), small)
    below = n.select(middle, n.add(small, large), large)
    t = n.div(above, below)
    angle = _atan_near(n, t, n.select(middle, n.c(0.7853981633974483), zero), middle)
    both = b.andi(n.cmp("oeq", width, 0.0), n.cmp("oeq", height, 0.0))
    angle = n.select(both, zero, angle)
    high, low = TABLES["HALF_PI.pair"]
    turned = n.add(n.sub(n.c(high), angle), n.c(low))
    angle = n.select(steep, turned, angle)
    back = n.add(n.sub(n.c(2 * high), angle), n.c(2 * low))
    angle = n.select(n.is_negative(x), back, angle)
    angle = n.with_sign(angle, y)
    return n.select(n.cmp("uno", x, y), n.add(x, y), angle)


def _atan_near(n: Numbers, t: SSAValue, offset: SSAValue, middle: SSAValue) -> SSAValue:
    """Offset + atan(t), |t| <= tan(π/8), the offset π/4 or 0."""
    z = n.mul(t, t)
    low = n.select(middle, n.c(TABLES["HALF_PI.pair"][1] / 2), n.c(0.0))
    series = n.fma(n.mul(t, z), n.poly(z, n.table("ATAN")), low)
    return n.add(offset, n.add(t, series))


def atan(n: Numbers, x: SSAValue) -> SSAValue:
    """2 ULP."""
    size = n.abs(x)
    one = n.c(1.0)
    middle_high = n.cmp("ogt", size, 2.414213562373095)
    middle_low = n.cmp("ogt", size, 0.4142135623730950)
    # Beyond tan(3π/8) by -1/x, beyond tan(π/8) by (x - 1)/(x + 1).
    above = n.select(middle_high, n.c(-1.0), n.select(middle_low, n.sub(size, one), size))
    below = n.select(middle_high, size, n.select(middle_low, n.add(size, one), one))
    t = n.div(above, below)
    high, low = TABLES["HALF_PI.pair"]

    def offset(part: float) -> SSAValue:
        return n.select(middle_high, n.c(part), n.select(middle_low, n.c(part / 2), n.c(0.0)))

    z = n.mul(t, t)
    series = n.fma(n.mul(t, z), n.poly(z, n.table("ATAN")), offset(low))
    return n.with_sign(n.add(offset(high), n.add(t, series)), x)


def asin(n: Numbers, x: SSAValue) -> SSAValue:
    """2.5 ULP; NaN beyond 1."""
    size = n.abs(x)
    z, root, series, far = _arc(n, size)
    del z
    high, low = TABLES["HALF_PI.pair"]
    near = n.fma(root, series, root)
    # π/2 - 2 asin(√((1 - x) / 2))
    beyond = n.sub(n.c(high), n.sub(n.add(near, near), n.c(low)))
    return n.with_sign(n.select(far, beyond, near), x)


def acos(n: Numbers, x: SSAValue) -> SSAValue:
    """1.5 ULP; NaN beyond 1."""
    size = n.abs(x)
    z, root, series, far = _arc(n, size)
    high, low = TABLES["HALF_PI.pair"]
    negative = n.cmp("olt", x, 0.0)
    signed = n.with_sign(root, x)
    near = n.sub(n.c(high), n.sub(signed, n.fma(n.neg(signed), series, n.c(low))))
    # What the root lost counts where the result is small.
    lost = n.div(n.fma(n.neg(root), root, z), n.add(root, root))
    lost = n.select(n.cmp("ogt", root, 0.0), lost, n.c(0.0))
    half = n.add(root, n.fma(root, series, lost))
    double = n.add(half, half)
    back = n.sub(n.c(2 * high), n.sub(double, n.c(2 * low)))
    return n.select(far, n.select(negative, back, double), near)


def _arc(n: Numbers, size: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
    """Square, argument, z q(z) of the argument, and whether it is the root of (1 - x)/2."""
    far = n.cmp("ogt", size, 0.5)
    half = n.c(0.5)
    z = n.select(far, n.fma(size, n.neg(half), half), n.mul(size, size))
    root = n.select(far, n.sqrt(z), size)
    return z, root, n.mul(z, n.poly(z, n.table("ASIN"))), far
