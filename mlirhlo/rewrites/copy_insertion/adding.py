"""Adds the copies that are needed of those proposed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

from xdsl.ir import Operation, SSAValue

from mlirhlo.analysis.dataflow import ShapeIndex
from mlirhlo.analysis.proposed_copies import READERS, behind_parameters
from mlirhlo.analysis.single_values import SingleValues
from mlirhlo.dialects.hlo.build import make, wait_for
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import CopyOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import put_operand
from mlirhlo.rewrites.simplify.tuple_parts import insert_before, replace_parts, set_operand

Copies = dict[ShapeIndex, Instruction]
"""Copies of parts of a value."""


def add_copies(
    module: HloModule,
    values: SingleValues,
    kept: Sequence[CopyOp],
    results: Collection[ShapeIndex],
) -> int:
    """Adds the copies among `kept` that were proposed, what they wait for, and copies of results; how many."""
    proposed = values.proposed
    groups: dict[tuple[Operation, int], dict[ShapeIndex, CopyOp]] = {}
    for copy in kept:
        if (place := proposed.places.get(copy)) is not None:
            groups.setdefault((place.reader, place.number), {})[place.part] = copy
    made: dict[CopyOp, Instruction] = {}
    behind: dict[Operation, Operation] = {}
    for (reader, number), wanted in groups.items():
        if number == READERS:  # in front of all that is no parameter
            point = behind_parameters(reader, behind)
            added = _copy_for_readers(cast(Instruction, reader), wanted, point)
            made.update((copy, added[index]) for index, copy in wanted.items())
    for (reader, number), wanted in groups.items():
        if number != READERS:
            value, added = _copied(reader.operands[number], wanted, reader)
            set_operand(reader, number, value)
            made.update((copy, added[index]) for index, copy in wanted.items())
    waiting = 0
    known = set(kept)
    for copy, other in proposed.waits.items():
        if copy in known and other in known:
            waiting += wait_for(made.get(copy, copy), [made.get(other, other).output])
    if results:
        end = module.entry.terminator
        value, _ = _copied(end.root, results, end)
        set_operand(end, 0, value)
    return max(len(made) + len(results), waiting)


def _copied(
    value: SSAValue, wanted: Collection[ShapeIndex], place: Operation
) -> tuple[SSAValue, Copies]:
    """`value` with copies of the wanted parts, and those."""
    made: Copies = {}

    def part(index: ShapeIndex, old: SSAValue) -> SSAValue:
        made[index] = copy = make("copy", [old], shape_of(old.type))
        insert_before(place, copy)
        return copy.output

    return replace_parts(value, wanted, place, part), made


def _copy_for_readers(op: Instruction, wanted: Collection[ShapeIndex], place: Operation) -> Copies:
    """Lets all readers of a parameter read copies of its wanted parts."""
    uses = tuple(op.output.uses)
    value, copies = _copied(op.output, wanted, place)
    for use in uses:
        user = use.operation
        if not isinstance(user, Instruction) or use.index < len(user.inputs):
            put_operand(user, use.index, value)
    return copies
