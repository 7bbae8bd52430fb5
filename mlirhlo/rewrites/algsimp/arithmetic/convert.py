"""Rules of convert and bitcast-convert."""

from __future__ import annotations

from typing import Any

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BitcastConvertOp,
    ConcatenateOp,
    ConvertOp,
    DivideOp,
    MultiplyOp,
    ReducePrecisionOp,
    RemainderOp,
    SubtractOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.importing import LATE
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    has_one_user,
    literal_of,
    made_by,
)
from mlirhlo.rewrites.rules import Rewriter, rule

with LATE:
    from mlirhlo import interp


@rule(ConvertOp)
def convert_to_same_type(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(x) => x, x of that type"""
    if element(op) is element(op.operand):
        forward(op, rewriter, op.operand)


def holds(wide: PrimitiveType, narrow: PrimitiveType) -> bool:
    """Whether every value of `narrow` is one of `wide`, told apart from all others.

    Source: XLA's `CastPreservesValues`. An integer of n bits, without its sign's, needs a significand of n.
    """
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo
    if narrow.name == "pred" or wide.name == "pred":
        return narrow.name == "pred"
    if wide.is_float and narrow.is_integer:
        values = narrow.bits - narrow.is_signed
        info = finfo(wide.dtype)
        return wide.name != "f8e8m0fnu" and int(info.nmant) + 1 >= values < int(info.maxexp)
    if wide.is_float and narrow.is_float:
        if narrow.name == "f8e8m0fnu":
            return wide.name in ("f8e8m0fnu", "bf16", "f32", "f64")
        if wide.name == "f8e8m0fnu":
            return False
        a, b = finfo(wide.dtype), finfo(narrow.dtype)
        finite_only = "fn" in wide.name or wide.bits < 8
        return bool(
            not finite_only
            and int(a.nmant) >= int(b.nmant)
            and int(a.maxexp) >= int(b.maxexp)
            and int(a.minexp) - int(a.nmant) <= int(b.minexp) - int(b.nmant)
        )
    if wide.is_complex and narrow.is_complex:
        return wide.bits >= narrow.bits
    if not (wide.is_integer and narrow.is_integer):
        return False
    if wide.is_signed == narrow.is_signed:
        return wide.bits >= narrow.bits
    return wide.is_signed and wide.bits > narrow.bits


@rule(ConvertOp, reads=(ConvertOp,))
def convert_there_and_back(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(convert(x)) => x, x of the outer type, all of whose values the inner one holds"""
    inner = made_by(op.operand, ConvertOp)
    if inner is None or element(inner.operand) is not element(op):
        return
    if element(op).name != "pred" and holds(element(inner), element(op)):
        forward(op, rewriter, inner.operand)


@rule(ConvertOp, needs=("use_convert_constant_folding",))
def convert_of_constant(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(C) => C'"""
    literal, type_ = literal_of(op.operand), element(op)
    if literal is None or not has_one_user(op.operand) or op.control_predecessors:
        return
    if type_.bits < 8 or type_.bits > literal.element_type.bits:
        return

    b = Builder(op, rewriter)
    shape = op.shape
    assert isinstance(shape, ArrayShape)
    folded: Any = interp.evaluate(op, [literal.array])
    b.constant(Literal.from_array(shape, folded))
    b.done()


_KEPT = (AddOp, SubtractOp, MultiplyOp)
_KEPT_UNSIGNED = (DivideOp, RemainderOp)


@rule(ConvertOp)
def convert_of_widened_arithmetic(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(op(convert(a), convert(b))) => op(a, b), integers no wider than the result"""
    middle, type_ = op.operand.owner, element(op)
    if not isinstance(middle, (*_KEPT, *_KEPT_UNSIGNED)) or middle.control_predecessors:
        return
    if isinstance(middle, _KEPT_UNSIGNED) and not type_.is_unsigned:
        return
    a, b = made_by(middle.lhs, ConvertOp), made_by(middle.rhs, ConvertOp)
    if a is None or b is None or a is b or not all(map(has_one_user, (op.operand, *middle.inputs))):
        return
    types = (element(a.operand), element(b.operand), element(middle), type_)
    if not all(t.is_integer and t.bits >= 8 and t.is_signed == type_.is_signed for t in types):
        return
    if types[0] is not type_ or types[1] is not type_ or type_.bits > element(middle).bits:
        return
    new = Builder(op, rewriter)
    new.like(type(middle), a.operand, b.operand)
    new.done()


@rule(BitcastConvertOp)
def bitcast_convert_to_same_type(op: BitcastConvertOp, rewriter: Rewriter) -> None:
    """bitcast-convert(x) => x, x of that shape"""
    if op.shape == array(op.operand):
        forward(op, rewriter, op.operand)


@rule(BitcastConvertOp, reads=(BitcastConvertOp,))
def bitcast_convert_of_bitcast_convert(op: BitcastConvertOp, rewriter: Rewriter) -> None:
    """bitcast-convert(bitcast-convert(x)) => bitcast-convert(x)"""
    inner = made_by(op.operand, BitcastConvertOp)
    if inner is None or array(inner).is_dynamic:
        return
    # One step goes between types of equal width, or between neighbouring ranks.
    source, target = array(inner.operand), array(op)
    ranks = target.rank - source.rank
    bits = source.element_type.bits, target.element_type.bits
    if ranks != (bits[0] > bits[1]) - (bits[0] < bits[1]):
        return
    if "pred" in (source.element_type.name, element(inner).name, target.element_type.name):
        return
    b = Builder(op, rewriter)
    b.like(BitcastConvertOp, inner.operand)
    b.done()


@rule(BitcastConvertOp, reads=(ConcatenateOp,))
def bitcast_convert_of_concatenate(op: BitcastConvertOp, rewriter: Rewriter) -> None:
    """bitcast-convert(concat(bitcast-convert(a), …)) => concat(a, …), a of the outer type"""
    joined = made_by(op.operand, ConcatenateOp)
    if joined is None or array(op).dimensions != array(joined).dimensions:
        return
    sources = [made_by(part, BitcastConvertOp) for part in joined.inputs]
    values = [s.operand for s in sources if s is not None]
    if len(values) != len(sources) or any(element(v) is not element(op) for v in values):
        return
    if any(array(v).rank != array(op).rank for v in values):
        return
    b = Builder(op, rewriter)
    b.like(ConcatenateOp, *values, dimensions=joined.properties["dimensions"])
    b.done()


@rule(ReducePrecisionOp, needs=("enable_remove_no_op_reduce_precision",))
def reduce_precision_to_own_widths(op: ReducePrecisionOp, rewriter: Rewriter) -> None:
    """reduce-precision(x) => x, to the widths x has"""
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo
    info = finfo(element(op).dtype)
    exponent = element(op).bits - 1 - int(info.nmant)
    if (op.exponent_bits, op.mantissa_bits) == (exponent, int(info.nmant)):
        forward(op, rewriter, op.operand)


RULES = (
    convert_to_same_type,
    convert_there_and_back,
    convert_of_constant,
    convert_of_widened_arithmetic,
    bitcast_convert_to_same_type,
    bitcast_convert_of_bitcast_convert,
    bitcast_convert_of_concatenate,
    reduce_precision_to_own_widths,
)
