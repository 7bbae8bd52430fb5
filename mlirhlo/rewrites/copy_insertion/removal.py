"""Which copies live ranges need, of those proposed and those of the module.

A copy may go when all values of the two buffers it joins could be in one: of any two, one is over when the
other is written. Nothing joins a buffer that is only read.
"""

from __future__ import annotations

from typing import cast

from mlirhlo.analysis.dataflow import ShapeIndex, Value
from mlirhlo.analysis.live_ranges import LiveRanges, Ordering
from mlirhlo.analysis.proposed_copies import PartReaders, Place, own_copy
from mlirhlo.analysis.single_values import SingleValues
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import CopyOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.shapes import leaves
from mlirhlo.dialects.quick import put_operand
from mlirhlo.rewrites.copy_insertion.buffer import may_be_one
from mlirhlo.rewrites.copy_insertion.buffers import Buffers, Sharing, is_array


class Needed:
    """Buffers and live ranges, as copies go."""

    def __init__(self, module: HloModule, places: Sharing, values: SingleValues) -> None:
        self.module, self.places, self.values = module, places, values
        self.buffers = Buffers(module, places, values)
        self.kept: list[CopyOp] = []
        """Copies that are needed, proposed or not."""
        self._removed: dict[CopyOp, None] = {}
        self._instead: dict[Value, Value] = {}
        """What a removed copy is now."""

    def decide(self) -> tuple[list[CopyOp], set[ShapeIndex]]:
        """Copies of the module that may go, with which those of `kept` are needed, and results to be copied."""
        copies = self._copies()
        if copies:
            for copy in copies:
                self.buffers.of((copy, ()))
                self.buffers.of(self.values.read_by_copy(copy))
            asked = self.buffers.makers
            is_scheduled = self.module.is_scheduled
            ordering = Ordering.of(self.values, is_scheduled=is_scheduled, asked=asked)
            self.ranges = LiveRanges(self.values, ordering)
            self.buffers.put_in_order(self.ranges)
        places = self.values.proposed.places
        left: list[CopyOp] = []
        while len(left) != len(copies):
            left = copies
            copies = [copy for copy in left if not (self._is_free(copy) and self._join(copy))]
            gone = set(left).difference(copies)
            self._removed.update((copy, None) for copy in left if copy in gone)
        self.kept = copies
        results = self._results()
        return [copy for copy in self._removed if copy not in places], results

    def _copies(self) -> list[CopyOp]:
        """Proposed copies as they would stand, then those of the module that keep the layout.

        What was needed once is tried last, so that it is needed again.
        """
        known = set(self.values.run)
        return self.values.proposed.as_they_stand() + [
            op
            for op in cast("list[CopyOp]", self.module.candidates(CopyOp))
            if holder(op) in known and op.shape == op.input_shapes[0] and is_array((op, ()))
        ]

    def _is_free(self, copy: CopyOp) -> bool:
        """Whether the copy's control dependencies, if any, may go with it."""
        if copy in self.values.proposed.places:
            return True
        return not copy.control_predecessors and not any(
            isinstance(user := use.operation, Instruction) and use.index >= len(user.inputs)
            for use in copy.output.uses
        )

    def _now(self, value: Value) -> Value:
        passed: list[Value] = []
        while value in self._instead:
            passed.append(value)
            value = self._instead[value]
        self._instead.update(dict.fromkeys(passed, value))
        return value

    def _join(self, copy: CopyOp) -> bool:
        """Makes source and target of a copy one value, if their buffers can be one."""
        made: Value = (copy, ())
        read = self._now(self.values.read_by_copy(copy))
        source, target = self.buffers.of(read), self.buffers.of(made)
        if source.is_read_only or target.is_read_only:
            if len(source.values) > 1 or not {made, read}.issuperset(target.values):
                return False
        ranges = self.ranges
        if not may_be_one(ranges, source, target, read, made):
            return False
        ranges.extend(read, made)
        self.buffers.merge(source, target).remove(made)
        self._instead[made] = read
        return True

    def _results(self) -> set[ShapeIndex]:
        """Results that are constants, parameters, or the buffer of another result, and are not copied yet."""
        entry = self.module.entry
        end = entry.terminator
        aliased = {alias.output_index for alias in self.places.aliases}
        readers = PartReaders()
        seen: dict[int, ShapeIndex] = {}
        wanted: dict[ShapeIndex, None] = {}

        def has_copy(index: ShapeIndex) -> bool:
            return own_copy(Place(end, 0, index), readers) in self._removed

        for index, _ in leaves(entry.root.shape):
            if not is_array((entry.root, index)):
                continue
            buffer = self.buffers.of(self._now(self.values.read_by(end, 0, index)))
            if buffer.is_read_only:
                wanted[index] = None
                continue
            first = seen.setdefault(id(buffer), index)
            if first != index:
                # The one that has to be over a parameter stays there; one that was copied is copied.
                best = (index in aliased, has_copy(first)), (first in aliased, has_copy(index))
                copied = first if best[0] > best[1] else index
                seen[id(buffer)] = index if copied is first else first
                wanted[copied] = None
        again = {
            index: own_copy(Place(end, 0, index), readers) for index in wanted if has_copy(index)
        }
        for copy in again.values():
            assert copy is not None
            del self._removed[copy]
        return {index for index in wanted if index not in again}


def replace_by_operand(copy: CopyOp) -> None:
    """Lets the readers of a copy read what it copies, and frees those that wait for it."""
    for use in tuple(copy.output.uses):
        user = use.operation
        if isinstance(user, Instruction) and use.index >= len(user.inputs):
            waits = [value for value in user.control_predecessors if value is not copy.output]
            inputs = user.inputs
            user.operands = [*inputs, *waits]
            if waits:
                user.properties[CONTROL_PREDECESSORS] = integer(len(waits))
            else:
                del user.properties[CONTROL_PREDECESSORS]
        else:
            put_operand(user, use.index, copy.operand)
    copy.detach()
    copy.erase()
