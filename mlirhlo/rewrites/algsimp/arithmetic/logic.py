"""Rules of and, or, xor and not."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.element_types import S32
from mlirhlo.dialects.hlo.ops import AndOp, CompareOp, NotOp, OrOp, XorOp
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    is_all,
    made_by,
    splat_of,
)
from mlirhlo.rewrites.rules import Rewriter, rule


def _all_ones(value: SSAValue) -> bool:
    return element(value).name == "pred" and is_all(value, 1)


@rule(AndOp)
def and_true(op: AndOp, rewriter: Rewriter) -> None:
    """x and true => x"""
    if _all_ones(op.rhs):
        forward(op, rewriter, op.lhs)
    elif _all_ones(op.lhs):
        forward(op, rewriter, op.rhs)


@rule(AndOp)
def and_zero(op: AndOp, rewriter: Rewriter) -> None:
    """x and 0 => 0"""
    if is_all(op.rhs, 0):
        forward(op, rewriter, op.rhs)
    elif is_all(op.lhs, 0):
        forward(op, rewriter, op.lhs)


def _below(value: SSAValue) -> tuple[SSAValue, SSAValue, int] | None:
    """`x`, `C` as a value and as a number of `x < C` or `C > x` in s32."""
    compare = made_by(value, CompareOp)
    if compare is None or element(compare.lhs) is not S32:
        return None
    if compare.direction == "LT" and (found := splat_of(compare.rhs)) is not None:
        return compare.lhs, compare.rhs, found
    if compare.direction == "GT" and (found := splat_of(compare.lhs)) is not None:
        return compare.rhs, compare.lhs, found
    return None


@rule(AndOp)
def and_of_upper_bounds(op: AndOp, rewriter: Rewriter) -> None:
    """(x < C1) and (x < C2) => x < min(C1, C2), one element of s32"""
    if array(op).element_count != 1:
        return
    a, b = _below(op.lhs), _below(op.rhs)
    if a is None or b is None or a[0] is not b[0]:
        return
    least = a[1] if a[2] <= b[2] else b[1]
    new = Builder(op, rewriter)
    new.like(CompareOp, a[0], least, direction=string("LT"))
    new.done()


@rule(OrOp)
def or_true(op: OrOp, rewriter: Rewriter) -> None:
    """x or true => true"""
    if _all_ones(op.rhs):
        forward(op, rewriter, op.rhs)
    elif _all_ones(op.lhs):
        forward(op, rewriter, op.lhs)


@rule(OrOp)
def or_zero(op: OrOp, rewriter: Rewriter) -> None:
    """x or 0 => x"""
    if is_all(op.rhs, 0):
        forward(op, rewriter, op.lhs)
    elif is_all(op.lhs, 0):
        forward(op, rewriter, op.rhs)


@rule(XorOp)
def xor_of_same(op: XorOp, rewriter: Rewriter) -> None:
    """x xor x => 0"""
    if op.lhs is op.rhs and not array(op).is_dynamic:
        b = Builder(op, rewriter)
        b.splat(array(op), 0)
        b.done()


@rule(XorOp)
def xor_zero(op: XorOp, rewriter: Rewriter) -> None:
    """x xor 0 => x"""
    if is_all(op.rhs, 0):
        forward(op, rewriter, op.lhs)
    elif is_all(op.lhs, 0):
        forward(op, rewriter, op.rhs)


@rule(NotOp, reads=(NotOp,))
def not_of_not(op: NotOp, rewriter: Rewriter) -> None:
    """not(not x) => x"""
    if (inner := made_by(op.operand, NotOp)) is not None:
        forward(op, rewriter, inner.operand)


RULES = (
    and_true,
    and_zero,
    and_of_upper_bounds,
    or_true,
    or_zero,
    xor_of_same,
    xor_zero,
    not_of_not,
)
