"""The orders in which XLA prints: instructions of a computation, computations of a module.

Both walks keep their own stack: dumps nest deeper than Python's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlirhlo.dialects.hlo.attributes.base import ints
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.formats.hlo_text.options import ComputationOrder


def in_storage_order(
    computation: ComputationOp, instructions: Sequence[Instruction]
) -> Sequence[Instruction]:
    """Instructions in stored order; that of a scheduled one may differ from its block order."""
    order = ints(computation.storage_order)
    if len(order) != len(instructions):
        return instructions
    return [instructions[place] for place in order]


Lists = Mapping[str, Sequence[Instruction]]
"""Instructions of every computation, in block order."""


def computation_order(
    computations: Mapping[str, ComputationOp], lists: Lists, order: ComputationOrder
) -> list[ComputationOp]:
    """Computations in the order asked for."""
    calls = {name: _calls(c, lists[name], computations) for name, c in computations.items()}
    stored = list(computations.values())
    if order is ComputationOrder.STORED:
        return stored
    if order is ComputationOrder.KEPT:
        seen: set[str] = set()
        for name, groups in calls.items():
            if not all(seen.issuperset(group) for group in groups):
                return _walk(computations, calls)
            seen.add(name)
        return stored
    return _walk(computations, calls)


def _walk(
    by_name: Mapping[str, ComputationOp], calls: Mapping[str, list[tuple[str, ...]]]
) -> list[ComputationOp]:
    """Callees before callers: every computation that nobody calls, in module order, after all that
    it calls. Within one, calls in stored order, a while's body before its condition; a callee met
    for the second time keeps its first place, even below a sibling that calls it too.
    """
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


def _calls(
    computation: ComputationOp,
    instructions: Sequence[Instruction],
    known: Mapping[str, ComputationOp],
) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    if not any(op.calling_keys for op in instructions):
        return found
    for op in in_storage_order(computation, instructions):
        if op.calling_keys:
            names = tuple(name for name in op.called_computations if name in known)
            if names:
                found.append(names[::-1] if op.opcode.name == "while" else names)
    return found


def fused_computations(lists: Lists) -> set[str]:
    """Names of the computations that fusions call; a schedule does not order them."""
    return {
        name
        for instructions in lists.values()
        for op in instructions
        if op.opcode.name == "fusion"
        for name in op.called_computations
    }
