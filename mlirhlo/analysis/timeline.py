"""One order of all instructions of a module, as if they ran one after the other, branches of conditionals too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp


@dataclass(frozen=True, slots=True)
class Timeline:
    """Times are numbers; an instruction that runs computations has its time after all that is in them."""

    time: dict[Instruction, int] = field(default_factory=dict[Instruction, int])
    begin: dict[Instruction, int] = field(default_factory=dict[Instruction, int])
    """Of instructions that run computations: the time of the first instruction in them."""
    end: dict[ComputationOp, int] = field(default_factory=dict[ComputationOp, int])
    """The first time behind a computation."""

    @staticmethod
    def of(
        roots: Sequence[ComputationOp],
        within: Mapping[Instruction, Sequence[ComputationOp]],
        order: Callable[[ComputationOp], Sequence[Instruction]],
    ) -> Timeline:
        """Of computations that run after each other, with those `within` instructions of theirs, each in its order."""
        line = Timeline()
        time, begin = line.time, line.begin

        def steps(computation: ComputationOp) -> Iterator[Instruction]:
            yield from order(computation)
            line.end[computation] = len(time)

        stack = [steps(root) for root in reversed(roots)]
        while stack:
            op = next(stack[-1], None)
            if op is None:
                stack.pop()
            elif op in within and op not in begin:
                begin[op] = len(time)
                stack.append(iter((op,)))  # its own time comes after what it runs
                stack += [steps(inner) for inner in reversed(within[op])]
            else:
                time[op] = len(time)
        return line
