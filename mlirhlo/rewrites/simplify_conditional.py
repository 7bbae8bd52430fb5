"""`simplify-conditional`: branches that are known, alike, or cheap to take all."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.dialects.hlo.attributes.base import integers, symbol
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConditionalOp,
    ConstantOp,
    Instruction,
    ParameterOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.call_inliner import CallInlinerPass
from mlirhlo.rewrites.computation_deduplicator import same_computation
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter, inherit


@dataclass(frozen=True)
class SimplifyConditionalPass(HloPass):
    """Takes the branch that is known to be taken, or the one that all branches are.

    Before and after:

        %yes = pred[] constant(true)
        ROOT %c = f32[] conditional(%yes, %x, %y), true_computation=%f, false_computation=%g
          =>   ROOT %c = …the instructions of %f on %x

    A conditional whose selector is a constant, or whose branches compute the same of the same operand,
    becomes a call, which is inlined. One with two branches that only hand on their operands becomes a
    select. Side effects, control dependencies and shardings stay as they are.
    Source: reference of the passes, "Other simplifiers", `simplify-conditional`.
    """

    name = "simplify-conditional"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Rewrites; whether any conditional went."""
        conditionals = module.candidates(ConditionalOp)
        if not conditionals:
            return False
        computations = module.by_name()
        effects = SideEffects.of(module)
        changed = False
        called = False
        for op in conditionals:
            if not isinstance(op, ConditionalOp) or op.control_predecessors:
                continue
            taken = _taken(op, computations)
            if taken is not None:
                _call(op, taken)
                changed = called = True
            elif not effects.of_instruction(op) and _select(op, computations):
                changed = True
        if called:
            CallInlinerPass().run(module.afresh(), trace)
        return changed


def _taken(op: ConditionalOp, computations: dict[str, ComputationOp]) -> int | None:
    """Number of the branch that is as good as the conditional; None where that is not known."""
    selector = op.inputs[0].owner
    count = len(op.called_computations)
    if isinstance(selector, ConstantOp) and selector.literal is not None:
        if not selector.literal.is_elided:
            value = selector.literal.item()
            if isinstance(value, bool):
                return 0 if value else 1
            return int(value) if 0 <= value < count else count - 1
    if count == 1:
        return 0
    first, *others = (computations[name] for name in op.called_computations)
    argument = op.inputs[1]
    if all(v is argument for v in op.inputs[2:]) and all(
        same_computation(first, other, computations) for other in others
    ):
        return 0
    return None


def _call(op: ConditionalOp, branch: int) -> None:
    properties = {"to_apply": symbol(op.called_computations[branch])}
    call = make("call", [op.inputs[1 + branch]], op.shape, properties)
    if "sharding" in op.properties:
        call.properties["sharding"] = op.properties["sharding"]
    inherit(call, op)
    Rewriter(op).replace(op, call)


def _select(op: ConditionalOp, computations: dict[str, ComputationOp]) -> bool:
    """Two branches that return their operand, or constants: an array at a time, a select."""
    if len(op.called_computations) != 2 or "sharding" in op.properties:
        return False
    if not _is_pred(op.inputs[0].owner):
        return False
    roots = [computations[name].root for name in op.called_computations]
    if not all(isinstance(root, ParameterOp) for root in roots):
        return False
    if not isinstance(op.shape, ArrayShape) or op.shape.is_dynamic:
        return False
    predicate = op.inputs[0]
    rewriter = Rewriter(op)
    made: list[Instruction] = []
    if op.shape.dimensions:
        pred = shape_of(predicate.type)
        assert isinstance(pred, ArrayShape)
        shape = ArrayShape(pred.element_type, op.shape.dimensions, (), op.shape.layout)

        spread = make("broadcast", [predicate], shape, {"dimensions": integers(())})
        made.append(spread)
        predicate = spread.output
    made.append(make("select", [predicate, op.inputs[1], op.inputs[2]], op.shape))
    rewriter.replace(op, made)
    return True


def _is_pred(owner: object) -> bool:
    shape = owner.shape if isinstance(owner, Instruction) else None
    return isinstance(shape, ArrayShape) and shape.element_type.name == "pred"
