"""Floats of fewer than 16 bits, whose registers are integers: to f32 and back.

f32 holds them all exactly. Coming back, numbers are rounded to nearest even as ml_dtypes does it, and
overflow as the format has it: to infinity, to NaN, or to the largest number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import math
from xdsl.dialects.builtin import IntegerType, f32, i32
from xdsl.ir import SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.lowering.builder import FunctionBuilder


@dataclass(frozen=True, slots=True)
class Format:
    """How a narrow float is coded; codes are given without the sign."""

    bits: int
    mantissa: int
    bias: int
    largest: int
    """Code of the largest number."""
    infinity: int | None = None
    nan: int | None = None
    """The NaN that conversions make; None where there is none."""
    single_nan: bool = False
    """NaN is the code of -0, which is missing (`fnuz`)."""

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.bits - 1)


def _ieee(exponent: int, mantissa: int) -> Format:
    infinity = ((1 << exponent) - 1) << mantissa
    quiet = infinity | 1 << (mantissa - 1)
    return Format(
        8, mantissa, (1 << (exponent - 1)) - 1, infinity - 1, infinity=infinity, nan=quiet
    )


FORMATS: Mapping[str, Format] = {
    "f8e5m2": _ieee(5, 2),
    "f8e4m3": _ieee(4, 3),
    "f8e3m4": _ieee(3, 4),
    "f8e4m3fn": Format(8, 3, 7, 0x7E, nan=0x7F),
    "f8e4m3b11fnuz": Format(8, 3, 11, 0x7F, single_nan=True),
    "f8e4m3fnuz": Format(8, 3, 8, 0x7F, single_nan=True),
    "f8e5m2fnuz": Format(8, 2, 16, 0x7F, single_nan=True),
    "f4e2m1fn": Format(4, 1, 1, 0x7),
    "f6e3m2fn": Format(6, 2, 3, 0x1F),
    "f6e2m3fn": Format(6, 3, 1, 0x1F),
}
"""All but f8e8m0fnu, which has neither sign nor mantissa."""

_EXPONENTS = "f8e8m0fnu"


def is_narrow(element: PrimitiveType) -> bool:
    """Whether registers hold it as an integer."""
    return element.is_float and element.bits < 16


def from_narrow(b: FunctionBuilder, x: SSAValue, element: PrimitiveType) -> SSAValue:
    """The f32 of the same value."""
    code = b.cast(casts.ExtUIOp, x, i32)

    def i(number: int) -> SSAValue:
        return b.constant(number, code.type)

    if element.name == _EXPONENTS:
        # 2**-127 is subnormal in f32.
        shifted = b.select(b.cmpi("eq", code, i(0)), i(1 << 22), b.shli(code, i(23)))
        return b.bitcast(b.select(b.cmpi("eq", code, i(0xFF)), i(0x7FC00000), shifted), f32)
    form = FORMATS[element.name]
    size = b.andi(code, i(form.sign - 1))
    sign = b.shli(b.andi(code, i(form.sign)), i(32 - form.bits))
    # Exponent field and mantissa where f32 has them stand for 2**(bias - 127) times the number.
    small = b.bitcast(b.shli(size, i(23 - form.mantissa)), f32)
    number = b.mulf(small, b.constant(2.0 ** (127 - form.bias), small.type))
    bits = b.bitcast(number, i32)
    if form.infinity is not None:
        infinite = i(0x7F800000)
        bits = b.select(b.cmpi("eq", size, i(form.infinity)), infinite, bits)
        bits = b.select(b.cmpi("ugt", size, i(form.infinity)), i(0x7FC00000), bits)
    elif form.nan is not None:
        bits = b.select(b.cmpi("eq", size, i(form.nan)), i(0x7FC00000), bits)
    bits = b.ori(bits, sign)
    if form.single_nan:
        bits = b.select(b.cmpi("eq", code, i(form.sign)), i(0xFFC00000), bits)
    return b.bitcast(bits, f32)


def to_narrow(b: FunctionBuilder, x: SSAValue, element: PrimitiveType) -> SSAValue:
    """f32 rounded to the type."""
    word = b.bitcast(x, i32)

    def i(number: int) -> SSAValue:
        return b.constant(number, word.type)

    if element.name == _EXPONENTS:
        return b.cast(casts.TruncIOp, _exponent_code(b, word), IntegerType(8))
    form = FORMATS[element.name]
    size = b.andi(word, i(0x7FFFFFFF))
    sign = b.andi(b.shrui(word, i(32 - form.bits)), i(form.sign))
    dropped = 23 - form.mantissa
    odd = b.andi(b.shrui(size, i(dropped)), i(1))
    half = i((1 << (dropped - 1)) - 1)
    normal = b.shrui(b.addi(b.addi(size, half), odd), i(dropped))
    normal = b.subi(normal, i((127 - form.bias) << form.mantissa))
    # Below the least normal number: what is added puts the last place where f32 has its own.
    shift = b.constant(2.0 ** (24 - form.bias - form.mantissa), x.type)
    magnitude = b.one(math.AbsFOp, x)
    subnormal = b.subi(b.bitcast(b.addf(magnitude, shift), i32), b.bitcast(shift, i32))
    least = b.constant(2.0 ** (1 - form.bias), x.type)
    code = b.select(b.cmpf("olt", magnitude, least), subnormal, normal)
    over = b.cmpi("sgt", code, i(form.largest))
    if form.infinity is not None:
        code = b.select(over, i(form.infinity), code)
    elif form.nan is not None:
        code = b.select(over, i(form.nan), code)
    else:
        code = b.select(over, i(form.largest), code)
    is_nan = b.cmpi("ugt", size, i(0x7F800000))
    if form.nan is not None:
        code = b.select(is_nan, i(form.nan), code)
    signed = b.ori(code, sign)
    if form.single_nan:
        signed = b.select(b.cmpi("eq", code, i(0)), i(0), signed)
        signed = b.select(b.ori(over, is_nan), i(form.sign), signed)
    elif form.nan is None:
        # No NaN: ml_dtypes makes a zero of the other sign.
        signed = b.select(is_nan, b.xori(sign, i(form.sign)), signed)
    return b.cast(casts.TruncIOp, signed, IntegerType(form.bits))


def _exponent_code(b: FunctionBuilder, word: SSAValue) -> SSAValue:
    """f8e8m0fnu of f32: halves up, NaN of what is not above 0."""

    def i(number: int) -> SSAValue:
        return b.constant(number, word.type)

    code = b.shrui(b.addi(word, i(1 << 22)), i(23))
    code = b.select(b.cmpi("eq", word, i(1 << 22)), i(0), code)
    outside = b.ori(b.cmpi("sle", word, i(0)), b.cmpi("sge", word, i(0x7F800000)))
    return b.select(outside, i(0xFF), code)
