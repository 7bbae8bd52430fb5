"""Copies that no live range needs are taken away.

A copy may go when all values of the two buffers it joins could be in one: of any two, one is over when the
other is written. Nothing joins a buffer that is only read.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import cast

from mlirhlo.analysis.dataflow import Value
from mlirhlo.analysis.live_ranges import LiveRanges, Ordering
from mlirhlo.analysis.single_values import SingleValues
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import CopyOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.rewrites.copy_insertion.buffers import Buffers, is_array


def remove_copies(module: HloModule, values: SingleValues, added: AbstractSet[Instruction]) -> int:
    """Takes away what need not be copied, until nothing more goes; how many copies went.

    Control dependencies of copies in `added` go with them; others keep their copy.
    """
    run = frozenset(values.run)
    copies = [
        op
        for op in module.candidates(CopyOp)
        if isinstance(op, CopyOp)
        and holder(op) in run
        and op.shape == op.input_shapes[0]
        and is_array((op, ()))
    ]
    if not copies:
        return 0
    joined = _Joined(module, values, copies)
    removed = 0
    again = True
    while again:
        again = False
        for copy in tuple(copies):
            if _is_free(copy, added) and joined.join(copy):
                _replace_by_operand(copy)
                copies.remove(copy)
                removed += 1
                again = True
    return removed


class _Joined:
    """Buffers and live ranges, as copies go."""

    def __init__(self, module: HloModule, values: SingleValues, copies: list[CopyOp]) -> None:
        self.buffers = Buffers(module, values)
        self.instead: dict[Value, Value] = {}
        """What a removed copy is now."""
        for copy in copies:
            self.buffers.of((copy, ()))
            self.buffers.of(values.at(cast(Instruction, copy.operand.owner), ()))
        asked = self.buffers.makers
        ordering = Ordering.of(values, is_scheduled=module.is_scheduled, asked=asked)
        self.ranges = LiveRanges(values, ordering)

    def join(self, copy: CopyOp) -> bool:
        """Makes source and target of a copy one value, if their buffers can be one."""
        made: Value = (copy, ())
        read = self.ranges.values.at(cast(Instruction, copy.operand.owner), ())
        while read in self.instead:
            read = self.instead[read]
        source, target = self.buffers.of(read), self.buffers.of(made)
        others = [value for value in target.values if value not in (made, read)]
        is_alone = not others and len(source.values) == 1
        if (source.is_read_only or target.is_read_only) and not is_alone:
            return False
        ranges = self.ranges
        extended = ranges.extended(read, made)
        everyone = others if source is target else [*others, *source.values]
        if any(
            ranges.interfere(read, value, range_of_one=extended)
            for value in everyone
            if value != read
        ):
            return False
        if source is not target and any(
            ranges.interfere(value, other)
            for value in source.values
            if value != read
            for other in others
        ):
            return False
        ranges.extend(read, made)
        merged = self.buffers.merge(source, target)
        merged.values.remove(made)
        self.instead[made] = read
        return True


def _is_free(copy: CopyOp, added: AbstractSet[Instruction]) -> bool:
    """Whether the copy's control dependencies, if any, may go with it."""
    if copy in added:
        return True
    return not copy.control_predecessors and not any(
        isinstance(user := use.operation, Instruction) and use.index >= len(user.inputs)
        for use in copy.output.uses
    )


def _replace_by_operand(copy: CopyOp) -> None:
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
            user.operands[use.index] = copy.operand
    copy.detach()
    copy.erase()
