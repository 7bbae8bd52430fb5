"""What loops read of what is there before them, or from their last round."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from mlirhlo.lowering.plan.steps import Branch, Buffer, Copy, Repeat, Slice, Step, While
from mlirhlo.nesting import Walk, walked

Exposed: TypeAlias = "Mapping[int, Iterable[Buffer]]"
"""By the identity of a loop, what is read after its condition, if all that follows the loop is left out."""

_Sets: TypeAlias = "tuple[set[Buffer], set[Buffer]]"
"""What steps read before they write it, and what they write whichever way they take."""


def exposed_reads(steps: Sequence[Step], among: Collection[Buffer]) -> Exposed:
    """Of all loops, as far as the buffers are `among` these."""
    found: dict[int, Iterable[Buffer]] = {}
    walked(_sets(steps, among, found))
    return found


def _sets(
    steps: Sequence[Step], among: Collection[Buffer], found: dict[int, Iterable[Buffer]]
) -> Walk[_Sets]:
    read: set[Buffer] = set()
    written: set[Buffer] = set()
    for step in reversed(steps):
        match step:
            case While():
                of_condition: _Sets = yield _sets(step.condition, among, found)
                of_body: _Sets = yield _sets(step.body, among, found)
                again = of_body[0] | (of_condition[0] - of_body[1])
                again.update(b for b in (step.test,) if b in among)
                found[id(step)] = list(again)
                reads, writes = (again - of_condition[1]) | of_condition[0], of_condition[1]
            case Repeat():
                reads, writes = yield _sets(step.body, among, found)
                found[id(step)] = list(reads)
            case Branch():
                ways: list[_Sets] = []
                for branch in step.branches:
                    ways.append((yield _sets(branch, among, found)))
                reads = {b for way in ways for b in way[0]}
                reads.update(b for b in (step.selector,) if b in among)
                first, *others = sorted((way[1] for way in ways), key=len)
                writes = {b for b in first if all(b in other for other in others)}
            case Copy():
                reads = {b for b in (step.source,) if b in among}
                writes = {b for b in (step.target,) if b in among}
            case Slice():
                continue
            case _:
                reads = {b for b in step.reads if b in among}
                writes = {b for b in step.writes if b in among}
        read -= writes
        read |= reads
        written |= writes
    return read, written
