"""Arithmetic of complex numbers in f64: quotients, sizes, roots and what takes a few operations.

A number is a pair of values. c64 is computed in c128, as the interpreter does, so that only c128 itself
comes near the ends of its range.
"""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import lanes_of
from mlirhlo.lowering.hlo_to_loops import extremes
from mlirhlo.lowering.hlo_to_loops.math_numbers import INFINITY, Numbers

Pair: TypeAlias = "tuple[SSAValue, SSAValue]"
"""Real and imaginary part."""


def multiply(n: Numbers, x: Pair, y: Pair) -> Pair:
    """As written: every product is rounded."""
    (a, b), (c, d) = x, y
    real = n.sub(n.mul(a, c), n.mul(b, d))
    return real, n.add(n.mul(a, d), n.mul(b, c))


def select(n: Numbers, mask: SSAValue, x: Pair, y: Pair) -> Pair:
    """By both parts."""
    return n.select(mask, x[0], y[0]), n.select(mask, x[1], y[1])


def is_infinite(n: Numbers, x: SSAValue) -> SSAValue:
    """Whether |x| is infinite."""
    return n.cmp("oeq", n.abs(x), INFINITY)


def is_finite(n: Numbers, x: SSAValue) -> SSAValue:
    """Whether x is a number."""
    return n.cmp("olt", n.abs(x), INFINITY)


def greater_size(n: Numbers, x: SSAValue, y: SSAValue) -> SSAValue:
    """The greater of |x| and |y|."""
    return n.max(n.abs(x), n.abs(y))


def unit(n: Numbers, size: SSAValue) -> SSAValue:
    """A power of two that brings a size near 1; 1 for 0 and what is not finite."""
    b = n.b
    field = b.shrui(n.bits(size), n.i(n.mantissa))
    most = 2 * n.bias
    usual = b.subi(n.i(most), b.integer(arith.MinSIOp, field, n.i(most - 1)))
    scale = n.real(b.shli(usual, n.i(n.mantissa)))
    plain = b.andi(n.cmp("olt", size, INFINITY), n.cmp("ogt", size, 0.0))
    return n.select(plain, scale, n.c(1.0))


def divide(n: Numbers, x: Pair, y: Pair) -> Pair:
    """X / y with scaling; zero divisors and infinities as in C99 Annex G."""
    return _quotient(n, x, y, unit(n, greater_size(n, *y)))


def plain_divide(n: Numbers, x: Pair, y: Pair) -> Pair:
    """X / y of parts whose squares neither overflow nor vanish."""
    return _quotient(n, x, y, None)


def _quotient(n: Numbers, x: Pair, y: Pair, scale: SSAValue | None) -> Pair:
    """What is lost to NaN is rare: it is looked at where some lane has it."""
    k = n.b
    a, b = x
    c_, d_ = (v if scale is None else n.mul(v, scale) for v in y)
    below = n.add(n.mul(c_, c_), n.mul(d_, d_))
    real = n.div(n.add(n.mul(a, c_), n.mul(b, d_)), below)
    imag = n.div(n.sub(n.mul(b, c_), n.mul(a, d_)), below)
    if scale is not None:
        real, imag = n.mul(real, scale), n.mul(imag, scale)
    lost = k.andi(n.cmp("uno", real, real), n.cmp("uno", imag, imag))
    some = k.reduce("or", lost) if lanes_of(lost.type) else lost
    with k.otherwise(some, (real, imag)) as choice:
        choice.give(*select(n, lost, _lost(n, x, y, below, (real, imag)), (real, imag)))
    return choice.results[0], choice.results[1]


def _lost(n: Numbers, x: Pair, y: Pair, below: SSAValue, otherwise: Pair) -> Pair:
    """Quotients by zero, and of what is infinite."""
    k = n.b
    (a, b), (c, d) = x, y
    some = k.ori(n.cmp("ord", a, a), n.cmp("ord", b, b))
    zero = k.andi(n.cmp("oeq", below, 0.0), some)
    infinity = n.with_sign(n.c(INFINITY), c)
    by_zero = n.mul(infinity, a), n.mul(infinity, b)
    finite_y = k.andi(is_finite(n, c), is_finite(n, d))
    finite_x = k.andi(is_finite(n, a), is_finite(n, b))
    large = k.andi(k.ori(is_infinite(n, a), is_infinite(n, b)), finite_y)
    small = k.andi(k.ori(is_infinite(n, c), is_infinite(n, d)), finite_x)

    def boxed(v: SSAValue) -> SSAValue:
        return n.with_sign(n.select(is_infinite(n, v), n.c(1.0), n.c(0.0)), v)

    def turned(p: SSAValue, q: SSAValue, r: SSAValue, s: SSAValue, times: float) -> Pair:
        first = n.add(n.mul(p, r), n.mul(q, s))
        second = n.sub(n.mul(q, r), n.mul(p, s))
        return n.mul(n.c(times), first), n.mul(n.c(times), second)

    from_large = turned(boxed(a), boxed(b), c, d, INFINITY)
    from_small = turned(a, b, boxed(c), boxed(d), 0.0)
    rest = select(n, small, from_small, otherwise)
    rest = select(n, large, from_large, rest)
    return select(n, zero, by_zero, rest)


