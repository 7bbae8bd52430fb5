"""`conditional-to-select`: all branches, and the result of one, inside functions of elements."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.analysis.call_graph import CallGraph, Context, call_graph_of
from mlirhlo.analysis.effects import SideEffects
from mlirhlo.dialects.hlo.attributes.base import integers, string
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp, ConditionalOp, ParameterOp, SelectOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import read_instead
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.control_flow.flatten_call_graph import unshare
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit
from mlirhlo.rewrites.simplify.dce import DcePass
from mlirhlo.rewrites.simplify.tuple_parts import insert_before


@dataclass(frozen=True)
class ConditionalToSelectPass(HloPass):
    """Computes all branches of conditionals in functions of elements, and selects.

    Before and after, in the computation of a map:

        %c = f32[] conditional(%p, %x, %x), true_computation=%f, false_computation=%g
          =>   %a = f32[] negate(%x)   %b = f32[] sine(%x)   %c = f32[] select(%p, %a, %b)

    A kernel cannot branch for each element as a program does. Only in computations that run inside an
    instruction (map, reduce, sort, …) and no fusions; only conditionals of arrays whose branches have no side
    effects and no loops, which might not end where they are not meant to run. Branches by number are selected one
    after the other, the last for all other numbers. Branches inside branches follow.
    Source: reference of the passes, "Other simplifiers", `conditional-to-select`.
    """

    name = "conditional-to-select"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Replaces; whether any conditional was."""
        if not module.candidates(ConditionalOp):
            return False
        graph = module.known(call_graph_of)
        fused = module.known(HloModule.fused_computations)
        effects = module.known(SideEffects.of)
        count = 0
        for name, computation in graph.computations.items():
            if graph.context(name) is not Context.EMBEDDED or name in fused:
                continue
            work = [op for op in computation.instructions if isinstance(op, ConditionalOp)]
            for op in work:  # grows while it is walked
                branches = [graph.computations[called] for called in op.called_computations]
                if _is_simple(op) and not any(_must_stay(b, graph, effects) for b in branches):
                    work += _select(op, branches)
                    count += 1
        trace.rule_counts[self.name, "conditionals"] += count
        if count:
            DcePass().run(module.afresh(), trace)
            unshare(module.afresh())
        return count > 0


def _is_simple(op: ConditionalOp) -> bool:
    several = len(op.called_computations) > 1
    return several and isinstance(op.shape, ArrayShape) and not op.control_predecessors


def _must_stay(branch: ComputationOp, graph: CallGraph, effects: SideEffects) -> bool:
    """Whether the branch may run only where it is meant to."""
    name = branch.computation_name
    if effects.of_computation(name):
        return True
    pending, seen = [name], {name}
    while pending:
        here = pending.pop()
        if any(op.opcode.name == "while" for op in graph.computations[here].instructions):
            return True
        more = [callee for callee in graph.callees(here) if callee not in seen]
        seen.update(more)
        pending += more
    return False


def _select(op: ConditionalOp, branches: list[ComputationOp]) -> list[ConditionalOp]:
    """Puts all branches and selects in the conditional's place; conditionals that were in them."""
    inner: list[ConditionalOp] = []
    results: list[SSAValue] = []
    for argument, branch in zip(op.inputs[1:], branches, strict=True):
        values: dict[SSAValue, SSAValue] = {}
        for old in branch.instructions:
            if isinstance(old, ParameterOp):
                values[old.output] = argument
                continue
            copy = clone_instruction(old, values)
            inherit(copy, op)
            values[old.output] = insert_before(op, copy).output
            if isinstance(copy, ConditionalOp):
                inner.append(copy)
        results.append(values[branch.terminator.root])
    chosen = results.pop()
    for number in reversed(range(len(results))):
        predicate = _spread(op, _is_chosen(op, number))
        select = make("select", [predicate, results[number], chosen], op.shape)
        inherit(select, op)
        chosen = insert_before(op, select).output
    assert isinstance(chosen.owner, SelectOp)
    chosen.owner.instruction_name = op.instruction_name
    read_instead(op.output, chosen)
    op.detach()
    op.erase()
    return inner


def _is_chosen(op: ConditionalOp, number: int) -> SSAValue:
    """Whether the branch of this number is the one that runs, which is not the last one."""
    index = op.inputs[0]
    shape = shape_of(index.type)
    assert isinstance(shape, ArrayShape)
    if shape.element_type is PRED:
        return index
    import numpy as np

    literal = Literal.from_array(shape, np.array(number, shape.element_type.dtype))
    constant = insert_before(op, make("constant", (), shape, {"literal": LiteralAttr(literal)}))
    scalar = ArrayShape(PRED, (), (), shape.layout)
    equal = make("compare", [index, constant], scalar, {"direction": string("EQ")})
    return insert_before(op, equal).output


def _spread(op: ConditionalOp, predicate: SSAValue) -> SSAValue:
    """The predicate for every element of the result."""
    shape = op.shape
    assert isinstance(shape, ArrayShape)
    if not shape.dimensions:
        return predicate
    spread = ArrayShape(PRED, shape.dimensions, shape.dynamic, shape.layout)
    properties = {"dimensions": integers(())}
    return insert_before(op, make("broadcast", [predicate], spread, properties)).output
