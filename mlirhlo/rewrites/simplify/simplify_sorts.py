"""`simplify-sorts`: sorts carry along only what is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Block, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import append, make
from mlirhlo.dialects.hlo.ops import GetTupleElementOp, Instruction, ParameterOp, SortOp
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.computations import add_computation, called
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule
from mlirhlo.rewrites.simplify.tuple_parts import keep_origin


@rule(SortOp)
def sort_of_unread_operands(op: SortOp, rewriter: Rewriter) -> None:
    """sort(x_0, …, x_n) => sort of those that the comparator or a get-tuple-element reads"""
    if not isinstance(op.shape, TupleShape) or op.control_predecessors:
        return
    users = [use.operation for use in op.output.uses]
    if not users or not all(isinstance(user, GetTupleElementOp) for user in users):
        return
    parameters = called(op, op.to_apply).parameters
    read = {user.index for user in users if isinstance(user, GetTupleElementOp)}
    for number in range(len(op.inputs)):
        if any(p.output.first_use is not None for p in parameters[2 * number : 2 * number + 2]):
            read.add(number)
    kept = sorted(read)
    if len(kept) == len(op.inputs):
        return
    comparator = _comparator(op, kept)
    shapes = tuple(op.shape.elements[k] for k in kept)
    properties = {**op.properties, "to_apply": comparator}
    properties.pop("sharding", None)
    keep_origin(properties, kept if len(kept) > 1 else kept[0])
    shape = shapes[0] if len(kept) == 1 else TupleShape(shapes)
    sort = make("sort", [op.inputs[k] for k in kept], shape, properties, name=op.instruction_name)
    block = op.parent
    assert block is not None
    block.insert_op_before(sort, op)
    for user in users:
        assert isinstance(user, GetTupleElementOp)
        own = Rewriter(user)
        if len(kept) == 1:
            own.replace_by_value(user, sort.output)
            continue
        index = integer(kept.index(user.index))
        part = make("get-tuple-element", [sort], user.shape, {**user.properties, "index": index})
        own.replace(user, part)
    rewriter.erase(op)


def _comparator(op: SortOp, kept: list[int]) -> SymbolRefAttr:
    """The comparator without the parameters that go."""
    computation = called(op, op.to_apply)
    block = Block()
    values: dict[SSAValue, SSAValue] = {}
    for inner in computation.instructions:
        if isinstance(inner, ParameterOp) and inner.parameter_number // 2 not in kept:
            continue
        copy: Instruction = clone_instruction(inner, values, inner.instruction_name)
        if isinstance(copy, ParameterOp):
            place, side = divmod(copy.parameter_number, 2)
            copy.properties["parameter_number"] = integer(2 * kept.index(place) + side)
        values[inner.output] = copy.output
        append(block, copy)
    root = values[computation.root.output].owner
    assert isinstance(root, Instruction)
    return add_computation(op, computation.computation_name, block, root)


@dataclass(frozen=True)
class SimplifySortsPass(RulePass):
    """Drops operands of sorts that neither the comparator nor anybody else reads.

    Before and after:

        %s = (f32[8], s32[8]) sort(%x, %i), dimensions={0}, to_apply=%by_first
        ROOT %r = f32[8] get-tuple-element(%s), index=0      =>   ROOT %s = f32[8] sort(%x), …

    Source: reference of the passes, "Other simplifiers", `simplify-sorts`.
    """

    name = "simplify-sorts"
    rules: ClassVar[tuple[Rule, ...]] = (sort_of_unread_operands,)
