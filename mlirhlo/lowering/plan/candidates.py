"""Which buffers could be one: the ends of copies, and what kernels may write over.

Buffers hang together when a chain of such pairs leads from one to the other. What is not in one part with a buffer
cannot become one with it, so that sets of buffers are of one part each, a bit for each member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import log2
from typing import TypeAlias

from mlirhlo.lowering.plan.steps import Branch, Buffer, Copy, Kernel, Repeat, Step, While, touched

Set: TypeAlias = int
"""Buffers of one part by number, a bit for each."""

Pairs: TypeAlias = "Mapping[str, Sequence[tuple[int, int]]]"
"""By kernel, numbers of arguments that may be one buffer."""

Numbers: TypeAlias = "Mapping[Buffer, tuple[int, int]]"
"""By candidate, the part that it hangs together with, and its number there."""

Join: TypeAlias = "tuple[float, Buffer, Buffer]"
"""Two buffers, and what it is worth to make them one."""

_LOOP = 6.0
"""A copy inside a loop counts as one outside of more bytes, by this power of two."""


class Candidates:
    """The pairs of a module's steps, from its end to its start, and what hangs together by them."""

    def __init__(self, steps: Sequence[Step], results: Sequence[Buffer], pairs: Pairs) -> None:
        self.copies: list[Join] = []
        self.in_place: list[Join] = []
        self._above: dict[Buffer, Buffer] = {}
        for step, depth in _backward(steps):
            if isinstance(step, Copy):
                self._add(self.copies, step.source, step.target, depth)
            else:
                for operand, target in shared_operands(step, pairs[step.name]):
                    self._add(self.in_place, operand, target, depth)
        for result in results:
            if result.alias is not None:
                self._tie(result, result.alias)
        self.numbers = self._numbered(chain(touched(steps), results))
        given_away = {result.alias for result in results}
        self.changing = {
            b: at
            for b, at in self.numbers.items()
            if b.in_arena or b.result is not None or b in given_away
        }
        """Those that may be written: not parameters and constants, which hold the same at all times."""

    def _add(self, joins: list[Join], a: Buffer, b: Buffer, depth: int) -> None:
        if a is b or a.size != b.size or not (a.in_arena or b.in_arena):
            return
        worth = log2(a.size) + _LOOP * depth if a.size else 0.0
        joins.append((worth, a, b))
        self._tie(a, b)

    def _tie(self, a: Buffer, b: Buffer) -> None:
        self._above[self._top(a)] = self._top(b)

    def _top(self, buffer: Buffer) -> Buffer:
        above = self._above.setdefault(buffer, buffer)
        while above is not buffer:
            self._above[buffer] = self._above[above]  # shorter next time
            buffer, above = above, self._above[above]
        return buffer

    def _numbered(self, buffers: Iterable[Buffer]) -> Numbers:
        parts: dict[Buffer, int] = {}
        counts: Counter[int] = Counter()
        numbers: dict[Buffer, tuple[int, int]] = {}
        for buffer in dict.fromkeys(buffers):
            if buffer not in self._above:
                continue
            part = parts.setdefault(self._top(buffer), len(parts))
            numbers[buffer] = part, counts[part]
            counts[part] += 1
        return numbers


def shared_operands(
    step: Kernel, pairs: Sequence[tuple[int, int]]
) -> Iterator[tuple[Buffer, Buffer]]:
    """Operands of a step that its results may be written over, and these results."""
    arguments = [*step.reads, *step.writes]
    for operand, result in pairs:
        # An operand that is read as another one too is not free.
        if step.reads.count(arguments[operand]) == sum(
            arguments[o] is arguments[operand] and r == result for o, r in pairs
        ):
            yield arguments[operand], arguments[result]


def _backward(steps: Sequence[Step]) -> Iterator[tuple[Copy | Kernel, int]]:
    """Copies and kernels from the last to the first, and in how many loops they are."""
    stack: list[tuple[Step, int]] = [(step, 0) for step in steps]
    while stack:
        step, depth = stack.pop()
        match step:
            case Copy() | Kernel():
                yield step, depth
            case While():
                stack += [(inner, depth + 1) for inner in (*step.body, *step.condition)]
            case Repeat():
                stack += [(inner, depth + 1) for inner in step.body]
            case Branch():
                stack += [(inner, depth) for b in reversed(step.branches) for inner in b]
            case _:
                pass