def size(n: Numbers, x: Pair) -> SSAValue:
    """|x|, without overflow on the way; infinite where a part is."""
    a, b = x
    scale = unit(n, greater_size(n, a, b))
    a_, b_ = n.mul(a, scale), n.mul(b, scale)
    root = n.sqrt(n.fma(a_, a_, n.mul(b_, b_)))
    either = n.b.ori(is_infinite(n, a), is_infinite(n, b))
    return n.select(either, n.c(INFINITY), n.div(root, scale))


def plain_size(n: Numbers, x: Pair) -> SSAValue:
    """|x| of parts whose squares are numbers; infinite where one is."""
    square, either = _square(n, x)
    return n.select(either, n.c(INFINITY), n.sqrt(square))


def narrow_size(n: Numbers, x: Pair) -> SSAValue:
    """|x| in f32 alone, as f64 rounds it but for one number in millions; infinite where a part is.

    Of parts near 1 the sum of squares and what rounding it lost, then two steps of Newton's from an estimate.
    """
    k = n.b
    a, b = x
    greater = extremes.greater_size(k, a, b)
    field = k.andi(n.bits(greater), n.i(0x7F800000))
    field = k.integer(arith.MaxSIOp, field, n.i(1 << n.mantissa))
    field = k.integer(arith.MinSIOp, field, n.i((2 * n.bias - 1) << n.mantissa))
    scale = n.real(k.subi(n.i((2 * n.bias) << n.mantissa), field))
    a, b = n.mul(a, scale), n.mul(b, scale)
    part, lost_part = n.two_product(b, b)
    square = n.fma(a, a, part)
    other, beyond = n.fast_two_sum(square, n.neg(part))
    lost = n.sub(n.add(n.fma(a, a, n.neg(other)), lost_part), beyond)
    estimate = n.root_estimate(square)
    half = n.mul(estimate, n.c(0.5))
    root = n.mul(square, estimate)
    root = n.fma(n.fma(n.neg(root), root, square), half, root)
    half = n.fma(n.fma(n.neg(root), estimate, n.c(1.0)), half, half)
    left = n.add(n.fma(n.neg(root), root, square), lost)
    root = n.mul(n.fma(left, half, root), n.real(field))
    special = k.ori(n.cmp("oeq", square, 0.0), n.cmp("oeq", greater, INFINITY))
    return n.select(special, greater, root)


def plain_sign(n: Numbers, x: Pair) -> Pair:
    """X / |x| of parts whose squares are numbers; 0 stays 0."""
    square, either = _square(n, x)
    inverse = n.select(n.cmp("oeq", square, 0.0), square, n.near_inverse_root(square))
    inverse = n.select(either, n.c(0.0), inverse)
    return n.mul(x[0], inverse), n.mul(x[1], inverse)


def _square(n: Numbers, x: Pair) -> tuple[SSAValue, SSAValue]:
    """|x|², and whether a part is infinite."""
    a, b = x
    either = n.b.ori(is_infinite(n, a), is_infinite(n, b))
    return n.fma(a, a, n.mul(b, b)), either


def sign(n: Numbers, x: Pair) -> Pair:
    """X / |x|; 0 stays 0."""
    length = size(n, x)
    safe = n.select(n.cmp("oeq", length, 0.0), n.c(1.0), length)
    return n.div(x[0], safe), n.div(x[1], safe)


def sqrt(n: Numbers, x: Pair) -> Pair:
    """The root whose real part is not negative."""
    a, b = x
    greater = greater_size(n, a, b)
    big, tiny = n.cmp("ogt", greater, 2.0**1000), n.cmp("olt", greater, 2.0**-900)
    scale = n.select(big, n.c(0.25), n.select(tiny, n.c(2.0**200), n.c(1.0)))
    back = n.select(big, n.c(2.0), n.select(tiny, n.c(2.0**-100), n.c(1.0)))
    a_, b_ = n.mul(a, scale), n.mul(b, scale)
    length = size(n, (a_, b_))
    t = n.sqrt(n.mul(n.add(n.abs(a_), length), n.c(0.5)))
    zero = n.cmp("oeq", t, 0.0)
    other = n.select(zero, b_, n.div(b_, n.add(t, t)))
    left = n.is_negative(a)
    real, imag = n.select(left, n.abs(other), t), n.select(left, n.with_sign(t, b), other)
    real, imag = n.mul(real, back), n.mul(imag, back)
    real, imag = n.select(zero, n.c(0.0), real), n.select(zero, b, imag)
    endless = is_infinite(n, b)
    return n.select(endless, n.c(INFINITY), real), n.select(endless, b, imag)


def reciprocal_root(n: Numbers, x: Pair) -> Pair:
    """1 / sqrt(x)."""
    return divide(n, (n.c(1.0), n.c(0.0)), sqrt(n, x))


def times_i(n: Numbers, x: Pair) -> Pair:
    """I x, exact."""
    return n.neg(x[1]), x[0]


def times_minus_i(n: Numbers, x: Pair) -> Pair:
    """-i x, exact."""
    return x[1], n.neg(x[0])
