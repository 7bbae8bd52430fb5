"""Copies of single threads that complete later: `cp.async`.

A copy writes when its thread waits for it, as late as the program allows: who reads without waiting finds
the old bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from mlirhlo.dialects.ptx import Immediate, Register
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.access import Index, check_states, located, mark_written
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.meanings.atomics import in_turns, update_of
from mlirhlo.simulator.meanings.registry import meaning
from mlirhlo.simulator.types import DTYPES, bits_of

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort


@dataclass(slots=True)
class Copy:
    """One `cp.async` of some threads."""

    pc: int
    lanes: Array
    group: Array
    """Of each thread: how many groups it had committed when the copy began."""
    to: Index
    source: Index
    size: int
    bytes: Array
    """Bytes to read; the rest is filled with zeros."""


@dataclass(slots=True)
class Copies:
    """The copies of a cohort that have not completed."""

    cohort: Cohort
    committed: Array
    pending: list[Copy] = field(default_factory=list[Copy])

    def complete(self, lanes: Lanes, left: int | None) -> None:
        """Completes copies of threads, all but those of the last `left` groups (None: also uncommitted ones)."""
        mine = np.zeros(self.cohort.count, np.bool_)
        mine[lanes] = True
        kept = list[Copy]()
        for copy in self.pending:
            done = mine[copy.lanes]
            if left is not None:
                done &= copy.group < self.committed[copy.lanes] - left
            if done.any():
                self._write(copy, done)
            if not done.all():
                rest = ~done
                kept.append(
                    Copy(
                        copy.pc,
                        copy.lanes[rest],
                        copy.group[rest],
                        copy.to[rest],
                        copy.source[rest],
                        copy.size,
                        copy.bytes[rest],
                    )
                )
        self.pending = kept

    def _write(self, copy: Copy, done: Array) -> None:
        cohort = self.cohort
        lanes, to, source, count = (
            one[done] for one in (copy.lanes, copy.to, copy.source, copy.bytes)
        )
        pc, cohort.pc = cohort.pc, copy.pc
        whole = count == copy.size
        if whole.any():
            check_states(cohort, lanes[whole], source[whole], copy.size, write=False)
        unit = np.dtype(f"u{min(copy.size, 8)}")
        group = copy.size // unit.itemsize
        view = cohort.arena.view(unit, group)
        rows = (
            view[source // copy.size]
            if whole.any()
            else np.zeros((len(to), group), unit)[:, 0:group]
        )
        rows = np.array(rows).reshape(len(to), group)
        if not whole.all():
            octets = rows.view(np.uint8)
            octets[np.arange(copy.size)[None, :] >= count[:, None]] = 0
        view[to // copy.size] = rows if group > 1 else rows[:, 0]
        mark_written(cohort, to, copy.size)
        if cohort.races is not None:
            cohort.races.write_ends(to, copy.size, lanes, generic=True)
        cohort.pc = pc
        cohort.progressed()

    def finish(self) -> None:
        """Completes what threads left when they ended."""
        self.complete(sets.span(0, self.cohort.count), None)


def copies_of(cohort: Cohort) -> Copies:
    """The copies of a cohort."""
    if "copies" not in cohort.extra:
        cohort.extra["copies"] = Copies(cohort, np.zeros(cohort.count, np.int64))
    return cast("Copies", cohort.extra["copies"])


@meaning("cp")
def copy(assembler: Assembler) -> Run:
    """`cp.async`, its groups and waits; `cp.async.bulk` is in `bulk`."""
    if assembler.has("bulk"):
        from mlirhlo.simulator.meanings import bulk

        return bulk.copy(assembler)
    if assembler.has("commit_group"):

        def commit(cohort: Cohort, lanes: Lanes) -> None:
            copies_of(cohort).committed[lanes] += 1

        return commit
    if assembler.has("wait_group", "wait_all"):
        return _wait(assembler)
    if assembler.has("mbarrier"):
        from mlirhlo.simulator.meanings import mbarriers

        return mbarriers.arrive_after_copies(assembler)
    return _copy(assembler)


def _wait(assembler: Assembler) -> Run:
    left: int | None = None
    if assembler.has("wait_group"):
        operand = assembler.operands[0]
        left = operand.value if isinstance(operand, Immediate) else 0

    def wait(cohort: Cohort, lanes: Lanes) -> None:
        copies_of(cohort).complete(lanes, left)

    return wait


def _copy(assembler: Assembler) -> Run:
    operands = assembler.operands
    size_operand = operands[2]
    if not isinstance(size_operand, Immediate) or size_operand.value not in (4, 8, 16):
        raise assembler.wrong(f"{size_operand} bytes; 4, 8 or 16 expected")
    size = size_operand.value
    to = located(assembler, operands[0], "shared", size)
    source = located(assembler, operands[1], "global", size)
    amount, ignores = None, None
    if len(operands) > 3:
        operand = operands[3]
        is_predicate = (
            isinstance(operand, Register) and assembler.names.registers.get(operand.name) == "pred"
        )
        if is_predicate:
            ignores = assembler.value(operand, "pred")
        elif not assembler.has("L2::cache_hint") or len(operands) > 4:
            amount = assembler.source(3, "u32")

    def run(cohort: Cohort, lanes: Lanes) -> None:
        numbers = sets.indices(lanes)
        index = to(cohort, lanes)
        check_states(cohort, lanes, index, size, write=True)
        count = np.full(len(numbers), size)
        if amount is not None:
            count = np.minimum(cohort.slots[amount][lanes].astype(np.int64), size)
        elif ignores is not None:
            count = np.where(cohort.slots[ignores][lanes], 0, size)
        reading = numbers[count > 0]
        places = np.zeros(len(numbers), np.int64)
        if len(reading):
            places[count > 0] = source(cohort, reading)
            if cohort.figures is not None:
                cohort.figures.count_global(places[count > 0], size, reading, write=False)
            if cohort.races is not None:
                cohort.races.read(places[count > 0], size, reading)
        if cohort.races is not None:
            cohort.races.write_begins(index, size, numbers)
        if cohort.figures is not None:
            cohort.figures.count_shared(index, size, lanes, write=True)
        copies = copies_of(cohort)
        copies.pending.append(
            Copy(cohort.pc, numbers, copies.committed[numbers].copy(), index, places, size, count)
        )

    return run


def store_async(assembler: Assembler) -> Run:
    """`st.async`: stores to another block's shared memory and tells an mbarrier there."""
    from mlirhlo.simulator.meanings.mbarriers import objects_of, release

    type_name = assembler.type
    width = bits_of(type_name) // 8
    slots = [assembler.value(one, type_name) for one in assembler.parts(1)]
    size = width * len(slots)
    to = located(assembler, assembler.operands[0], "shared", size)
    barrier = located(assembler, assembler.operands[2], "shared", 8)
    reduces = assembler.op.opcode == "red"
    update = update_of(assembler, type_name) if reduces else None

    def run(cohort: Cohort, lanes: Lanes) -> None:
        index, objects = to(cohort, lanes), barrier(cohort, lanes)
        check_states(cohort, lanes, index, size, write=True)
        memory = cohort.arena.view(DTYPES[type_name])
        for part, slot in enumerate(slots):
            places, values = (index + part * width) // width, cohort.slots[slot][lanes]
            if update is None:
                memory[places] = values
                continue
            for turn in in_turns(places):
                memory[places[turn]] = update(memory[places[turn]], values[turn])
        mark_written(cohort, index, size)
        if cohort.races is not None and update is None:
            cohort.races.write(index, size, lanes, lambda lost: np.ones(len(lost), np.bool_))
        for lane, place in zip(sets.indices(lanes).tolist(), objects.tolist(), strict=True):
            release(cohort, place, np.array([lane]))
            objects_of(cohort).expect(place, lane, -size)
        cohort.progressed()

    return run
