"""Bulk copies under way: what they move, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import Diagnostic
from mlirhlo.simulator.access import Index, check_states, thread_name
from mlirhlo.simulator.lanes import Array
from mlirhlo.simulator.meanings.mbarriers import objects_of, release

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

REDUCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@dataclass(slots=True, eq=False)
class Transfer:
    """One copy under way: source and destination of each unit of 16 bytes (or of each element)."""

    pc: int
    lane: int
    to: Index
    """-1 for units that are not written."""
    source: Index
    """-1 for units that are filled with zeros."""
    unit: int
    """Bytes of a unit."""
    bytes: int
    """What an mbarrier is told."""
    barrier: int | None
    """Index of the mbarrier; None for a bulk group."""
    group: int = 0
    reading: tuple[Array, Array] | None = None
    """What `Races.read_begins` returned."""
    rows: Array | None = None
    """What has been read."""
    reduction: tuple[str, Any] | None = None
    fill: int = 0


@dataclass(slots=True)
class Transfers:
    """The copies of a cohort that have not completed."""

    cohort: Cohort
    committed: dict[int, int] = field(default_factory=dict[int, int])
    pending: list[Transfer] = field(default_factory=list[Transfer])

    def start(self, one: Transfer) -> None:
        """Puts a copy under way."""
        races = self.cohort.races
        if races is not None:
            source = one.source[one.source >= 0]
            one.reading = races.read_begins(source, one.unit, np.full(len(source), one.lane))
            races.write_begins(*self._destination(one), atomically=one.reduction is not None)
        self.pending.append(one)

    def take(self, wanted: Callable[[Transfer], bool]) -> bool:
        """Completes some copies, in the order in which they began; whether there were any."""
        chosen = [one for one in self.pending if wanted(one)]
        self.pending = (
            [one for one in self.pending if one not in chosen] if chosen else self.pending
        )
        for one in chosen:
            self.read(one)
            self._move(one)
        return bool(chosen)

    def read(self, one: Transfer) -> None:
        """A copy has read its source, if it had not yet; it may still write."""
        if one.rows is not None:
            return
        cohort = self.cohort
        pc, cohort.pc = cohort.pc, one.pc
        inside = one.source >= 0
        if inside.any():
            lanes = np.full(int(inside.sum()), one.lane)
            check_states(cohort, lanes, one.source[inside], one.unit, write=False)
        view = self._view(one)
        one.rows = np.array(view[np.where(inside, one.source, 0) // one.unit])
        one.rows[~inside] = one.fill
        if cohort.races is not None and one.reading is not None:
            cohort.races.read_ends(one.reading, one.pc)
        cohort.pc = pc

    def _view(self, one: Transfer) -> Array:
        width = min(one.unit, 8)
        return self.cohort.arena.view(np.dtype(f"u{width}"), one.unit // width)

    def _destination(self, one: Transfer) -> tuple[Index, int, Array]:
        to = one.to[one.to >= 0]
        return to, one.unit, np.full(len(to), one.lane)

    def _move(self, one: Transfer) -> None:
        cohort = self.cohort
        pc, cohort.pc = cohort.pc, one.pc
        arena, lane = cohort.arena, np.array([one.lane])
        assert one.rows is not None
        kept = one.to >= 0
        to = one.to[kept]
        self._write(one, to, one.rows[kept], self._view(one))
        arena.states[to[:, None] + np.arange(one.unit)] = 3
        if cohort.races is not None:
            cohort.races.write_ends(
                *self._destination(one), generic=False, atomically=one.reduction is not None
            )
        if one.barrier is not None:
            release(cohort, one.barrier, lane)
            objects_of(cohort).expect(one.barrier, one.lane, -one.bytes)
        cohort.pc = pc
        cohort.progressed()

    def ended(self, block: int) -> None:
        """A block ends: HLO0775 when copies under way may still access its shared memory."""
        cohort, launch = self.cohort, self.cohort.launch
        start = launch.shared_region + block * launch.shared_stride
        for one in self.pending:
            ends = {"read": one.source if one.rows is None else one.to[:0], "write": one.to}
            for verb, index in ends.items():
                if ((index >= start) & (index < start + launch.shared_stride)).any():
                    launch.finding(
                        ("copy ended", one.pc),
                        Diagnostic(
                            "HLO0775",
                            f"block {cohort.blocks[block]} ends while a copy of "
                            f"{thread_name(cohort, one.lane)} may still {verb} its shared memory",
                            launch.place(one.pc),
                            help="wait for the copy before the block ends",
                        ),
                    )

    def _write(self, one: Transfer, to: Index, rows: Array, view: Array) -> None:
        if one.reduction is None:
            view[to // one.unit] = rows
            return
        name, dtype = one.reduction
        memory = self.cohort.arena.view(dtype)
        size = int(dtype.itemsize)
        places = (to[:, None] // size + np.arange(one.unit // size)).reshape(-1)
        values = np.ascontiguousarray(rows).view(dtype).reshape(-1)
        memory[places] = REDUCTIONS[name](memory[places], values)

    def finish(self) -> None:
        """Completes what is left when the blocks end."""
        self.take(lambda _: True)


def transfers_of(cohort: Cohort) -> Transfers:
    """The copies of a cohort."""
    if "transfers" not in cohort.extra:
        cohort.extra["transfers"] = Transfers(cohort)
    return cast("Transfers", cohort.extra["transfers"])


def complete_for(cohort: Cohort, barrier: int) -> bool:
    """Completes the copies that an mbarrier waits for; whether there were any."""
    if "transfers" not in cohort.extra:
        return False
    return transfers_of(cohort).take(lambda one: one.barrier == barrier)
