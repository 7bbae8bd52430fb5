"""`comparison-expander`: total orders of floats as orders of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import (
    BitcastConvertOp,
    CompareOp,
    Instruction,
    SelectOp,
    XorOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array, element, typed
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(CompareOp)
def compare_in_total_order(op: CompareOp, rewriter: Rewriter) -> None:
    """compare(x, y), type=TOTALORDER => compare(k(x), k(y)), k(v) = v's bits, those below the sign flipped for v < 0"""
    type_ = element(op.inputs[0])
    if op.comparison_type != "TOTALORDER" or not type_.is_float:
        return
    integer = PRIMITIVE_TYPES.get(f"s{type_.bits}")
    if integer is None:
        return
    shape = typed(array(op.inputs[0]), integer)
    b = Builder(op, rewriter)
    zero, rest = b.splat(shape, 0), b.splat(shape, (1 << (type_.bits - 1)) - 1)
    keys = [_key(b, value, shape, zero, rest) for value in op.inputs]
    b.like(CompareOp, *keys, direction=string(op.direction))
    b.done()


def _key(
    b: Builder, value: SSAValue, shape: ArrayShape, zero: Instruction, rest: Instruction
) -> Instruction:
    """`rest`: all bits but the sign."""
    as_integer = b(BitcastConvertOp, value, shape=shape)
    pred = typed(shape, PRIMITIVE_TYPES["pred"])
    is_negative = b(CompareOp, as_integer, zero, shape=pred, direction=string("LT"))
    return b(SelectOp, is_negative, b.on(XorOp, as_integer, rest), as_integer, shape=shape)


@dataclass(frozen=True)
class ComparisonExpanderPass(RulePass):
    """Compares floats in total order by their bits as integers.

    Before and after:

        %c = pred[4] compare(%x, %y), direction=LT, type=TOTALORDER
          =>   %c = pred[4] compare(select(…bits of %x…), select(…bits of %y…)), direction=LT

    Source: reference of the passes, "Other expanders".
    """

    name = "comparison-expander"
    rules: ClassVar[tuple[Rule, ...]] = (compare_in_total_order,)
