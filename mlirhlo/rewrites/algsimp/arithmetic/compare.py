"""Rules of compare."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.ops import CompareOp, MaximumOp, MinimumOp, SelectOp
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    is_all,
    is_integral,
    made_by,
    same_array,
)
from mlirhlo.rewrites.algsimp.facts import non_negative
from mlirhlo.rewrites.rules import Rewriter, rule


def _answer(op: CompareOp, rewriter: Rewriter, truth: bool) -> None:
    if array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    b.splat(array(op), truth)
    b.done()


def _against_zero(op: CompareOp) -> tuple[SSAValue, bool] | None:
    """`x` and what is known when x >= 0, of the four comparisons with zero that this settles."""
    if op.direction in ("LT", "GE") and is_all(op.rhs, 0):
        return op.lhs, op.direction == "GE"
    if op.direction in ("GT", "LE") and is_all(op.lhs, 0):
        return op.rhs, op.direction == "LE"
    return None


@rule(CompareOp)
def compare_unsigned_with_zero(op: CompareOp, rewriter: Rewriter) -> None:
    """x < 0, 0 > x => false; x >= 0, 0 <= x => true, x unsigned"""
    if element(op.lhs).is_unsigned and (found := _against_zero(op)) is not None:
        _answer(op, rewriter, found[1])


@rule(CompareOp, contract="finite")
def compare_non_negative_with_zero(op: CompareOp, rewriter: Rewriter) -> None:
    """x < 0, 0 > x => false; x >= 0, 0 <= x => true, where x is known not to be negative"""
    found = _against_zero(op)
    total = op.order == "TOTAL" or op.comparison_type == "TOTALORDER"
    if found is not None and not total and non_negative(found[0]):
        _answer(op, rewriter, found[1])


@rule(CompareOp)
def compare_integer_with_itself(op: CompareOp, rewriter: Rewriter) -> None:
    """x == x, x >= x, x <= x => true; x != x, x < x, x > x => false, integers"""
    if op.lhs is op.rhs and element(op.lhs).is_integer:
        _answer(op, rewriter, op.direction in ("EQ", "GE", "LE"))


@rule(CompareOp)
def compare_pred_with_constant(op: CompareOp, rewriter: Rewriter) -> None:
    """x != false => x; x == true => x"""
    if element(op.lhs).name != "pred" or op.direction not in ("EQ", "NE"):
        return
    neutral = op.direction == "EQ"
    if is_all(op.rhs, neutral):
        forward(op, rewriter, op.lhs)
    elif is_all(op.lhs, neutral):
        forward(op, rewriter, op.rhs)


@rule(CompareOp, reads=(SelectOp,))
def compare_select_of_one_and_zero(op: CompareOp, rewriter: Rewriter) -> None:
    """select(a >= b, 1, 0) != 0 => a >= b"""
    select = made_by(op.lhs, SelectOp)
    if op.direction != "NE" or select is None or not is_all(op.rhs, 0):
        return
    inner = made_by(select.predicate, CompareOp)
    if inner is None or inner.direction != "GE" or not same_array(inner, op):
        return
    if is_all(select.on_true, 1) and is_all(select.on_false, 0):
        forward(op, rewriter, inner.output)


@rule(CompareOp, contract="finite", reads=(MaximumOp,))
def compare_maximum_with_its_operand(op: CompareOp, rewriter: Rewriter) -> None:
    """max(a, b) > a => b > a; max(a, b) > b => a > b"""
    most = made_by(op.lhs, MaximumOp)
    if op.direction != "GT" or most is None or op.order == "TOTAL":
        return
    for kept, other in ((most.lhs, most.rhs), (most.rhs, most.lhs)):
        if op.rhs is kept:
            _greater(op, rewriter, other, kept)
            return


@rule(CompareOp, contract="finite", reads=(MinimumOp,))
def compare_operand_with_its_minimum(op: CompareOp, rewriter: Rewriter) -> None:
    """a > min(a, b) => a > b; b > min(a, b) => b > a"""
    least = made_by(op.rhs, MinimumOp)
    if op.direction != "GT" or least is None or op.order == "TOTAL":
        return
    for kept, other in ((least.lhs, least.rhs), (least.rhs, least.lhs)):
        if op.lhs is kept:
            _greater(op, rewriter, kept, other)
            return


def _greater(op: CompareOp, rewriter: Rewriter, a: SSAValue, b: SSAValue) -> None:
    new = Builder(op, rewriter)
    kind = op.properties.get("type")
    extra = {"type": kind} if kind is not None and not is_integral(element(a)) else {}
    new.like(CompareOp, a, b, direction=string("GT"), **extra)
    new.done()


RULES = (
    compare_unsigned_with_zero,
    compare_non_negative_with_zero,
    compare_integer_with_itself,
    compare_pred_with_constant,
    compare_select_of_one_and_zero,
    compare_maximum_with_its_operand,
    compare_operand_with_its_minimum,
)
