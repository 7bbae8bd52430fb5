"""Quotients of f32 by a divisor that stays the same: products, and a correction that makes them exact.

    in front of the loop:  y = 1 / s;  z = (1 - s y) y           y + z is 1 / s to 46 bits
    in the loop:           q = x y + x z;  q + (x - q s) y

`q` is off by less than a unit of the last place, `x - q s` is exact where nothing becomes too small, and the sum then
rounds to `x / s` rounded (Markstein's theorem; Muller and others, Handbook of Floating-Point Arithmetic, section 4.7).
A divisor, or a vector with elements, outside of a range where that holds is divided by an instruction, which takes
three times as long.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import FunctionBuilder
from mlirhlo.lowering.hlo_to_loops.elemental import Elements


def _bits(power: int) -> int:
    """The bits of a power of two."""
    return (power + 127) << 23


_LEAST, _DIVIDENDS = _bits(-62), _bits(62) - _bits(-62)
"""Bits of the least magnitude of dividends, and how many bit patterns there are up to the greatest."""
_LEAST_DIVISOR, _DIVISORS = _bits(-40), _bits(40) - _bits(-40)
"""The same of divisors."""


def quotient(e: Elements, x: SSAValue, divisor: SSAValue) -> SSAValue:
    """`x / divisor` of vectors of f32, rounded to nearest."""
    b = e.b
    prepared = e.steady(divisor, lambda: _prepared(b, divisor))
    if prepared is None:
        return b.divf(x, divisor)
    reciprocal, rest, less, span, zero = prepared
    bits = b.bitcast(x, i32)
    magnitude = b.andi(bits, b.constant(0x7FFFFFFF, bits.type))
    off = b.subi(magnitude, b.constant(_LEAST, bits.type))
    outside = b.andi(b.cmpi("uge", off, span), b.cmpi("ne", bits, zero))
    near = b.fma(x, reciprocal, b.mulf(x, rest))
    exact = b.fma(b.fma(near, less, x), reciprocal, near)
    with b.otherwise(b.reduce("or", outside), [exact]) as choice:
        choice.give(b.divf(x, divisor))
    return choice.results[0]


def _prepared(b: FunctionBuilder, divisor: SSAValue) -> Sequence[SSAValue]:
    """The reciprocal, what it lacks, the divisor's negative, the range of dividends' bits, and the bits of a zero that
    may be divided."""
    one = b.constant(1.0, divisor.type)
    reciprocal = b.divf(one, divisor)
    less = b.negf(divisor)
    rest = b.mulf(b.fma(less, reciprocal, one), reciprocal)
    bits = b.bitcast(divisor, i32)
    magnitude = b.andi(bits, b.constant(0x7FFFFFFF, bits.type))
    off = b.subi(magnitude, b.constant(_LEAST_DIVISOR, bits.type))
    is_usual = b.cmpi("ule", off, b.constant(_DIVISORS, bits.type))
    none = b.constant(0, bits.type)
    span = b.select(is_usual, b.constant(_DIVIDENDS, bits.type), none)
    # Of zeros, +0 by a positive divisor comes out right; a NaN of all bits is one in any case.
    is_positive = b.andi(is_usual, b.cmpi("sgt", bits, none))
    return reciprocal, rest, less, span, b.select(is_positive, none, b.constant(-1, bits.type))
