"""`simplify-while-loops`: loops that run never or once, and state that loops do not need."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.analysis.trip_count import trip_count
from mlirhlo.dialects.hlo.attributes.base import integer, symbol
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConstantOp,
    GetTupleElementOp,
    Instruction,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS
from mlirhlo.dialects.quick import insert_before, put_operand
from mlirhlo.rewrites.control_flow.call_inliner import CallInlinerPass
from mlirhlo.rewrites.control_flow.while_loop_constant_sinking import sink_value
from mlirhlo.rewrites.control_flow.while_loops import (
    Loop,
    count_calls,
    flatten_state,
    has_nested_state,
    keep_elements,
    part,
    understood,
)
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter, inherit
from mlirhlo.rewrites.simplify.dce import DcePass
from mlirhlo.rewrites.simplify.tuple_simplifier import TupleSimplifierPass


@dataclass(frozen=True)
class SimplifyWhileLoopsPass(HloPass):
    """Removes loops that run never or once, and elements of the state that nobody needs.

    Before and after:

        %w = (s32[], f32[4]) while(%s), …counter from 0 while less than 1…
          =>   …the instructions of the body on %s

    An element that the body only hands on and nobody reads leaves the state; users of the result read
    its initial value. So do elements that nobody reads but to compute each other, and those that are
    always the same constant. Of two elements that start and change alike one stays, and none that is
    a constant. A state that holds tuples becomes one of their elements. Loops with side effects in
    the condition, control dependencies, or a computation that others call are left alone.
    Source: reference of the passes, "WhileLoopSimplifier".
    """

    name = "simplify-while-loops"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Simplifies; whether anything changed."""
        loops = module.candidates(WhileOp)
        if not loops:
            return False
        changed = _flatten(module)
        if changed:
            TupleSimplifierPass().run(module.afresh(), trace)
            module = module.afresh()
            loops = module.candidates(WhileOp)
        inlined = False
        effects = SideEffects.of(module)
        computations = module.by_name()
        calls = module.known(count_calls)
        for op in loops:
            if not isinstance(op, WhileOp) or op.parent is None:
                continue
            if CONTROL_PREDECESSORS in op.properties or effects.of_computation(op.condition):
                continue
            count = trip_count(op, computations)
            if count == 0 and not effects.of_computation(op.body):
                Rewriter(op).replace_by_value(op, op.inputs[0])
                changed = True
            elif count == 1:
                _run_once(op)
                changed = inlined = True
            else:
                changed |= _shrink(understood(op, computations, calls), effects)
        if inlined:
            CallInlinerPass().run(module.afresh(), trace)
        if changed:
            TupleSimplifierPass().run(module.afresh(), trace)
            DcePass().run(module.afresh(), trace)
        return changed


def _flatten(module: HloModule) -> bool:
    """Makes nested states flat, where nobody else calls body or condition; whether there were any."""
    loops = [op for op in module.candidates(WhileOp) if has_nested_state(op)]
    computations, calls = module.by_name(), module.known(count_calls) if loops else {}
    changed = False
    for op in loops:
        assert isinstance(op, WhileOp)
        parts = computations[op.body], computations[op.condition]
        is_own = all(calls[name] == 1 for name in (op.body, op.condition))
        marked = (op, parts[0].root, *parts[0].parameters)
        if is_own and not any("sharding" in m.properties or m.control_predecessors for m in marked):
            flatten_state(op, *parts)
            changed = True
    return changed


def _run_once(op: WhileOp) -> None:
    call = make("call", [op.inputs[0]], op.shape, {"to_apply": symbol(op.body)})
    inherit(call, op)
    Rewriter(op).replace(op, call)


def _shrink(loop: Loop | None, effects: SideEffects) -> bool:
    """Merges elements that are alike, then drops those that nobody reads."""
    if loop is None:
        return False
    handed_on = _hand_on_dead(loop, effects) | _hand_on_constants(loop)
    merged = _merge(loop) | _propagate(loop) | handed_on
    unread = [k for k in range(len(loop.shape.elements)) if _is_unread(loop, k)]
    if not unread:
        return merged
    keep_elements(loop, [k for k in range(len(loop.shape.elements)) if k not in unread])
    return True


def _hand_on_dead(loop: Loop, effects: SideEffects) -> bool:
    """Lets the body hand on as they are the elements that only each other are computed from."""
    indices = range(len(loop.shape.elements))
    live = _live(loop, effects)
    dead = [k for k in indices if k not in live and not loop.is_invariant(k)]
    if not dead:
        return False
    old = [loop.root.inputs[k].owner for k in dead]
    for k in dead:
        _hand_on(loop, k)
    Rewriter(loop.root, lambda: effects).erase_unread(*old)
    return True


