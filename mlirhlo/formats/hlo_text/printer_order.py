"""The orders in which XLA prints: instructions of a computation, computations of a module.

Both walks keep their own stack: dumps nest deeper than Python's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import ints
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.formats.hlo_text.options import ComputationOrder


def post_order(computation: ComputationOp) -> list[Instruction]:
    """Depth-first post-order: from every instruction without users, in stored order; before an
    instruction its control predecessors from the last to the first, then its operands in order.
    """
    instructions = list(computation.instructions)
    used = {id(value) for op in instructions for value in op.inputs}
    ordered: list[Instruction] = []
    done: set[int] = set()
    for start in instructions:
        if id(start.results[0]) in used or id(start) in done:
            continue
        stack = [start]
        opened: set[int] = set()
        while stack:
            op = stack[-1]
            key = id(op)
            if key in done:
                stack.pop()
            elif key in opened or not op.operands:
                stack.pop()
                done.add(key)
                ordered.append(op)
            else:
                opened.add(key)
                # The last pushed is visited first.
                stack += _unvisited(reversed(op.inputs), done)
                if "control_predecessors" in op.properties:
                    stack += _unvisited(op.control_predecessors, done)
    return ordered


def _unvisited(values: Iterable[SSAValue], done: set[int]) -> list[Instruction]:
    found: list[Instruction] = []
    for value in values:
        op = cast(Instruction, value.owner)
        if id(op) not in done:
            found.append(op)
    return found


def stored_instructions(computation: ComputationOp) -> list[Instruction]:
    """Instructions in stored order; that of a scheduled one may differ from its block order."""
    instructions = list(computation.instructions)
    order = ints(computation.storage_order)
    if len(order) != len(instructions):
        return instructions
    return [instructions[place] for place in order]


def computation_order(module: HloModule, order: ComputationOrder) -> list[ComputationOp]:
    """Computations in the order asked for."""
    stored = list(module.computations)
    if order is ComputationOrder.STORED:
        return stored
    if order is ComputationOrder.KEPT:
        seen: set[str] = set()
        for computation in stored:
            for op in computation.instructions:
                if op.calling_keys and not seen.issuperset(op.called_computations):
                    return walked_computations(module)
            seen.add(computation.computation_name)
        return stored
    return walked_computations(module)


def walked_computations(module: HloModule) -> list[ComputationOp]:
    """Callees before callers: every computation that nobody calls, in module order, after all that
    it calls. Within one, calls in stored order, a while's body before its condition; a callee met
    for the second time keeps its first place, even below a sibling that calls it too.
    """
    by_name = module.by_name()
    calls = {name: _calls(c, by_name) for name, c in by_name.items()}
    called = {callee for callees in calls.values() for group in callees for callee in group}
    ordered: list[ComputationOp] = []
    visited: set[str] = set()
    roots = [name for name in by_name if name not in called]
    for root in [*roots, *by_name]:
        if root in visited:
            continue
        visited.add(root)
        stack = [(root, iter(calls[root]))]
        while stack:
            name, groups = stack[-1]
            group = next(groups, None)
            if group is None:
                stack.pop()
                ordered.append(by_name[name])
                continue
            for callee in reversed(group):
                if callee not in visited:
                    visited.add(callee)
                    stack.append((callee, iter(calls[callee])))
    return ordered


def _calls(computation: ComputationOp, known: dict[str, ComputationOp]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for op in stored_instructions(computation):
        if op.calling_keys:
            names = tuple(name for name in op.called_computations if name in known)
            if names:
                found.append(names[::-1] if op.opcode.name == "while" else names)
    return found


def fused_computations(module: HloModule) -> set[str]:
    """Names of the computations that fusions call; a schedule does not order them."""
    return {
        name
        for op in module.instructions
        if op.opcode.name == "fusion"
        for name in op.called_computations
    }
