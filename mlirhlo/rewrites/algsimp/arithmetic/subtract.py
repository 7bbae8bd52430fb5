"""Rules of subtract."""

from __future__ import annotations

from mlirhlo.dialects.hlo.ops import AddOp, BroadcastOp, ConstantOp, NegateOp, SubtractOp
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    is_all,
    is_constant,
    is_integral,
    is_scalar_broadcast,
    made_by,
    options_of,
)
from mlirhlo.rewrites.rules import Rewriter, rule


def _exact(op: SubtractOp, rewriter: Rewriter) -> bool:
    return is_integral(element(op)) or options_of(rewriter).enable_fast_math


@rule(SubtractOp, contract="finite")
def subtract_from_itself(op: SubtractOp, rewriter: Rewriter) -> None:
    """x - x => 0, integers"""
    if op.lhs is op.rhs and _exact(op, rewriter) and not array(op).is_dynamic:
        b = Builder(op, rewriter)
        b.splat(array(op), 0)
        b.done()


@rule(SubtractOp, contract="zeros", reads=(ConstantOp, BroadcastOp))
def subtract_zero(op: SubtractOp, rewriter: Rewriter) -> None:
    """x - 0 => x"""
    if is_all(op.rhs, 0):
        forward(op, rewriter, op.lhs)


@rule(SubtractOp, reads=(ConstantOp, BroadcastOp))
def subtract_constant(op: SubtractOp, rewriter: Rewriter) -> None:
    """x - C => x + (-C), x not constant"""
    if is_constant(op.lhs):
        return
    spread = is_scalar_broadcast(op.rhs)
    b = Builder(op, rewriter)
    if is_constant(op.rhs):
        b.like(AddOp, op.lhs, b.on(NegateOp, op.rhs))
    elif spread is not None and is_constant(spread.operand):
        b.like(AddOp, op.lhs, b.spread(b.on(NegateOp, spread.operand), array(op.rhs)))
    else:
        return
    b.done()


@rule(SubtractOp, contract="rounding", reads=(SubtractOp,))
def subtract_difference(op: SubtractOp, rewriter: Rewriter) -> None:
    """a - (a - b) => b, integers"""
    inner = made_by(op.rhs, SubtractOp)
    if inner is not None and inner.lhs is op.lhs and _exact(op, rewriter):
        forward(op, rewriter, inner.rhs)


@rule(SubtractOp, contract="rounding", reads=(AddOp,))
def subtract_sum(op: SubtractOp, rewriter: Rewriter) -> None:
    """a - (a + b) => -b, integers"""
    inner = made_by(op.rhs, AddOp)
    if inner is None or not _exact(op, rewriter):
        return
    for a, other in ((inner.lhs, inner.rhs), (inner.rhs, inner.lhs)):
        if a is op.lhs:
            b = Builder(op, rewriter)
            b.like(NegateOp, other)
            b.done()
            return


@rule(SubtractOp, contract="rounding", reads=(AddOp,))
def subtract_from_sum(op: SubtractOp, rewriter: Rewriter) -> None:
    """(a + b) - a => b, integers"""
    inner = made_by(op.lhs, AddOp)
    if inner is None or not _exact(op, rewriter):
        return
    for a, other in ((inner.lhs, inner.rhs), (inner.rhs, inner.lhs)):
        if a is op.rhs:
            forward(op, rewriter, other)
            return


RULES = (
    subtract_from_itself,
    subtract_zero,
    subtract_constant,
    subtract_difference,
    subtract_sum,
    subtract_from_sum,
)