def _hand_on_constants(loop: Loop) -> bool:
    """Lets the body hand on an element that starts with a constant and is given it again."""
    start = loop.op.inputs[0].owner
    if not isinstance(start, TupleOp):
        return False
    changed = False
    for index, (first, next_) in enumerate(zip(start.inputs, loop.root.inputs, strict=True)):
        a, b = first.owner, next_.owner
        if isinstance(a, ConstantOp) and isinstance(b, ConstantOp) and _is_alike(a, b):
            _hand_on(loop, index)
            changed = True
    return changed


def _is_alike(a: ConstantOp, b: ConstantOp) -> bool:
    """Whether two constants have the same shape and bits, both known."""
    known = a.literal is not None and not a.literal.is_elided
    return known and a.shape == b.shape and a.properties["literal"] == b.properties["literal"]


def _hand_on(loop: Loop, index: int) -> None:
    """Lets the body give an element as it takes it."""
    (parameter,) = loop.body.parameters
    read = part(parameter.output, index, loop.shape.elements[index])
    insert_before(loop.root, read)
    put_operand(loop.root, index, read.output)


def _live(loop: Loop, effects: SideEffects) -> set[int]:
    """Elements that something needs: readers of the result, the condition, side effects in the body."""
    readers = [use.operation for use in loop.op.output.uses]
    if not all(isinstance(reader, GetTupleElementOp) for reader in readers):
        return set(range(len(loop.shape.elements)))
    known = [reader.index for reader in readers if isinstance(reader, GetTupleElementOp)]
    known += [read.index for read in loop.reads(loop.condition) if read.output.first_use]
    stack = [op for op in loop.body.instructions if effects.of_instruction(op)]
    (parameter,) = loop.body.parameters
    live: set[int] = set()
    seen: set[Instruction] = {loop.root}
    while known or stack:
        if known:
            index = known.pop()
            owner = loop.root.inputs[index].owner
            if index not in live and isinstance(owner, Instruction):
                stack.append(owner)
            live.add(index)
            continue
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        if isinstance(op, GetTupleElementOp) and op.operand is parameter.output:
            known.append(op.index)
        stack += [value.owner for value in op.operands if isinstance(value.owner, Instruction)]
    return live


def _is_unread(loop: Loop, index: int) -> bool:
    """Whether the body hands the element on as it is, and nobody else reads it."""
    if not loop.is_invariant(index):
        return False
    handed_on = loop.root.inputs[index].owner
    for computation in (loop.body, loop.condition):
        for read in loop.reads(computation):
            if read.index != index:
                continue
            if read is not handed_on:
                if read.output.first_use is not None:
                    return False
            elif not all(
                use.operation is loop.root and use.index == index for use in read.output.uses
            ):
                return False
    return True


def _propagate(loop: Loop) -> bool:
    """Lets readers of an invariant element that starts with a constant read a copy of the constant."""
    start = loop.op.inputs[0].owner
    if not isinstance(start, TupleOp):
        return False
    changed = False
    for index, value in enumerate(start.inputs):
        if loop.is_invariant(index) and isinstance(value.owner, ConstantOp):
            changed |= sink_value(loop, index, value)
    return changed


def _merge(loop: Loop) -> bool:
    """Lets readers of an invariant element read an earlier one that starts with the same value."""
    start = loop.op.inputs[0].owner
    if not isinstance(start, Instruction) or start.opcode.name != "tuple":
        return False
    first: dict[object, int] = {}
    changed = False
    for index, value in enumerate(start.inputs):
        if not loop.is_invariant(index):
            continue
        other = first.setdefault(value, index)
        if other == index:
            continue
        for computation in (loop.body, loop.condition):
            changed |= _read_instead(loop, computation, index, other)
    return changed


def _read_instead(loop: Loop, computation: ComputationOp, index: int, other: int) -> bool:
    changed = False
    handed_on = loop.root.inputs[index].owner
    for read in loop.reads(computation):
        if read.index != index:
            continue
        users = [
            u for u in read.output.uses if u.operation is not loop.root or read is not handed_on
        ]
        if not users:
            continue
        copy = make("get-tuple-element", [read.operand], read.shape, {"index": integer(other)})
        block = read.parent
        assert block is not None
        block.insert_op_before(copy, read)
        assert isinstance(copy, GetTupleElementOp)
        for use in users:
            put_operand(use.operation, use.index, copy.output)
        changed = True
    return changed
