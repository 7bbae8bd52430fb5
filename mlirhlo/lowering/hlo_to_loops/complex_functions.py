"""Elementary functions of complex numbers in f64, from those of their parts.

Logarithms of sizes near 1 go by log1p of what the square of the size is above 1, with that square as a
sum of two numbers. The inverse functions are Kahan's, which keep to both sides of their cuts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from xdsl.ir import SSAValue

from mlirhlo.lowering.hlo_to_loops import complex_arithmetic as z
from mlirhlo.lowering.hlo_to_loops import math_exponential as exponential
from mlirhlo.lowering.hlo_to_loops import math_logarithm as logarithm
from mlirhlo.lowering.hlo_to_loops.complex_arithmetic import Pair
from mlirhlo.lowering.hlo_to_loops.math_numbers import INFINITY, NAN, Numbers
from mlirhlo.lowering.hlo_to_loops.math_trigonometry import atan2 as angle_of
from mlirhlo.lowering.hlo_to_loops.math_trigonometry import sine_and_cosine

Function: TypeAlias = "Callable[..., Pair]"


def _squares(n: Numbers, first: SSAValue, *pairs: Pair) -> SSAValue:
    """First + the products of the pairs, with what each step loses."""
    total, low = first, n.c(0.0)
    for x, y in pairs:
        product, lost = n.two_product(x, y)
        total, lost_too = n.two_sum(total, product)
        low = n.add(low, n.add(lost, lost_too))
    return n.add(total, low)


def log_size(n: Numbers, x: Pair) -> SSAValue:
    """Log |x|."""
    k = n.b
    a, b = n.abs(x[0]), n.abs(x[1])
    swap = n.cmp("olt", a, b)
    large, small = n.select(swap, b, a), n.select(swap, a, b)
    one = n.c(1.0)
    near = k.andi(n.cmp("ogt", large, 0.6), n.cmp("olt", large, 1.5))
    # (large - 1)(large + 1) is exact in its factors where it cancels.
    above = _squares(n, n.c(0.0), (n.sub(large, one), n.add(large, one)), (small, small))
    quotient = n.div(small, large)
    ordinary = k.andi(n.cmp("ogt", large, 0.0), n.cmp("olt", large, INFINITY))
    quotient = n.select(ordinary, quotient, n.c(0.0))
    argument = n.select(near, above, n.mul(quotient, quotient))
    base = n.select(near, n.c(0.0), logarithm.log(n, large))
    result = n.fma(logarithm.log1p(n, argument), n.c(0.5), base)
    result = n.select(n.cmp("uno", a, b), n.c(NAN), result)
    return n.select(k.ori(z.is_infinite(n, a), z.is_infinite(n, b)), n.c(INFINITY), result)


def log(n: Numbers, x: Pair) -> Pair:
    """Log |x| + i angle."""
    return log_size(n, x), angle_of(n, x[1], x[0])


def log1p(n: Numbers, x: Pair) -> Pair:
    """log(1 + x), exact near 0."""
    a, b = x
    small = n.b.andi(n.cmp("olt", n.abs(a), 0.5), n.cmp("olt", n.abs(b), 0.5))
    squared = _squares(n, n.add(a, a), (a, a), (b, b))
    near = n.mul(logarithm.log1p(n, squared), n.c(0.5))
    one_more = n.add(a, n.c(1.0))
    real = n.select(small, near, log_size(n, (one_more, b)))
    return real, angle_of(n, b, one_more)


def _polar(n: Numbers, exponent: SSAValue, angle: SSAValue) -> Pair:
    """E**exponent at an angle; large sizes and small cosines may meet."""
    sine, cosine = sine_and_cosine(n, angle)
    over = n.cmp("ogt", exponent, 700.0)
    length = exponential.exp(n, n.select(over, n.sub(exponent, n.c(700.0)), exponent))
    factor = n.select(over, n.c(math.exp(700.0)), n.c(1.0))
    real, imag = n.mul(n.mul(length, cosine), factor), n.mul(n.mul(length, sine), factor)
    return real, n.select(n.cmp("oeq", angle, 0.0), angle, imag)


def exp(n: Numbers, x: Pair) -> Pair:
    """e**x; a real argument stays real."""
    a, b = x
    k = n.b
    real, imag = _polar(n, a, b)
    wild = k.xori(z.is_finite(n, b), k.constant(True, n.cmp("oeq", b, b).type))
    vanishing = k.andi(wild, n.cmp("oeq", a, -INFINITY))
    endless = k.andi(wild, n.cmp("oeq", a, INFINITY))
    zero = n.c(0.0)
    real = n.select(vanishing, zero, n.select(endless, n.c(INFINITY), real))
    return real, n.select(vanishing, zero, imag)


def expm1(n: Numbers, x: Pair) -> Pair:
    """e**x - 1, exact near 0."""
    a, b = x
    half, _ = sine_and_cosine(n, n.mul(b, n.c(0.5)))
    sine, cosine = sine_and_cosine(n, b)
    doubled = n.mul(n.add(half, half), half)
    real = n.sub(n.mul(exponential.expm1(n, a), cosine), doubled)
    imag = n.mul(exponential.exp(n, a), sine)
    return real, n.select(n.cmp("oeq", b, 0.0), b, imag)


def logistic(n: Numbers, x: Pair) -> Pair:
    """1 / (1 + e**-x)."""
    real, imag = exp(n, (n.neg(x[0]), n.neg(x[1])))
    return z.divide(n, (n.c(1.0), n.c(0.0)), (n.add(real, n.c(1.0)), imag))


def tanh(n: Numbers, x: Pair) -> Pair:
    """(sinh a cosh a + i sin b cos b) / (sinh² a + cos² b)."""
    a, b = x
    sine, cosine = sine_and_cosine(n, b)
    far = n.cmp("ogt", n.abs(a), 22.0)
    near = n.select(far, n.c(22.0), a)
    sinh, cosh = exponential.sinh(n, near), exponential.cosh(n, near)
    below = n.fma(sinh, sinh, n.mul(cosine, cosine))
    real = n.select(far, n.with_sign(n.c(1.0), a), n.div(n.mul(sinh, cosh), below))
    product = n.mul(sine, cosine)
    shrunk = n.mul(exponential.exp(n, n.mul(n.abs(a), n.c(-2.0))), n.c(4.0))
    imag = n.select(far, n.mul(product, shrunk), n.div(product, below))
    endless = n.b.andi(z.is_infinite(n, a), n.cmp("uno", imag, imag))
    imag = n.select(endless, n.with_sign(n.c(0.0), b), imag)
    return real, n.select(n.cmp("oeq", b, 0.0), b, imag)


def tan(n: Numbers, x: Pair) -> Pair:
    """-i tanh(i x)."""
    return z.times_minus_i(n, tanh(n, z.times_i(n, x)))


def _hyperbolic(n: Numbers, x: Pair) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
    sine, cosine = sine_and_cosine(n, x[0])
    return sine, cosine, exponential.sinh(n, x[1]), exponential.cosh(n, x[1])


def sine(n: Numbers, x: Pair) -> Pair:
    """Sin a cosh b + i cos a sinh b."""
    sin, cos, sinh, cosh = _hyperbolic(n, x)
    real = n.select(n.cmp("oeq", x[0], 0.0), x[0], n.mul(sin, cosh))
    lost = n.cmp("uno", cos, cos)
    flat = n.select(lost, x[1], n.mul(cos, x[1]))
    imag = n.select(n.b.andi(lost, z.is_infinite(n, x[1])), n.c(INFINITY), n.mul(cos, sinh))
    return real, n.select(n.cmp("oeq", x[1], 0.0), flat, imag)


def cosine(n: Numbers, x: Pair) -> Pair:
    """Cos a cosh b - i sin a sinh b."""
    sin, cos, sinh, cosh = _hyperbolic(n, x)
    imag = n.neg(n.mul(sin, sinh))
    # A part that is zero leaves a zero, whatever the other one is.
    one = n.c(1.0)
    steep = n.neg(n.mul(x[0], n.with_sign(one, x[1])))
    steep = n.select(n.cmp("uno", x[1], x[1]), x[0], steep)
    lost = n.cmp("uno", sin, sin)
    flat = n.select(lost, n.c(0.0), n.neg(n.mul(n.with_sign(one, sin), x[1])))
    imag = n.select(n.cmp("oeq", x[1], 0.0), flat, imag)
    real = n.select(n.b.andi(lost, z.is_infinite(n, x[1])), n.c(INFINITY), n.mul(cos, cosh))
    return real, n.select(n.cmp("oeq", x[0], 0.0), steep, imag)


def sinh(n: Numbers, x: Pair) -> Pair:
    """-i sin(i x)."""
    return z.times_minus_i(n, sine(n, z.times_i(n, x)))


def cosh(n: Numbers, x: Pair) -> Pair:
    """cos(-i x)."""
    return cosine(n, z.times_minus_i(n, x))


def power(n: Numbers, x: Pair, y: Pair) -> Pair:
    """e**(y log x); x**0 and 1**y are 1, 0**y and inf**-y are 0 and inf**y is inf for real y > 0."""
    k = n.b
    (a, b), (c, d) = x, y
    length, angle = log_size(n, x), angle_of(n, b, a)
    size = n.sub(n.mul(c, length), n.mul(d, angle))
    turn = n.add(n.mul(d, length), n.mul(c, angle))
    sine, cosine = sine_and_cosine(n, turn)
    size = exponential.exp(n, size)
    result = n.mul(size, cosine), n.mul(size, sine)
    zero, one = n.c(0.0), n.c(1.0)
    real, real_power = n.cmp("oeq", b, 0.0), n.cmp("oeq", d, 0.0)
    up, down = (k.andi(real_power, n.cmp(p, c, 0.0)) for p in ("ogt", "olt"))
    none, all_ = (k.andi(real, n.cmp("oeq", a, v)) for v in (0.0, INFINITY))
    vanishing = k.ori(k.andi(none, up), k.andi(all_, down))
    result = z.select(n, vanishing, (zero, zero), result)
    result = z.select(n, k.andi(all_, up), (n.c(INFINITY), zero), result)
    unit = k.andi(real, n.cmp("oeq", a, 1.0))
    whole = k.ori(unit, k.andi(n.cmp("oeq", c, 0.0), real_power))
    return z.select(n, whole, (one, zero), result)


def cbrt(n: Numbers, x: Pair) -> Pair:
    """The principal cube root."""
    length = logarithm.cbrt(n, z.size(n, x))
    sine, cosine = sine_and_cosine(n, n.div(angle_of(n, x[1], x[0]), n.c(3.0)))
    return n.mul(length, cosine), n.mul(length, sine)


def _roots(n: Numbers, x: Pair) -> tuple[Pair, Pair]:
    """√(1 - x) and √(1 + x)."""
    one = n.c(1.0)
    below = z.sqrt(n, (n.sub(one, x[0]), n.neg(x[1])))
    return below, z.sqrt(n, (n.add(one, x[0]), x[1]))


def _zero_and_nan(n: Numbers, x: Pair) -> SSAValue:
    """Whether the real part is 0 and the imaginary one is no number."""
    return n.b.andi(n.cmp("oeq", x[0], 0.0), n.cmp("uno", x[1], x[1]))


def asin(n: Numbers, x: Pair) -> Pair:
    """Cuts on the real axis outside [-1, 1]."""
    (a, b), (c, d) = _roots(n, x)
    real = angle_of(n, x[0], n.sub(n.mul(a, c), n.mul(b, d)))
    imag = logarithm.asinh(n, n.sub(n.mul(a, d), n.mul(b, c)))
    endless = n.b.ori(z.is_infinite(n, x[0]), z.is_infinite(n, x[1]))
    real = n.select(endless, angle_of(n, x[0], n.abs(x[1])), real)
    imag = n.select(endless, n.c(INFINITY), imag)
    return n.select(_zero_and_nan(n, x), x[0], real), n.with_sign(imag, x[1])


def acos(n: Numbers, x: Pair) -> Pair:
    """Cuts on the real axis outside [-1, 1]."""
    (a, b), (c, d) = _roots(n, x)
    real = angle_of(n, a, c)
    imag = logarithm.asinh(n, n.sub(n.mul(b, c), n.mul(a, d)))
    endless = n.b.ori(z.is_infinite(n, x[0]), z.is_infinite(n, x[1]))
    real = n.select(endless, angle_of(n, n.abs(x[1]), x[0]), n.add(real, real))
    real = n.select(_zero_and_nan(n, x), n.c(math.pi / 2), real)
    imag = n.select(endless, n.c(INFINITY), imag)
    return real, n.with_sign(imag, n.neg(x[1]))


def asinh(n: Numbers, x: Pair) -> Pair:
    """-i asin(i x)."""
    return z.times_minus_i(n, asin(n, z.times_i(n, x)))


def acosh(n: Numbers, x: Pair) -> Pair:
    """Cut on the real axis below 1."""
    one = n.c(1.0)
    a, b = z.sqrt(n, (n.sub(x[0], one), x[1]))
    c, d = z.sqrt(n, (n.add(x[0], one), x[1]))
    real = logarithm.asinh(n, n.add(n.mul(a, c), n.mul(b, d)))
    half = angle_of(n, b, c)
    endless = n.b.ori(z.is_infinite(n, x[0]), z.is_infinite(n, x[1]))
    imag = n.select(endless, angle_of(n, x[1], x[0]), n.add(half, half))
    imag = n.select(_zero_and_nan(n, x), n.c(math.pi / 2), imag)
    return n.select(endless, n.c(INFINITY), real), imag


def atanh(n: Numbers, x: Pair) -> Pair:
    """Cuts on the real axis outside [-1, 1]."""
    a, b = x
    one = n.c(1.0)
    size = n.abs(a)
    rest = n.sub(one, size)
    below = n.fma(rest, rest, n.mul(b, b))
    quarter = n.mul(logarithm.log1p(n, n.div(n.mul(n.c(4.0), size), below)), n.c(0.25))
    # Beyond 2**500 the size is lost in its square and the quotient is 1 / size.
    huge = n.cmp("ogt", z.greater_size(n, a, b), 2.0**500)
    tiny, _ = z.divide(n, (one, n.c(0.0)), x)
    real = n.select(huge, n.abs(tiny), quarter)
    turned = angle_of(n, n.add(b, b), n.sub(n.mul(rest, n.add(one, size)), n.mul(b, b)))
    half_turn = n.with_sign(n.c(math.pi / 2), b)
    imag = n.select(huge, half_turn, n.mul(turned, n.c(0.5)))
    unknown = [n.cmp("uno", v, v) for v in (a, b)]
    flat = n.b.andi(unknown[1], n.b.ori(n.cmp("oeq", a, 0.0), z.is_infinite(n, a)))
    far = n.b.andi(unknown[0], z.is_infinite(n, b))
    real = n.select(n.b.ori(flat, far), n.c(0.0), real)
    return n.with_sign(real, a), n.select(far, half_turn, imag)


def atan(n: Numbers, x: Pair) -> Pair:
    """-i atanh(i x)."""
    return z.times_minus_i(n, atanh(n, z.times_i(n, x)))


def atan2(n: Numbers, y: Pair, x: Pair) -> Pair:
    """-i log((x + i y) / √(x x + y y))."""
    squares = [z.multiply(n, v, v) for v in (x, y)]
    root = z.sqrt(n, (n.add(squares[0][0], squares[1][0]), n.add(squares[0][1], squares[1][1])))
    turned = z.times_i(n, y)
    quotient = z.divide(n, (n.add(x[0], turned[0]), n.add(x[1], turned[1])), root)
    return z.times_minus_i(n, log(n, quotient))


FUNCTIONS: Mapping[str, Function] = {
    "sqrt": z.sqrt,
    "rsqrt": z.reciprocal_root,
    "exponential": exp,
    "exponential-minus-one": expm1,
    "log": log,
    "log-plus-one": log1p,
    "logistic": logistic,
    "tanh": tanh,
    "tan": tan,
    "sine": sine,
    "cosine": cosine,
    "sinh": sinh,
    "cosh": cosh,
    "power": power,
    "cbrt": cbrt,
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "atan2": atan2,
}
"""By opcode: of f64 pairs."""
