"""Other element types, the same bits as other types, and fewer bits."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects import math
from xdsl.dialects.builtin import IntegerType, bf16, f16, f32, i1, i16, i32
from xdsl.ir import SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import BF16, F16, F32, PRED, Kind, PrimitiveType
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.x86 import ClassFOp
from mlirhlo.dialects.x86vector import CvtPackedF32ToBF16Op
from mlirhlo.lowering.builder import FunctionBuilder, element_of, lanes_of, vector_of
from mlirhlo.lowering.hlo_to_loops.elemental import Elements, Place, emits
from mlirhlo.lowering.hlo_to_loops.elements import Value, register_type
from mlirhlo.lowering.hlo_to_loops.math_numbers import Numbers
from mlirhlo.lowering.hlo_to_loops.math_others import reduce_precision
from mlirhlo.lowering.hlo_to_loops.narrow_floats import from_narrow, is_narrow, to_narrow
from mlirhlo.lowering.hlo_to_loops.places import Coordinate
from mlirhlo.lowering.target import current

_BF16_LANES = 16
"""That the instruction rounds at once."""
_SUBNORMAL = 32


def element_type(value: SSAValue) -> PrimitiveType:
    """Element type of an array value."""
    return cast(ArrayShape, shape_of(value.type)).element_type


def no_meaning(op: Instruction, element: PrimitiveType) -> Exception:
    """The error for an opcode that has no code for an element type."""
    return error("HLO0432", f"`{op.opcode.name}` of {element} has no lowering to a loop")


def widened(b: FunctionBuilder, x: SSAValue, element: PrimitiveType) -> SSAValue:
    """A float as f32 at least."""
    if is_narrow(element):
        return from_narrow(b, x, element)
    return x if element.bits >= 32 else b.cast(casts.ExtFOp, x, f32)


def narrowed(b: FunctionBuilder, x: SSAValue, element: PrimitiveType) -> SSAValue:
    """Rounded to the element type it stands for."""
    if is_narrow(element):
        return to_narrow(b, x, element)
    type_ = register_type(element)
    if element is BF16 and element_of(x.type) == f32:
        return _rounded_to_bf16(b, x)
    return x if element_of(x.type) == type_ else b.cast(casts.TruncFOp, x, type_)


def _rounded_to_bf16(b: FunctionBuilder, x: SSAValue) -> SSAValue:
    """To nearest even. The instruction for it takes subnormal numbers for zero: vectors with such lanes are
    rounded by integers."""
    if current().has("ptx80"):
        return b.cast(casts.TruncFOp, x, bf16)
    if lanes_of(x.type) != _BF16_LANES or not current().has("avx512bf16", "avx512dq"):
        return _rounded_by_integers(b, x)
    fast = b.emit(CvtPackedF32ToBF16Op, (x,), vector_of(bf16, _BF16_LANES))
    flags = vector_of(i1, _BF16_LANES)
    special = b.emit(ClassFOp, (x, b.constant(_SUBNORMAL, i32)), flags)
    with b.otherwise(b.reduce("or", special), [fast]) as choice:
        choice.give(_rounded_by_integers(b, x))
    return choice.results[0]


def _rounded_by_integers(b: FunctionBuilder, x: SSAValue) -> SSAValue:
    bits = b.bitcast(x, i32)

    def word(number: int) -> SSAValue:
        return b.constant(number, bits.type)

    is_odd = b.cmpi("ne", b.andi(bits, word(0x10000)), word(0))
    rounded = b.select(is_odd, b.addi(bits, word(0x8000)), b.addi(bits, word(0x7FFF)))
    # A NaN could be rounded to infinity.
    kept = b.select(b.cmpf("uno", x, x), b.ori(bits, word(0x400000)), rounded)
    return b.bitcast(b.cast(casts.TruncIOp, b.shrui(kept, word(16)), i16), bf16)


@emits("copy", "opt-barrier", "convert")
def _convert_op(e: Elements, op: Instruction, place: Place) -> Value:
    source, target = element_type(op.inputs[0]), element_type(op.results[0])
    value = e.at(op.inputs[0], place)
    return convert(e.b, value, source, target)


def convert(
    b: FunctionBuilder, value: Value, source: PrimitiveType, target: PrimitiveType
) -> Value:
    """Another element type: floats saturate into integers, NaN is 0."""
    if source is target:
        return value
    if target.is_complex:
        real = value[0] if source.is_complex else convert(b, value, source, target.real)[0]
        imag = value[1] if source.is_complex else b.constant(0, real.type)
        if source.is_complex:
            parts = (convert(b, (v,), source.real, target.real)[0] for v in (real, imag))
            return tuple(parts)
        return (real, imag)
    if source.is_complex:
        return convert(b, value[:1], source.real, target)
    (x,) = value
    if is_narrow(source):
        return convert(b, (from_narrow(b, x, source),), F32, target)
    if is_narrow(target):
        (single,) = convert(b, value, source, F32)
        return (to_narrow(b, single, target),)
    if target.kind is Kind.PRED:
        if source.is_float:
            x = widened(b, x, source)
            return (b.cmpf("une", x, b.constant(0.0, x.type)),)
        return (b.cmpi("ne", x, b.constant(0, x.type)),)
    if source.kind is Kind.PRED:
        if target.is_integer:
            return (_resized(b, x, 1, target.bits, signed=False),)
        one = b.cast(casts.UIToFPOp, x, f32)
        return (_between_floats(b, one, 32, target),)
    if source.is_integer and target.is_integer:
        return (_resized(b, x, source.bits, target.bits, signed=source.is_signed),)
    if source.is_integer:
        if source.bits < 32:
            x = _resized(b, x, source.bits, 32, signed=source.is_signed)
        cls = casts.SIToFPOp if source.is_signed else casts.UIToFPOp
        through = register_type(target) if target.bits >= 32 else f32
        return (narrowed(b, b.cast(cls, x, through), target),)
    if target.is_integer:
        return (_saturated(b, widened(b, x, source), target),)
    return (_between_floats(b, x, source.bits, target),)


def _between_floats(b: FunctionBuilder, x: SSAValue, bits: int, target: PrimitiveType) -> SSAValue:
    type_ = register_type(target)
    if element_of(x.type) == type_:
        return x
    if bits < target.bits:
        return b.cast(casts.ExtFOp, x, type_)
    if bits == target.bits:  # f16 and bf16
        x, bits = b.cast(casts.ExtFOp, x, f32), 32
    if bits == 64 and target.bits < 32:
        x = b.cast(casts.TruncFOp, x, f32) if target.name == "bf16" else _rounded_to_odd(b, x)
    return narrowed(b, x, target)


def _rounded_to_odd(b: FunctionBuilder, x: SSAValue) -> SSAValue:
    """f64 as f32 whose last bit is set where it is not exact: rounding it again rounds once."""
    near = b.cast(casts.TruncFOp, x, f32)
    back = b.cast(casts.ExtFOp, near, element_of(x.type))
    bits = b.bitcast(near, IntegerType(32))
    one, zero = b.constant(1, bits.type), b.constant(0, bits.type)
    too_far = b.cmpf("ogt", b.one(math.AbsFOp, back), b.one(math.AbsFOp, x))
    lower = b.subi(bits, b.select(too_far, one, zero))
    inexact = b.cmpf("one", back, x)
    return b.bitcast(b.select(inexact, b.ori(lower, one), bits), f32)


def _resized(b: FunctionBuilder, x: SSAValue, before: int, after: int, *, signed: bool) -> SSAValue:
    type_ = IntegerType(after)
    if before == after:
        return x
    if before > after:
        return b.cast(casts.TruncIOp, x, type_)
    return b.cast(casts.ExtSIOp if signed else casts.ExtUIOp, x, type_)


def _saturated(b: FunctionBuilder, x: SSAValue, target: PrimitiveType) -> SSAValue:
    low = -(1 << (target.bits - 1)) if target.is_signed else 0
    high = low + (1 << target.bits) - 1
    if target.bits < 32:
        # Floats hold both ends. A comparison and a choice are one instruction, which takes NaN to `low`.
        least, most = (b.constant(float(n), x.type) for n in (low, high))
        inside = b.select(b.cmpf("ogt", x, least), x, least)
        inside = b.select(b.cmpf("olt", inside, most), inside, most)
        number = b.cast(casts.FPToSIOp, inside, IntegerType(32))
        number = b.select(b.cmpf("ord", x, x), number, b.constant(0, number.type))
        return b.cast(casts.TruncIOp, number, IntegerType(target.bits))
    above = b.cmpf("oge", x, b.constant(float(high + 1), x.type))
    below = b.cmpf("ole", x, b.constant(float(low - 1 if low > -(1 << 31) else low), x.type))
    ordered = b.cmpf("ord", x, x)
    inside = b.andi(ordered, b.xori(b.ori(above, below), b.constant(True, above.type)))
    safe = b.select(inside, x, b.constant(0.0, x.type))
    cls = casts.FPToSIOp if target.is_signed else casts.FPToUIOp
    value = b.cast(cls, safe, IntegerType(target.bits))
    result = b.select(above, b.constant(high, value.type), value)
    return b.select(below, b.constant(low, value.type), result)


@emits("bitcast-convert")
def _bitcast_convert(e: Elements, op: Instruction, place: Place) -> Value:
    """The same bits; a change of width adds or drops the most minor dimension, low bits first."""
    b = e.b
    source, target = element_type(op.inputs[0]), element_type(op.results[0])
    if source is target:
        return e.at(op.inputs[0], place)
    if source.is_complex or target.is_complex:
        raise no_meaning(op, target)
    before, after = bits_in_memory(source), bits_in_memory(target)
    if before > after:
        (x,) = e.at(op.inputs[0], place[:-1])
        bits = as_bits(b, x, source)
        if e.lanes:
            number = b.cast_index(e.places.vector(place[-1]), IntegerType(before))
        else:
            number = b.cast_index(b.index(place[-1].base), IntegerType(before))
        bits = b.shrui(bits, b.muli(number, b.constant(after, number.type)))
        return (from_bits(b, b.cast(casts.TruncIOp, bits, IntegerType(after)), target),)
    if before == after:
        (x,) = e.at(op.inputs[0], place)
        return (same_bits(b, x, source, target),)
    total: SSAValue | None = None
    for at in range(after // before):
        (x,) = e.at(op.inputs[0], (*place, Coordinate(at)))
        bits = b.cast(casts.ExtUIOp, as_bits(b, x, source), IntegerType(after))
        bits = b.shli(bits, b.constant(at * before, bits.type)) if at else bits
        total = bits if total is None else b.ori(total, bits)
    assert total is not None
    return (from_bits(b, total, target),)


def bits_in_memory(element: PrimitiveType) -> int:
    """Width of an element for changes of its type."""
    return 8 if element is PRED else element.bits


def same_bits(
    b: FunctionBuilder, x: SSAValue, source: PrimitiveType, target: PrimitiveType
) -> SSAValue:
    """The bits of an element as another type of that width; pred takes eight."""
    return from_bits(b, as_bits(b, x, source), target)


def as_bits(b: FunctionBuilder, x: SSAValue, element: PrimitiveType) -> SSAValue:
    """The bits of an element, as memory holds them, as an integer."""
    if element is PRED:
        return b.cast(casts.ExtUIOp, x, IntegerType(8))
    type_ = IntegerType(element.bits)
    return x if element_of(x.type) == type_ else b.bitcast(x, type_)


def from_bits(b: FunctionBuilder, bits: SSAValue, element: PrimitiveType) -> SSAValue:
    """The element of these bits."""
    if element is PRED:
        return b.cmpi("ne", bits, b.constant(0, bits.type))
    type_ = register_type(element)
    return bits if element_of(bits.type) == type_ else b.bitcast(bits, type_)


@emits("reduce-precision")
def _reduce_precision(e: Elements, op: Any, place: Place) -> Value:
    element = element_type(op.inputs[0])
    (x,) = e.at(op.inputs[0], place)
    if element is F16:
        return (_less_precise_f16(e.b, x, op.exponent_bits, op.mantissa_bits),)
    wide = widened(e.b, x, element)
    less = reduce_precision(Numbers(e.b, wide.type), wide, op.exponent_bits, op.mantissa_bits)
    return (narrowed(e.b, less, element),)


def _less_precise_f16(b: FunctionBuilder, x: SSAValue, exponent: int, mantissa: int) -> SSAValue:
    """f16 is rounded in its own bits: a denormal keeps its unit."""
    bits = b.bitcast(x, i16)

    def word(number: int) -> SSAValue:
        return b.constant(number, bits.type)

    result, dropped = bits, 10 - mantissa
    if dropped > 0:
        odd = b.andi(b.shrui(bits, word(dropped)), word(1))
        up = b.addi(odd, word((1 << (dropped - 1)) - 1))
        result = b.andi(b.addi(bits, up), word(-(1 << dropped)))
    if exponent < 5:
        bias, small = 15, (1 << (exponent - 1)) - 1
        power, sign = b.andi(result, word(0x7C00)), b.andi(bits, word(0x8000))
        over = b.cmpi("ugt", power, word((bias + small) << 10))
        under = b.cmpi("ule", power, word((bias - small) << 10))
        result = b.select(under, sign, result)
        result = b.select(over, b.ori(sign, word(0x7C00)), result)
    magnitude = b.andi(bits, word(0x7FFF))
    is_nan = b.cmpi("ugt", magnitude, word(0x7C00))
    return b.bitcast(b.select(is_nan, bits, result), f16)
