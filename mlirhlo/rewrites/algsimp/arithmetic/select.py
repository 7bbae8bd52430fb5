"""Rules of select."""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import (
    AndOp,
    CompareOp,
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    NotOp,
    OrOp,
    SelectOp,
)
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    has_one_user,
    is_all,
    made_by,
    same_array,
    sized,
)
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(SelectOp)
def select_of_same(op: SelectOp, rewriter: Rewriter) -> None:
    """select(p, x, x) => x"""
    if op.on_true is op.on_false:
        forward(op, rewriter, op.on_true)


@rule(SelectOp)
def select_by_constant(op: SelectOp, rewriter: Rewriter) -> None:
    """select(true, x, y) => x; select(false, x, y) => y"""
    if is_all(op.predicate, 1):
        forward(op, rewriter, op.on_true)
    elif is_all(op.predicate, 0):
        forward(op, rewriter, op.on_false)


@rule(SelectOp, reads=(NotOp,))
def select_by_not(op: SelectOp, rewriter: Rewriter) -> None:
    """select(not p, a, b) => select(p, b, a)"""
    if (inner := made_by(op.predicate, NotOp)) is not None:
        b = Builder(op, rewriter)
        b.like(SelectOp, inner.operand, op.on_false, op.on_true)
        b.done()


@rule(SelectOp)
def select_true_or_false(op: SelectOp, rewriter: Rewriter) -> None:
    """select(p, true, false) => p; select(p, false, true) => not p"""
    if element(op).name != "pred" or not same_array(op.predicate, op):
        return
    if is_all(op.on_true, 1) and is_all(op.on_false, 0):
        forward(op, rewriter, op.predicate)
    elif is_all(op.on_true, 0) and is_all(op.on_false, 1):
        b = Builder(op, rewriter)
        b.like(NotOp, op.predicate)
        b.done()


@rule(SelectOp, reads=(CompareOp,))
def select_of_compared_preds(op: SelectOp, rewriter: Rewriter) -> None:
    """select(a > b or a >= b, a, b) => a or b; < and <= => a and b; == => b; != => a, of pred"""
    compare = made_by(op.predicate, CompareOp)
    if element(op).name != "pred" or compare is None or not same_array(compare, op):
        return
    if compare.lhs is not op.on_true or compare.rhs is not op.on_false:
        return
    if compare.direction == "EQ":
        forward(op, rewriter, op.on_false)
    elif compare.direction == "NE":
        forward(op, rewriter, op.on_true)
    else:
        b = Builder(op, rewriter)
        cls = OrOp if compare.direction in ("GT", "GE") else AndOp
        b.like(cls, op.on_true, op.on_false)
        b.done()


@rule(SelectOp, reads=(DynamicUpdateSliceOp,))
def select_of_update(op: SelectOp, rewriter: Rewriter) -> None:
    """select(p, a, dus(a, u, i)) => dus(a, select(p', ds(a, i), u), i), p' the slice of p"""
    update = made_by(op.on_false, DynamicUpdateSliceOp)
    if update is None or not has_one_user(op.on_false) or update.control_predecessors:
        return
    target, part, *starts = update.inputs
    if target is not op.on_true or array(op).is_dynamic or array(part).is_dynamic:
        return
    b = Builder(op, rewriter)
    sizes = array(part).dimensions
    cut = {"dynamic_slice_sizes": integers(sizes)}
    old = b(DynamicSliceOp, target, *starts, shape=array(part), **cut)
    predicate = op.predicate
    if array(predicate).dimensions:
        shape = sized(array(predicate), sizes)
        predicate = b(DynamicSliceOp, predicate, *starts, shape=shape, **cut).output
    chosen = b(SelectOp, predicate, old, part, shape=array(part))
    b.like(DynamicUpdateSliceOp, target, chosen, *starts)
    b.done()


RULES = (
    select_of_same,
    select_by_constant,
    select_by_not,
    select_true_or_false,
    select_of_compared_preds,
    select_of_update,
)
