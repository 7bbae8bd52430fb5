"""`while-loop-invariant-code-motion`: what is the same in every round is computed before the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from xdsl.ir import SSAValue

from mlirhlo.analysis.cost import counter
from mlirhlo.analysis.cost.counts import FLOPS, TRANSCENDENTALS, Counts
from mlirhlo.analysis.effects import SideEffects
from mlirhlo.analysis.trip_count import runs_at_most_once
from mlirhlo.dialects.hlo.attributes.base import integer, symbol
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.element_types import F32
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    GetTupleElementOp,
    Instruction,
    ParameterOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.table import opcodes
from mlirhlo.dialects.quick import read_instead, replace
from mlirhlo.rewrites.cloning import clone_computation, clone_instruction
from mlirhlo.rewrites.control_flow.flatten_call_graph import unshare
from mlirhlo.rewrites.control_flow.while_loops import (
    Loop,
    count_calls,
    part,
    retype_parameter,
    understood,
)
from mlirhlo.rewrites.fusion.cost import BYTE_TIME, element_time
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit
from mlirhlo.rewrites.simplify.tuple_simplifier import TupleSimplifierPass

_FREE = opcodes(lambda row: row.is_index_map)
"""Opcodes that are hoisted only with a user."""

_NEVER = opcodes(lambda row: row.names_device or row.varies or (row.free and not row.forwards)) - {
    "constant"
} | {"domain"}


@dataclass(frozen=True)
class WhileLoopInvariantCodeMotionPass(HloPass):
    """Moves instructions that give the same in every round in front of the loop.

    Before and after:

        body:  %e = f32[4] exponential(%invariant)  …
          =>   %e = f32[4] exponential(%initial) before the loop, as a new element of its state

    An instruction moves when its operands are elements that the body hands on, constants, or instructions
    that move. Constants, iotas, broadcasts, reshapes and transposes move with a user only. Side effects,
    random numbers, control dependencies and the condition stay, and loops that run at most once. Bodies and
    conditions that are called elsewhere too are cloned for that.
    Source: reference of the passes, "WhileLoopInvariantCodeMotion".
    """

    name = "while-loop-invariant-code-motion"

    size_inflation_ratio: int = 0
    """Greatest ratio of a moved instruction's bytes to those of its operands; 0 = no limit."""
    least_saved: int = 0
    """Moves only what takes so many nanoseconds more to compute, with all that moves with it, than to read."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Moves; whether anything was."""
        loops = module.candidates(WhileOp)
        if not loops:
            return False
        effects = SideEffects.of(module)
        costs = counter(module.op) if self.least_saved else None
        computations = module.by_name()
        calls = dict(module.known(count_calls))
        names = NameUniquer(computations)
        changed = False
        for op in loops:
            assert isinstance(op, WhileOp)
            alone = {op.body: 1, op.condition: 1}
            loop = understood(op, computations, alone)
            if loop is None or runs_at_most_once(op, computations):
                continue
            moving = self._moving(loop, effects, costs)
            if moving and (own := _unshared(loop, computations, calls, names)) is not loop:
                loop, moving = own, self._moving(own, effects, costs)
            if moving:
                _hoist(loop, moving)
                changed = True
        if changed:
            unshare(module.afresh())  # fusions of bodies that were cloned
            TupleSimplifierPass().run(module.afresh(), trace)
        return changed

    def _moving(
        self, loop: Loop, effects: SideEffects, costs: Callable[[Instruction], Counts] | None
    ) -> list[Instruction]:
        """Instructions that move, operands first."""
        fixed: set[SSAValue] = set()
        found: list[Instruction] = []
        waited = {v for op in loop.body.instructions for v in op.control_predecessors}
        for op in loop.body.instructions:
            if isinstance(op, GetTupleElementOp) and isinstance(op.operand.owner, ParameterOp):
                if loop.is_invariant(op.index):
                    fixed.add(op.output)
                continue
            if op.opcode.name in _NEVER or op is loop.root or op.control_predecessors:
                continue
            if op.output in waited or effects.of_instruction(op) or not self._is_small(op):
                continue
            if all(v in fixed for v in op.inputs) and isinstance(op.shape, ArrayShape):
                fixed.add(op.output)
                found.append(op)
        return _with_users(found if costs is None else self._worth_it(found, costs))

    def _worth_it(
        self, found: list[Instruction], costs: Callable[[Instruction], Counts]
    ) -> list[Instruction]:
        """What takes long to compute, by the longest chain that leads there, with what it is computed from."""
        times: dict[SSAValue, float] = {}
        for op in found:
            before = max((times.get(v, 0.0) for v in op.inputs), default=0.0)
            times[op.output] = before + _time(costs(op))
        taken: set[SSAValue] = set()
        for op in reversed(found):
            saved = times[op.output] - BYTE_TIME * _bytes(op.shape)
            if op.output in taken or saved >= self.least_saved:
                taken.update((op.output, *op.inputs))
        return [op for op in found if op.output in taken]

    def _is_small(self, op: Instruction) -> bool:
        if not self.size_inflation_ratio:
            return True
        operands = sum(_bytes(shape) for shape in op.input_shapes)
        return _bytes(op.shape) <= self.size_inflation_ratio * operands


