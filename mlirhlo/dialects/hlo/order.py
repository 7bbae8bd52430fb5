"""Orders of the instructions of a computation: as they stand, and operands before users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.quick import ops_of

_ELSEWHERE = -1


def instruction_list(computation: ComputationOp) -> list[Instruction]:
    """Instructions in block order, read once: walking a block is slow."""
    return cast(list[Instruction], ops_of(computation.block)[:-1])  # the last one is `hlo.return`


def post_order(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Depth-first post-order: from every instruction without users, in stored order; before an
    instruction its control predecessors from the last to the first, then its operands in order.

    Operands from elsewhere, which no verified computation has, are passed over.
    """
    before, is_used = _visited_before(instructions)
    is_done = bytearray(len(instructions) + 1)
    is_done[_ELSEWHERE] = 1
    ordered: list[Instruction] = []
    # Places instead of operations, which are slow to compare; the stack is its own, since dumps nest
    # deeper than Python's.
    for start in range(len(instructions)):
        if is_used[start]:
            continue
        stack = [start]
        while stack:
            place = stack[-1]
            if is_done[place]:
                stack.pop()
                continue
            if needed := before[place]:
                before[place] = ()
                height = len(stack)
                for other in reversed(needed):  # the last pushed is visited first
                    if not is_done[other]:
                        stack.append(other)
                if len(stack) > height:
                    continue
            stack.pop()
            is_done[place] = 1
            ordered.append(instructions[place])
    return ordered


def _visited_before(
    instructions: Sequence[Instruction],
) -> tuple[list[Sequence[int]], bytearray]:
    """By place: what is visited before an instruction, and whether another one reads its value."""
    numbers: dict[int, int] = {}
    for i, op in enumerate(instructions):
        (value,) = op.results
        numbers[id(value)] = i
    place_of = numbers.get
    before: list[Sequence[int]] = []
    is_used = bytearray(len(instructions) + 1)
    for op in instructions:
        if CONTROL_PREDECESSORS in op.properties:
            inputs = [place_of(id(v), _ELSEWHERE) for v in op.inputs]
            control = [place_of(id(v), _ELSEWHERE) for v in op.control_predecessors]
            before.append(control[::-1] + inputs)
        else:
            inputs = [place_of(id(v), _ELSEWHERE) for v in op._operands]  # pyright: ignore[reportPrivateUsage]
            before.append(inputs)
        for place in inputs:
            is_used[place] = 1
    return before, is_used
