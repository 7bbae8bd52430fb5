"""When buffers are in use: positions count steps in the order they are written."""

from __future__ import annotations

from collections.abc import Sequence

from mlirhlo.lowering.cpu.steps import Branch, Buffer, Callback, Copy, Kernel, Slice, Step, While


class Spans:
    """Walks the steps in order and writes down when buffers are in use."""

    def __init__(self) -> None:
        self.position = 0

    def run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.position += 1
            match step:
                case Kernel() | Callback():
                    for buffer in (*step.reads, *step.writes):
                        buffer.used_at(self.position)
                case Slice():
                    for buffer in step.reads:
                        buffer.used_at(self.position)
                case Copy():
                    step.source.used_at(self.position)
                    step.target.used_at(self.position)
                case While():
                    self._loop(step)
                case Branch():
                    step.selector.used_at(self.position)
                    for branch in step.branches:
                        self.run(branch)

    def _loop(self, loop: While) -> None:
        start = self.position
        self.run(loop.condition)
        self.position += 1
        loop.test.used_at(self.position)
        self.run(loop.body)
        self.position += 1
        # What was there before the loop is needed by its next round too.
        for buffer in _touched(loop):
            if buffer.first <= start:
                buffer.used_at(self.position)


def _touched(loop: While) -> set[Buffer]:
    found: set[Buffer] = {loop.test}
    stack: list[Step] = [*loop.condition, *loop.body]
    while stack:
        step = stack.pop()
        match step:
            case Kernel() | Callback():
                found.update(step.reads, step.writes)
            case Slice():
                found.update(step.reads)
            case Copy():
                found.update((step.source, step.target))
            case While():
                stack += [*step.condition, *step.body]
                found.add(step.test)
            case Branch():
                found.add(step.selector)
                for branch in step.branches:
                    stack += branch
    return found
