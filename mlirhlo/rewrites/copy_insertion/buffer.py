"""Values that share memory, in the order of the time they are written.

Of values that can be in one buffer each is over when the next one is written, unless only one of them is: in branches
of a conditional. So a further value has to be asked about two others only, the last one written before it and the first
one after, and about the first one in each branch that begins after it. A buffer in which values are alive at the same
time already, as a module without its copies may have, has no such order: there all are asked about.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from mlirhlo.analysis.call_tree import CallTree, Node
from mlirhlo.analysis.dataflow import Value
from mlirhlo.analysis.live_ranges import LiveRange, LiveRanges
from mlirhlo.analysis.timeline import Timeline


class Buffer:
    """Values that share memory."""

    __slots__ = ("_line", "_times", "_tree", "is_chain", "is_read_only", "values")

    _line: Timeline
    _tree: CallTree

    def __init__(self, value: Value, is_read_only: bool) -> None:
        """Of one value."""
        self.values, self.is_read_only = [value], is_read_only
        self.is_chain = False
        """Whether each value is over when the next one is written."""
        self._times: list[int] = []
        """When each value is written, once they are in order."""

    def put_in_order(self, line: Timeline, ranges: LiveRanges) -> None:
        """Sorts the values by their times."""
        self._line, self._tree = line, ranges.ordering.tree
        self.values.sort(key=lambda value: line.time[value[0]])
        self._times = [line.time[op] for op, _ in self.values]
        self.is_chain = all(
            before is None or ranges.is_over_before(before, value)
            for value in self.values
            for before in (self.before(value, (value,)),)
        )

    def add_all(self, other: Buffer) -> None:
        """Takes the values of another buffer in."""
        self.is_read_only |= other.is_read_only
        if not self._times:
            self.values += other.values
            return
        self.is_chain &= other.is_chain
        for value in other.values:
            time = self._line.time[value[0]]
            place = bisect_left(self._times, time)
            self.values.insert(place, value)
            self._times.insert(place, time)

    def remove(self, value: Value) -> None:
        """Takes a value out."""
        place = self.values.index(value, bisect_left(self._times, self._line.time[value[0]]))
        del self.values[place]
        del self._times[place]

    def before(self, value: Value, without: tuple[Value, ...]) -> Value | None:
        """The value written last before or with another one where both are, some left aside."""
        line, times, values = self._line, self._times, self.values
        place = bisect_right(times, line.time[value[0]]) - 1
        while place >= 0:
            found = values[place]
            if found in without:
                place -= 1
            elif (choice := self._tree.alternative(found[0], value[0])) is not None:
                place = bisect_left(times, line.begin[choice]) - 1
            else:
                return found
        return None

    def after(self, value: Value, without: tuple[Value, ...]) -> Iterator[Value]:
        """The values written first after another one where both are: in each branch that begins later."""
        line, times, values = self._line, self._times, self.values
        place = bisect_right(times, line.time[value[0]])
        while place < len(values):
            found = values[place]
            if found in without:
                place += 1
            elif (choice := self._tree.alternative(found[0], value[0])) is not None:
                place = bisect_left(times, line.time[choice])
            else:
                yield found
                place = self._in_later_branch(found, value)

    def _in_later_branch(self, found: Value, value: Value) -> int:
        """Place of the next value that is in another branch than `found`, of a conditional that runs after `value`."""
        line, times = self._line, self._times
        branch: Node | None = self._tree.node(found[0]).branch
        while branch is not None and not self._tree.contains(branch, value[0]):
            place = bisect_left(times, line.end[branch.computation])
            assert branch.caller is not None
            assert branch.parent is not None
            if place < len(times) and times[place] < line.time[branch.caller]:
                return place
            branch = branch.parent.branch
        return len(times)


def may_be_one(
    ranges: LiveRanges, source: Buffer, target: Buffer, read: Value, made: Value
) -> bool:
    """Whether the values of both buffers could be in one, were `made`, a copy of `read`, that value itself."""
    extended = ranges.extended(read, made)
    without = (read, made)
    if not (source.is_chain and target.is_chain):
        return _all_apart(ranges, source, target, without, extended)

    def fits(value: Value, buffer: Buffer, alive: LiveRange | None = None) -> bool:
        before = buffer.before(value, without)
        return (before is None or ranges.is_over_before(before, value)) and all(
            ranges.is_over_before(value, after, alive) for after in buffer.after(value, without)
        )

    if not (fits(read, source, extended) and fits(read, target, extended)):
        return False
    if source is target:
        return True
    few, many = sorted((source, target), key=lambda buffer: len(buffer.values))
    return all(fits(value, many) for value in few.values if value not in without)


def _all_apart(
    ranges: LiveRanges,
    source: Buffer,
    target: Buffer,
    without: tuple[Value, Value],
    extended: LiveRange,
) -> bool:
    read, _ = without

    def rest(buffer: Buffer) -> Iterable[Value]:
        return (value for value in buffer.values if value not in without)

    everyone = [*rest(target), *(() if source is target else rest(source))]
    if any(ranges.interfere(read, value, range_of_one=extended) for value in everyone):
        return False
    return source is target or not any(
        ranges.interfere(one, other) for one in rest(source) for other in rest(target)
    )
