"""`stochastic-convert`: rounded by given random bits, in f64 as the interpreter does."""

from __future__ import annotations

from math import inf

from xdsl.dialects import math
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import F64, Kind, PrimitiveType
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.lowering.builder import FunctionBuilder
from mlirhlo.lowering.hlo_to_loops.elemental import Elements, Place, emits
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import (
    as_bits,
    convert,
    element_type,
    from_bits,
    no_meaning,
)


@emits("stochastic-convert")
def _stochastic_convert(e: Elements, op: Instruction, place: Place) -> Value:
    b = e.b
    value, random = (e.at(v, place) for v in op.inputs)
    source, bits_type = (element_type(v) for v in op.inputs)
    target = element_type(op.output)
    if not source.is_float or target.is_complex or target.kind is Kind.PRED:
        raise no_meaning(op, source)
    if target.is_integer:
        return _whole(b, value, random[0], bits_type, source, target)
    (drawn,) = convert(b, random, bits_type, F64)
    return _float(b, value, drawn, bits_type.bits, source, target)


def _whole(
    b: FunctionBuilder,
    value: Value,
    drawn: SSAValue,
    bits_type: PrimitiveType,
    source: PrimitiveType,
    target: PrimitiveType,
) -> Value:
    """|x| truncated, and one more where the random bits, as a fraction, lie below the rest."""
    (x,) = convert(b, value, source, F64)
    size = b.one(math.AbsFOp, x)
    whole = b.one(math.FloorOp, size)
    rest = b.mulf(b.subf(size, whole), b.constant(2.0**bits_type.bits, x.type))
    (limit,) = convert(b, (rest,), F64, bits_type)
    up = b.cmpi("ult", drawn, limit)
    moved = b.select(up, b.addf(whole, b.constant(1.0, x.type)), whole)
    negative = b.cmpf("olt", x, b.constant(0.0, x.type))
    return convert(b, (b.select(negative, b.negf(moved), moved),), F64, target)


def _float(
    b: FunctionBuilder,
    value: Value,
    drawn: SSAValue,
    bits: int,
    source: PrimitiveType,
    target: PrimitiveType,
) -> Value:
    """Of the two numbers of `target` around x, the outer one with the odds of the lost part."""
    (x,) = convert(b, value, source, F64)
    near = convert(b, value, source, target)
    (nearest,) = convert(b, near, target, F64)
    size = b.one(math.AbsFOp, x)
    is_inner = b.cmpf("ole", b.one(math.AbsFOp, nearest), size)
    word = as_bits(b, near[0], target)
    one = b.constant(1, word.type)
    beyond = b.select(is_inner, b.addi(word, one), b.subi(word, one))
    (other,) = convert(b, (from_bits(b, beyond, target),), target, F64)
    inner, outer = b.select(is_inner, nearest, other), b.select(is_inner, other, nearest)
    gap = b.one(math.AbsFOp, b.subf(outer, inner))
    no_gap = b.cmpf("oeq", gap, b.constant(0.0, x.type))
    lost = b.one(math.AbsFOp, b.subf(x, inner))
    odds = b.divf(lost, b.select(no_gap, b.constant(1.0, x.type), gap))
    fraction = b.mulf(drawn, b.constant(2.0**-bits, x.type))
    chosen = b.select(b.cmpf("olt", fraction, odds), outer, inner)
    infinite = b.constant(inf, x.type)
    finite = b.andi(
        b.cmpf("olt", size, infinite), b.cmpf("olt", b.one(math.AbsFOp, nearest), infinite)
    )
    inexact = b.andi(finite, b.cmpf("one", nearest, x))
    return convert(b, (b.select(inexact, chosen, nearest),), F64, target)
