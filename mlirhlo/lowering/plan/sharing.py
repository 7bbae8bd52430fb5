"""Buffers that can be one: copies that need not be made, results written where an operand was.

As in a register allocator, two buffers are apart when one is written while the other still holds what
will be read (a copy does not set its two ends apart: they hold the same). Of all copies, innermost loops
and largest first, those between buffers that are not apart go; then kernels that allow it
(`mlirhlo.in_place`) write their result over an operand that nobody reads any more. What is only ever a
copy of a parameter or of a constant is read there.

A result that may lie over a parameter (`Buffer.alias`) is one group with it from the start. Nothing of it is
written while the parameter is still to be read, so that the code is right wherever the result lies.

So a loop's state is copied where its old value is needed beside the new one, and nowhere else.

Only buffers that some copy or kernel could make one are looked at, those that hang together by such pairs at
a time (`candidates.py`), and each step once: what a loop reads before it writes it is known before the
loop is walked. So time grows with the steps, however they are nested.
Source: XLA's copy insertion and buffer assignment, whose aims these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mlirhlo.lowering.plan.candidates import Candidates, Numbers, Pairs, Set, shared_operands
from mlirhlo.lowering.plan.exposed import Exposed, exposed_reads
from mlirhlo.lowering.plan.steps import (
    Branch,
    Buffer,
    Callback,
    Copy,
    Kernel,
    Repeat,
    Slice,
    Step,
    While,
)
from mlirhlo.nesting import Walk, walked


def share_buffers(steps: list[Step], pairs: Pairs, results: Sequence[Buffer]) -> list[Step]:
    """The steps without the copies that sharing spares, on one buffer for each group that shares.

    `pairs`: by kernel, the numbers of operands and of the results that may be written over them.
    Buffers of a group take over the place of the one that stands for it: `Buffer.home`.
    """
    candidates = Candidates(steps, results, pairs)
    groups = _Groups(candidates)
    exposed = exposed_reads(steps, candidates.changing)
    walk = _Walk(groups, candidates.changing, pairs, exposed)
    for buffer in results:
        walk.read(buffer)
    walked(walk.backward(steps))
    for joins in (candidates.copies, candidates.in_place):
        for _, a, b in sorted(joins, key=lambda join: -join[0]):
            groups.join(a, b)
    groups.settle()
    return walked(_on_homes(steps))


@dataclass(slots=True, eq=False)
class _Group:
    """Buffers that are one by now."""

    members: Set
    apart: Set = 0
    """Buffers that hold something else while one of the members is written."""
    copied_from: Set = 0
    written: bool = False
    """By anything but a copy from another candidate."""
    fixed: Buffer | None = None
    """The member that is no temporary."""
    joined: _Group | None = None
    """The group that has taken over this one."""

    @property
    def is_constant(self) -> bool:
        """Whether nothing may be written there."""
        return self.fixed is not None and self.fixed.result is None


class _Groups:
    """The groups of candidates; all other buffers stay what they are."""

    def __init__(self, candidates: Candidates) -> None:
        self.numbers = candidates.numbers
        self.groups = {
            b: _Group(1 << number, fixed=None if b.in_arena else b)
            for b, (_, number) in self.numbers.items()
        }
        for result in self.numbers:
            alias = result.alias
            if alias is not None and alias in self.groups:
                group = self.groups[result]
                group.members |= self.groups[alias].members
                self.groups[alias] = group

    def of(self, buffer: Buffer) -> _Group:
        """The one that a candidate is in."""
        group = self.groups[buffer]
        while group.joined is not None:
            if group.joined.joined is not None:
                group.joined = group.joined.joined  # shorter next time
            group = group.joined
        return group

    def join(self, a: Buffer, b: Buffer) -> None:
        """Makes two buffers one, if they can be."""
        one, other = self.of(a), self.of(b)
        if one is other:
            return
        if one.fixed is not None and other.fixed is not None:
            return
        if other.is_constant:
            one, other = other, one
        if one.is_constant:
            if other.written or other.copied_from & ~(one.members | other.members):
                return
        elif one.apart & other.members or other.apart & one.members:
            return
        one.members |= other.members
        one.apart |= other.apart
        one.copied_from |= other.copied_from
        one.written |= other.written
        one.fixed = one.fixed or other.fixed
        other.joined = one

    def settle(self) -> None:
        """Says at every buffer which one it is. A parameter with a result over it stays itself: what
        it held at first is read there, whether it was given away or not."""
        homes: dict[_Group, Buffer] = {}
        for buffer in self.groups:
            group = self.of(buffer)
            home = homes.setdefault(group, group.fixed or buffer)
            buffer.home = home if buffer.parameter is None else buffer


@dataclass
class _Walk:
    """From the end to the start, with what is still read; notes what is apart."""

    groups: _Groups
    numbers: Numbers
    """Of what may be written: of all else nothing has to be known."""
    pairs: Pairs
    exposed: Exposed

    def __post_init__(self) -> None:
        self.live: dict[int, Set] = {}
        """What will be read, of the candidates that hang together by number."""
        self.changes: list[tuple[int, Set]] = []
        """What was there before, to go back to another way through the program."""

    def read(self, buffer: Buffer) -> None:
        """A buffer is read by what was walked."""
        if buffer in self.numbers:
            part, number = self.numbers[buffer]
            self._change(part, self.live.get(part, 0) | 1 << number)

    def _change(self, part: int, live: Set) -> None:
        before = self.live.get(part, 0)
        if live != before:
            self.changes.append((part, before))
            self.live[part] = live

    def _back_to(self, mark: int) -> dict[int, Set]:
        """Undoes all changes since; what had been changed."""
        changed = {part: self.live[part] for part, _ in self.changes[mark:]}
        while len(self.changes) > mark:
            part, before = self.changes.pop()
            self.live[part] = before
        return changed

    def backward(self, steps: Sequence[Step]) -> Walk[None]:
        """To what is read from the start of the steps on, from what is after their end."""
        for step in reversed(steps):
            match step:
                case Copy():
                    self._copy(step)
                case Kernel() | Callback():
                    self._call(step)
                case While():
                    # The condition comes after the body too: what that reads, and keeps of what the next
                    # condition reads.
                    for buffer in self.exposed[id(step)]:
                        self.read(buffer)
                    yield self.backward(step.condition)
                    mark = len(self.changes)
                    yield self.backward(step.body)
                    self._back_to(mark)
                case Repeat():
                    for buffer in self.exposed[id(step)]:
                        self.read(buffer)
                    yield self.backward(step.body)
                case Branch():
                    yield self._branch(step)
                case Slice():
                    pass

    def _branch(self, step: Branch) -> Walk[None]:
        ways: list[dict[int, Set]] = []
        for branch in step.branches:
            mark = len(self.changes)
            yield self.backward(branch)
            ways.append(self._back_to(mark))
        for part in {part: None for way in ways for part in way}:
            live = 0
            for way in ways:
                live |= way.get(part, self.live.get(part, 0))
            self._change(part, live)
        self.read(step.selector)

    def _copy(self, step: Copy) -> None:
        source, target = (self.groups.numbers.get(b) for b in (step.source, step.target))
        if target is not None:
            part, number = target
            group, live = self.groups.of(step.target), self.live.get(part, 0) & ~(1 << number)
            if source is not None and source[0] == part:
                group.apart |= live & ~(1 << source[1])
                group.copied_from |= 1 << source[1]
            else:
                group.apart |= live
                group.written = True
            self._change(part, live)
        self.read(step.source)

    def _call(self, step: Kernel | Callback) -> None:
        numbers = self.numbers
        sets: dict[int, list[Set]] = {}
        for at, buffers in enumerate((step.reads, step.writes)):
            for buffer in buffers:
                if buffer in numbers:
                    part, number = numbers[buffer]
                    sets.setdefault(part, [0, 0])[at] |= 1 << number
        shared: dict[Buffer, Set] = {}
        if isinstance(step, Kernel):
            for operand, target in shared_operands(step, self.pairs[step.name]):
                # Numbers are those of a part: what is in another one never becomes one with the target.
                if operand in numbers and target in numbers:
                    part, number = numbers[operand]
                    if part == numbers[target][0]:
                        shared[target] = shared.get(target, 0) | 1 << number
        for target in step.writes:
            if target in numbers:
                part, number = numbers[target]
                reads, writes = sets[part]
                group = self.groups.of(target)
                others = self.live.get(part, 0) | writes | reads & ~shared.get(target, 0)
                group.apart |= others & ~(1 << number)
                group.written = True
        for part, (reads, writes) in sets.items():
            self._change(part, self.live.get(part, 0) & ~writes | reads)


def _on_homes(steps: Sequence[Step]) -> Walk[list[Step]]:
    found: list[Step] = []
    for step in steps:
        match step:
            case Kernel():
                found.append(Kernel(step.name, _homes(step.reads), _homes(step.writes)))
            case Callback():
                reads, writes = _homes(step.reads), _homes(step.writes)
                found.append(replace(step, reads=reads, writes=writes))
            case Copy():
                source, target = _homes((step.source, step.target))
                if source is not target:
                    found.append(Copy(source, target))
            case While():
                (test,) = _homes([step.test])
                strands = step.strands
                if strands is not None:
                    (strands.counter,) = _homes([strands.counter])
                condition = yield _on_homes(step.condition)
                found.append(While(condition, test, (yield _on_homes(step.body)), strands))
            case Repeat():
                found.append(Repeat(step.rounds, (yield _on_homes(step.body))))
            case Branch():
                (selector,) = _homes([step.selector])
                branches: list[list[Step]] = []
                for branch in step.branches:
                    branches.append((yield _on_homes(branch)))
                found.append(Branch(selector, step.by_pred, branches))
            case Slice():
                pass
    return found


def _homes(buffers: Iterable[Buffer]) -> list[Buffer]:
    return [b.home or b for b in buffers]
