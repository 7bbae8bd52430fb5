"""`tuple-simplifier`: looks through tuples that are built only to be taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.build import wait_for
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import GetTupleElementOp, Instruction, TupleOp
from mlirhlo.dialects.hlo.shapes import compatible
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, apply_rules, rule


@rule(GetTupleElementOp)
def get_tuple_element_of_tuple(op: GetTupleElementOp, rewriter: Rewriter) -> None:
    """get-tuple-element(tuple(…, x_i, …), i) => x_i"""
    built = op.operand.owner
    if not isinstance(built, TupleOp):
        return
    value = built.inputs[op.index]
    if hand_on(op, value):
        rewriter.replace_by_value(op, value)
        rewriter.erase_unread(built)


@rule(TupleOp)
def tuple_of_get_tuple_elements(op: TupleOp, rewriter: Rewriter) -> None:
    """tuple(get-tuple-element(t, 0), …, get-tuple-element(t, n)) => t"""
    parts = op.inputs
    if not parts:
        return
    source = None
    for index, part in enumerate(parts):
        element = part.owner
        if not isinstance(element, GetTupleElementOp) or element.index != index:
            return
        if source is None:
            source = element.operand
        elif element.operand is not source:
            return
    if source is None or not compatible(shape_of(source.type), op.shape):
        return
    if hand_on(op, source):
        elements = [part.owner for part in parts]
        rewriter.replace_by_value(op, source)
        rewriter.erase_unread(*elements)


def hand_on(op: Instruction, value: SSAValue) -> bool:
    """Gives the sharding of `op` to what replaces it, and what it waits for to its users.

    False, with nothing done, when the replacement has another sharding, or when no instruction is
    left that could wait.
    """
    readers = [use.operation for use in op.output.uses]
    waits = op.control_predecessors
    if waits and not all(isinstance(reader, Instruction) for reader in readers):
        return False
    sharding, owner = op.properties.get("sharding"), value.owner
    if sharding is not None:
        assert isinstance(owner, Instruction)
        if owner.properties.setdefault("sharding", sharding) != sharding:
            return False
    for reader in readers if waits else ():
        assert isinstance(reader, Instruction)
        wait_for(reader, waits)
    return True


@dataclass(frozen=True)
class TupleSimplifierPass(RulePass):
    """Removes tuples that are built only to be taken apart, and copies of whole tuples.

    Before and after:

        %t = (f32[4], s32[]) tuple(%a, %b)
        %x = f32[4] get-tuple-element(%t), index=0      =>   %a

    What that leaves without users goes too; a sharding moves to what replaces its instruction, control
    predecessors to its users.
    Source: reference of the passes, "TupleSimplifier".
    """

    name = "tuple-simplifier"
    rules: ClassVar[tuple[Rule, ...]] = (get_tuple_element_of_tuple, tuple_of_get_tuple_elements)

    exclude_entry_computation: bool = False
    """Leaves the entry computation as it is."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Applies the rules; whether anything changed."""
        if not self.exclude_entry_computation:
            return super().run(module, trace)
        changed = False
        for computation in module.computations:
            if computation.is_entry is None:
                changed |= apply_rules(
                    computation, self.selected(), fuel=self.fuel, trace=trace, name=self.name
                )
        return changed
