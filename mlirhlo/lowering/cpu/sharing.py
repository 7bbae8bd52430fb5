"""Buffers that can be one: copies that need not be made, results written where an operand was.

As in a register allocator, two buffers are apart when one is written while the other still holds what
will be read (a copy does not set its two ends apart: they hold the same). Of all copies, innermost loops
and largest first, those between buffers that are not apart go; then kernels that allow it
(`mlirhlo.in_place`) write their result over an operand that nobody reads any more. What is only ever a
copy of a parameter or of a constant is read there.

A result that may lie over a parameter (`Buffer.alias`) is one group with it from the start. Nothing of it is
written while the parameter is still to be read, so that the code is right wherever the result lies.

So a loop's state is copied where its old value is needed beside the new one, and nowhere else.
Source: XLA's copy insertion and buffer assignment, whose aims these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase
from xdsl.dialects.func import FuncOp

from mlirhlo.lowering.builder import IN_PLACE
from mlirhlo.lowering.cpu.steps import (
    Branch,
    Buffer,
    Callback,
    Copy,
    Kernel,
    Slice,
    Step,
    While,
    touched,
)

Set: TypeAlias = int
"""Buffers by number, a bit for each."""

Pairs: TypeAlias = "Mapping[str, Sequence[tuple[int, int]]]"
"""By kernel, numbers of arguments that may be one buffer."""

_LOOP = 6
"""A copy inside a loop counts as one outside of more bytes, by this power of two."""


def share_buffers(
    steps: list[Step], kernels: Mapping[str, FuncOp], results: Sequence[Buffer]
) -> list[Step]:
    """The steps without the copies that sharing spares, on one buffer for each group that shares.

    Buffers of a group take over the place of the one that stands for it: `Buffer.home`.
    """
    pairs = {name: _pairs_of(function) for name, function in kernels.items()}
    groups = _Groups(chain(touched(steps), results))
    walk = _Walk(groups, pairs)
    walk.backward(steps, groups.set_of(results), 0)
    for joins in (walk.copies, walk.in_place):
        for _, a, b in sorted(joins, key=lambda join: -join[0]):
            groups.join(a, b)
    groups.settle()
    return _on_homes(steps)


def _pairs_of(function: FuncOp) -> Sequence[tuple[int, int]]:
    given = cast("ArrayAttr[DenseArrayBase[Any]] | None", function.attributes.get(IN_PLACE))
    found: list[tuple[int, int]] = []
    for pair in given or ():
        operand, result = cast("tuple[int, int]", pair.get_values())
        found.append((operand, result))
    return found


@dataclass(slots=True)
class _Group:
    """Buffers that are one by now."""

    members: Set
    apart: Set = 0
    """Buffers that hold something else while one of the members is written."""
    copied_from: Set = 0
    written: bool = False
    """By anything but a copy."""
    fixed: Buffer | None = None
    """The member that is no temporary."""

    @property
    def is_constant(self) -> bool:
        """Whether nothing may be written there."""
        return self.fixed is not None and self.fixed.result is None


class _Groups:
    def __init__(self, buffers: Iterable[Buffer]) -> None:
        self.buffers = list(dict.fromkeys(buffers))
        self.number = {buffer: at for at, buffer in enumerate(self.buffers)}
        self.groups = [
            _Group(1 << at, fixed=None if b.in_arena else b) for at, b in enumerate(self.buffers)
        ]
        for result in self.buffers:
            alias = result.alias
            if alias is not None and alias in self.number:
                group = self.of(result)
                group.members |= 1 << self.number[alias]
                self.groups[self.number[alias]] = group

    def set_of(self, buffers: Iterable[Buffer]) -> Set:
        found = 0
        for buffer in buffers:
            found |= 1 << self.number[buffer]
        return found

    def of(self, buffer: Buffer) -> _Group:
        return self.groups[self.number[buffer]]

    def join(self, a: Buffer, b: Buffer) -> None:
        """Makes two buffers one, if they can be."""
        one, other = self.of(a), self.of(b)
        if one is other or a.size != b.size:
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
        for at in _bits(other.members):
            self.groups[at] = one

    def settle(self) -> None:
        """Says at every buffer which one it is. A parameter with a result over it stays itself: what
        it held at first is read there, whether it was given away or not."""
        homes: dict[int, Buffer] = {}
        for buffer, group in zip(self.buffers, self.groups, strict=True):
            home = homes.get(id(group))
            if home is None:
                home = homes[id(group)] = group.fixed or buffer
            buffer.home = home if buffer.parameter is None else buffer


def _bits(numbers: Set) -> Iterator[int]:
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest


@dataclass
class _Walk:
    """From the end to the start, with what is still read; notes what is apart and what could join."""

    groups: _Groups
    pairs: Pairs
    copies: list[tuple[int, Buffer, Buffer]] = field(
        default_factory=list["tuple[int, Buffer, Buffer]"]
    )
    """With what a join is worth."""
    in_place: list[tuple[int, Buffer, Buffer]] = field(
        default_factory=list["tuple[int, Buffer, Buffer]"]
    )

    def backward(self, steps: Sequence[Step], live: Set, depth: int) -> Set:
        """What is read from the start of the steps on, given what is after their end."""
        number = self.groups.number
        for step in reversed(steps):
            match step:
                case Copy():
                    source, target = number[step.source], number[step.target]
                    group = self.groups.groups[target]
                    group.apart |= live & ~(1 << source | 1 << target)
                    group.copied_from |= 1 << source
                    live = live & ~(1 << target) | 1 << source
                    self.copies.append((_worth(step.source, depth), step.source, step.target))
                case Kernel() | Callback():
                    live = self._call(step, live, depth)
                case While():
                    live = self._loop(step, live, depth + 1)
                case Branch():
                    before = 1 << number[step.selector]
                    for branch in step.branches:
                        before |= self.backward(branch, live, depth)
                    live = before
                case Slice():
                    pass
        return live

    def _call(self, step: Kernel | Callback, live: Set, depth: int) -> Set:
        groups, number = self.groups, self.groups.number
        pairs = self.pairs[step.name] if isinstance(step, Kernel) else ()
        arguments = [*step.reads, *step.writes]
        reads, writes = groups.set_of(step.reads), groups.set_of(step.writes)
        shared: dict[Buffer, Set] = {}
        for operand, result in pairs:
            # An operand that is read as another one too is not free.
            if step.reads.count(arguments[operand]) == sum(
                arguments[o] is arguments[operand] and r == result for o, r in pairs
            ):
                target = arguments[result]
                shared[target] = shared.get(target, 0) | 1 << number[arguments[operand]]
                self.in_place.append((_worth(target, depth), arguments[operand], target))
        for target in step.writes:
            group = groups.of(target)
            others = live | writes | reads & ~shared.get(target, 0)
            group.apart |= others & ~(1 << number[target])
            group.written = True
        return live & ~writes | reads

    def _loop(self, step: While, after: Set, depth: int) -> Set:
        test = 1 << self.groups.number[step.test]
        before_body: Set = 0
        while True:
            head = self.backward(step.condition, after | before_body | test, depth)
            again = self.backward(step.body, head, depth)
            if again == before_body:
                return head
            before_body = again


def _worth(buffer: Buffer, depth: int) -> int:
    return buffer.size << _LOOP * depth


def _on_homes(steps: Sequence[Step]) -> list[Step]:
    found: list[Step] = []
    for step in steps:
        match step:
            case Kernel():
                found.append(Kernel(step.name, _homes(step.reads), _homes(step.writes)))
            case Callback():
                found.append(Callback(step.site, _homes(step.reads), _homes(step.writes)))
            case Copy():
                source, target = _homes((step.source, step.target))
                if source is not target:
                    found.append(Copy(source, target))
            case While():
                (test,) = _homes([step.test])
                strands = step.strands
                if strands is not None:
                    (strands.counter,) = _homes([strands.counter])
                found.append(While(_on_homes(step.condition), test, _on_homes(step.body), strands))
            case Branch():
                (selector,) = _homes([step.selector])
                branches = [_on_homes(b) for b in step.branches]
                found.append(Branch(selector, step.by_pred, branches))
            case Slice():
                pass
    return found


def _homes(buffers: Iterable[Buffer]) -> list[Buffer]:
    return [b.home or b for b in buffers]
