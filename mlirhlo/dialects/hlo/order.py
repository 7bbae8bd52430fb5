"""Orders of the instructions of a computation: as they stand, and operands before users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp


def instruction_list(computation: ComputationOp) -> list[Instruction]:
    """Instructions in block order, read once: walking a block is slow."""
    found: list[Instruction] = []
    op = computation.body.block.first_op
    while op is not None:
        found.append(cast(Instruction, op))
        op = op.next_op
    return found[:-1]  # the last one is `hlo.return`


def post_order(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Depth-first post-order: from every instruction without users, in stored order; before an
    instruction its control predecessors from the last to the first, then its operands in order.

    The stack is its own: dumps nest deeper than Python's.
    """
    used = {id(value.owner) for op in instructions for value in op.inputs}
    ordered: list[Instruction] = []
    done: set[int] = set()
    opened: set[int] = set()
    for start in instructions:
        if id(start) in used or id(start) in done:
            continue
        stack = [start]
        while stack:
            op = stack[-1]
            key = id(op)
            if key in done:
                stack.pop()
                continue
            if key not in opened:
                opened.add(key)
                # The last pushed is visited first.
                before = _unvisited(op.inputs[::-1], done)
                if CONTROL_PREDECESSORS in op.properties:
                    before += _unvisited(op.control_predecessors, done)
                if before:
                    stack += before
                    continue
            stack.pop()
            done.add(key)
            ordered.append(op)
    return ordered


def _unvisited(values: Iterable[SSAValue], done: set[int]) -> list[Instruction]:
    found: list[Instruction] = []
    for value in values:
        op = cast(Instruction, value.owner)
        if id(op) not in done:
            found.append(op)
    return found