def _unshared(
    loop: Loop,
    computations: dict[str, ComputationOp],
    calls: dict[str, int],
    names: NameUniquer,
) -> Loop:
    """The loop with a body and a condition that nothing else calls: clones of those that are shared."""
    op = loop.op
    for key, computation in (("condition", loop.condition), ("body", loop.body)):
        name = computation.computation_name
        if calls[name] < 2:
            continue
        clone = clone_computation(computation, names.unique(f"{name}.clone"))
        block = computation.parent
        assert block is not None
        block.insert_op_after(clone, computation)
        op.properties[key] = symbol(clone.computation_name)
        computations[clone.computation_name] = clone
        calls[name] -= 1
        calls[clone.computation_name] = 1
        for inner in clone.instructions:
            for callee in inner.called_computations:
                calls[callee] += 1
    own = understood(op, computations, {op.body: 1, op.condition: 1})
    assert own is not None
    return loop if own.body is loop.body and own.condition is loop.condition else own


def _time(counts: Counts) -> float:
    """Nanoseconds that an instruction computes for, its operands given; a custom call takes long."""
    flops, functions = counts.get(FLOPS), counts.get(TRANSCENDENTALS)
    return (
        element_time("add", F32) * flops + element_time("tanh", F32) * functions
        if flops >= 0
        else inf
    )


def _with_users(found: list[Instruction]) -> list[Instruction]:
    """Without what is free and would move alone."""
    moving: list[Instruction] = []
    wanted: set[Instruction] = set()
    for op in reversed(found):
        if op.opcode.name not in _FREE or op in wanted:
            moving.append(op)
            wanted.update(v.owner for v in op.inputs if isinstance(v.owner, Instruction))
    return moving[::-1]


def _bytes(shape: Shape) -> int:
    return shape.byte_size if isinstance(shape, ArrayShape) else 0


def _hoist(loop: Loop, moving: list[Instruction]) -> None:
    """Puts copies before the loop, and those that the rest of the body reads into its state."""
    op = loop.op
    block = op.parent
    assert block is not None
    values: dict[SSAValue, SSAValue] = {}
    for read in loop.reads(loop.body):
        if loop.is_invariant(read.index):
            element = part(op.inputs[0], read.index, read.shape)
            block.insert_op_before(element, op)
            values[read.output] = element.output
    leaving: list[Instruction] = []
    for inner in moving:
        copy = clone_instruction(inner, values)
        block.insert_op_before(copy, op)
        values[inner.output] = copy.output
        if any(use.operation not in moving for use in inner.output.uses):
            leaving.append(inner)
    old = loop.shape
    shape = TupleShape((*old.elements, *(i.shape for i in leaving)))
    parts: list[SSAValue] = []
    for k, element_shape in enumerate(old.elements):
        element = part(op.inputs[0], k, element_shape)
        block.insert_op_before(element, op)
        parts.append(element.output)
    start = make("tuple", [*parts, *(values[i.output] for i in leaving)], shape)
    inherit(start, op)
    block.insert_op_before(start, op)
    parameter = retype_parameter(loop.body, shape)
    retype_parameter(loop.condition, shape)
    body_block = loop.root.parent
    assert body_block is not None
    handed: list[SSAValue] = []
    for number, inner in enumerate(leaving):
        properties = {"index": integer(len(old.elements) + number)}
        element = make("get-tuple-element", [parameter.output], inner.shape, properties)
        inherit(element, inner)
        body_block.insert_op_before(element, inner)
        replace(inner.output, element.output)
        handed.append(element.output)
    for inner in reversed(moving):
        inner.detach()
        inner.erase()
    root = make("tuple", [*loop.root.inputs, *handed], shape, name=loop.root.instruction_name)
    inherit(root, loop.root)
    body_block.insert_op_before(root, loop.root)
    read_instead(loop.root.output, root.output)
    loop.root.detach()
    loop.root.erase()
    new = make("while", [start], shape, dict(op.properties))
    block.insert_op_before(new, op)
    results: list[Instruction] = []
    for k, element_shape in enumerate(old.elements):
        element = part(new.output, k, element_shape)
        block.insert_op_before(element, op)
        results.append(element)
    whole = make("tuple", results, old)
    block.insert_op_before(whole, op)
    read_instead(op.output, whole.output)
    new.instruction_name = op.instruction_name
    op.detach()
    op.erase()
