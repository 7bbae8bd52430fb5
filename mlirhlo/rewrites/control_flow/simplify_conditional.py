"""`simplify-conditional`: branches that are known, alike, or cheap to take all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.dialects.hlo.attributes.base import integer, integers, symbol
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConditionalOp,
    ConstantOp,
    GetTupleElementOp,
    Instruction,
    ParameterOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import insert_before, put_operand
from mlirhlo.rewrites.control_flow.call_inliner import CallInlinerPass
from mlirhlo.rewrites.control_flow.computation_deduplicator import same_computation
from mlirhlo.rewrites.control_flow.while_loops import count_calls, part, retype_parameter
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter, inherit
from mlirhlo.rewrites.simplify.dce import DcePass
from mlirhlo.rewrites.simplify.tuple_parts import keep_origin
from mlirhlo.rewrites.simplify.tuple_simplifier import TupleSimplifierPass


@dataclass(frozen=True)
class SimplifyConditionalPass(HloPass):
    """Takes the branch that is known to be taken, or the one that all branches are.

    Before and after:

        %yes = pred[] constant(true)
        ROOT %c = f32[] conditional(%yes, %x, %y), true_computation=%f, false_computation=%g
          =>   ROOT %c = …the instructions of %f on %x

    A conditional whose selector is a constant, or whose branches compute the same of the same operand,
    becomes a call, which is inlined. One with two branches that only hand on their operands becomes a
    select. Elements of a result that nobody reads, that all branches give twice, and elements of operands
    that a branch does not read go. Side effects, control dependencies and shardings stay as they are.
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
        calls = module.known(count_calls)
        changed = called = shrunk = False
        for op in conditionals:
            if not isinstance(op, ConditionalOp) or op.control_predecessors:
                continue
            taken = _taken(op, computations)
            if taken is not None:
                _call(op, taken)
                changed = called = True
            elif not effects.of_instruction(op) and _select(op, computations):
                changed = True
            else:
                shrunk |= _shrink(op, computations, calls, effects)
        if called:
            CallInlinerPass().run(module.afresh(), trace)
        if shrunk:
            TupleSimplifierPass().run(module.afresh(), trace)
            DcePass().run(module.afresh(), trace)
        return changed | shrunk


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


def _shrink(
    op: ConditionalOp,
    computations: Mapping[str, ComputationOp],
    calls: Mapping[str, int],
    effects: SideEffects,
) -> bool:
    """Drops elements of the operands and of the result that nobody needs."""
    names = op.called_computations
    if "sharding" in op.properties or any(calls[name] != 1 for name in names):
        return False
    branches = [computations[name] for name in names]
    if any("sharding" in b.root.properties for b in branches):
        return False
    changed = False
    for number, branch in enumerate(branches):
        changed |= _keep_arguments(op, 1 + number, branch)
    return _keep_results(op, branches, effects) or changed


def _parts_of(value: SSAValue) -> list[GetTupleElementOp] | None:
    """What reads elements of a tuple; None where something else reads it."""
    found = [use.operation for use in value.uses]
    parts = [reader for reader in found if isinstance(reader, GetTupleElementOp)]
    return parts if len(parts) == len(found) else None


def _keep_results(
    op: ConditionalOp, branches: Sequence[ComputationOp], effects: SideEffects
) -> bool:
    parts, roots = _parts_of(op.output), [branch.root for branch in branches]
    if parts is None or not isinstance(op.shape, TupleShape):
        return False
    if not all(isinstance(root, TupleOp) for root in roots):
        return False
    first: dict[object, int] = {}
    same = [
        first.setdefault(values, k)
        for k, values in enumerate(zip(*(root.inputs for root in roots), strict=True))
    ]
    kept = sorted({same[read.index] for read in parts})
    if len(kept) == len(op.shape.elements):
        return False
    shape = TupleShape(tuple(op.shape.elements[k] for k in kept))
    for root in roots:
        properties = {k: v for k, v in root.properties.items() if k == "metadata"}
        smaller = make("tuple", [root.inputs[k] for k in kept], shape, properties)
        owners = [value.owner for value in root.inputs]
        rewriter = Rewriter(root, lambda: effects)
        rewriter.replace(root, smaller)
        rewriter.erase_unread(*owners)
    for read in parts:
        read.properties["index"] = integer(kept.index(same[read.index]))
    properties = dict(op.properties)
    keep_origin(properties, kept)
    new = make("conditional", op.inputs, shape, properties)
    Rewriter(op).replace(op, new)
    return True


def _keep_arguments(op: Instruction, place: int, branch: ComputationOp) -> bool:
    """Of the operand at `place`, the elements that the branch reads."""
    (parameter,) = branch.parameters
    parts, shape = _parts_of(parameter.output), parameter.shape
    if parts is None or not isinstance(shape, TupleShape) or op.parent is None:
        return False
    kept = sorted({read.index for read in parts})
    if len(kept) == len(shape.elements) or "sharding" in parameter.properties:
        return False
    given = op.operands[place]
    smaller = TupleShape(tuple(shape.elements[k] for k in kept))
    elements = [part(given, k, shape.elements[k]) for k in kept]
    argument = make("tuple", elements, smaller)
    for made in (*elements, argument):
        insert_before(op, made)
    put_operand(op, place, argument.output)
    retype_parameter(branch, smaller)
    for read in parts:
        read.properties["index"] = integer(kept.index(read.index))
    return True
