"""When buffers are in use: positions count steps in the order they are written."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from mlirhlo.lowering.plan.steps import Branch, Buffer, Repeat, Step, While, named
from mlirhlo.nesting import Walk, walked


class Spans:
    """Walks the steps in order and writes down when buffers are in use."""

    def __init__(self) -> None:
        self.position = 0
        self.starts: list[int] = []
        """Positions of the loops around the current step."""
        self.again: list[set[Buffer]] = []
        """What each of them needs in its next round, and no loop around it does."""

    def run(self, steps: Sequence[Step]) -> None:
        """Of a whole module."""
        walked(self._steps(steps))

    def _steps(self, steps: Sequence[Step]) -> Walk[None]:
        for step in steps:
            self.position += 1
            match step:
                case While() | Repeat():
                    yield self._loop(step)
                case Branch():
                    self._use(step.selector)
                    for branch in step.branches:
                        yield self._steps(branch)
                case _:
                    for buffer in named(step):
                        self._use(buffer)

    def _use(self, buffer: Buffer) -> None:
        buffer.used_at(self.position)
        part: Buffer | None = buffer
        while part is not None:
            # What was there before a loop is needed by its next round too: to the end of the outermost one.
            loop = bisect_left(self.starts, part.first)
            if loop < len(self.again):
                self.again[loop].add(part)
            part = part.part_of

    def _loop(self, loop: While | Repeat) -> Walk[None]:
        self.starts.append(self.position)
        self.again.append(set())
        if isinstance(loop, While):
            yield self._steps(loop.condition)
            self.position += 1
            self._use(loop.test)
        yield self._steps(loop.body)
        self.position += 1
        self.starts.pop()
        for buffer in self.again.pop():
            buffer.used_at(self.position)
