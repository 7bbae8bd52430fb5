"""Rules of conditionals, optimization barriers, custom calls and constants that are tuples."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from mlirhlo.dialects.hlo.attributes.base import integer, symbol
from mlirhlo.dialects.hlo.literal import LiteralAttr
from mlirhlo.dialects.hlo.ops import (
    ConditionalOp,
    ConstantOp,
    ConvertOp,
    CopyOp,
    CustomCallOp,
    GetTupleElementOp,
    OptBarrierOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import TokenShape, TupleShape, compatible
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.algsimp.common import Builder, element, forward, is_array, made_by
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(ConditionalOp, needs=("enable_conditional_simplification",), reads=(ConvertOp,))
def conditional_on_converted_pred(op: ConditionalOp, rewriter: Rewriter) -> None:
    """conditional(convert(p), a, b), branches {f, g} => conditional(p, b, a), true g, false f"""
    branches, convert = op.branch_computations, made_by(op.inputs[0], ConvertOp)
    if len(branches) != 2 or convert is None or element(convert.operand).name != "pred":
        return
    b = Builder(op, rewriter)
    b.like(
        ConditionalOp,
        convert.operand,
        op.inputs[2],
        op.inputs[1],
        true_computation=symbol(branches[1]),
        false_computation=symbol(branches[0]),
    )
    b.done()


@rule(OptBarrierOp, reads=(TupleOp,), looks_far=True)
def barrier_of_unread(op: OptBarrierOp, rewriter: Rewriter) -> None:
    """opt-barrier(tuple(a, b, …)) => opt-barrier(tuple(a, …)), elements gone that nobody reads"""
    built = made_by(op.operand, TupleOp)
    readers = [use.operation for use in op.output.uses]
    if built is None or op.control_predecessors or "sharding" in op.properties or not readers:
        return
    elements = [r for r in readers if isinstance(r, GetTupleElementOp)]
    if len(elements) != len(readers) or not has_readers_only(op, elements):
        return
    read = {r.index for r in elements}
    kept = [
        index
        for index, value in enumerate(built.inputs)
        if index in read or not _may_go(value, rewriter)
    ]
    if len(kept) == len(built.inputs):
        return
    values = [built.inputs[index] for index in kept]
    shape = TupleShape(tuple(shape_of(v.type) for v in values))
    smaller = rewriter.build(TupleOp, *values, shape=shape)
    barrier = rewriter.build(OptBarrierOp, smaller, shape=shape)
    rewriter.insert([smaller, barrier], InsertPoint.before(op))
    for reader in elements:
        place = kept.index(reader.index)
        fresh = rewriter.build(GetTupleElementOp, barrier, shape=reader.shape, index=integer(place))
        rewriter.replace(reader, fresh)
    rewriter.erase(op)
    rewriter.erase_unread(built)


def has_readers_only(op: OptBarrierOp, readers: list[GetTupleElementOp]) -> bool:
    """Whether the readers take elements as values, and do not merely wait for the barrier."""
    return all(r.inputs == (op.output,) for r in readers)


def _may_go(value: SSAValue, rewriter: Rewriter) -> bool:
    owner = value.owner
    if isinstance(shape_of(value.type), TokenShape) or not isinstance(owner, Instruction):
        return False
    return value.has_one_use() and not rewriter.has_side_effect(owner)


@rule(CustomCallOp)
def dynamic_of_static_of_dynamic(op: CustomCallOp, rewriter: Rewriter) -> None:
    """SliceToDynamic(gte(PadToStatic(x), 0), gte(PadToStatic(x), 1), …) => x"""
    if op.custom_call_target != "SliceToDynamic" or not op.inputs:
        return
    static: CustomCallOp | None = None
    for index, value in enumerate(op.inputs):
        part = made_by(value, GetTupleElementOp)
        source = None if part is None else made_by(part.operand, CustomCallOp)
        if part is None or source is None or part.index != index:
            return
        if source.custom_call_target != "PadToStatic" or static not in (None, source):
            return
        static = source
    if static is not None and compatible(op.shape, shape_of(static.inputs[0].type)):
        forward(op, rewriter, static.inputs[0])


@rule(CustomCallOp, needs=("is_layout_sensitive",))
def layout_constraint(op: CustomCallOp, rewriter: Rewriter) -> None:
    """LayoutConstraint(x) => x; => copy(x), x in another layout"""
    if op.custom_call_target != "LayoutConstraint" or len(op.inputs) != 1 or not is_array(op):
        return
    if op.shape == shape_of(op.inputs[0].type):
        forward(op, rewriter, op.inputs[0])
        return
    b = Builder(op, rewriter)
    b.like(CopyOp, op.inputs[0])
    b.done()


@rule(ConstantOp)
def constant_of_tuple(op: ConstantOp, rewriter: Rewriter) -> None:
    """constant((a, b, …)) => tuple(constant(a), constant(b), …)"""
    literal = op.literal
    if literal is None or not isinstance(literal.shape, TupleShape) or not literal.elements:
        return
    b = Builder(op, rewriter)
    parts = [b(ConstantOp, shape=e.shape, literal=LiteralAttr(e)) for e in literal.elements]
    b.like(TupleOp, *parts)
    b.done()


RULES = (
    conditional_on_converted_pred,
    barrier_of_unread,
    dynamic_of_static_of_dynamic,
    layout_constraint,
    constant_of_tuple,
)
