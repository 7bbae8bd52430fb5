"""Bulk copies under way: what they move, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.simulator.access import Index, check_states
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
    """What `Races.copy_begins` returned."""
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
            source, to = one.source[one.source >= 0], one.to[one.to >= 0]
            one.reading = races.copy_begins(source, to, one.unit, one.lane)
        self.pending.append(one)

    def take(self, wanted: Callable[[Transfer], bool]) -> bool:
        """Completes some copies, in the order in which they began; whether there were any."""
        chosen = [one for one in self.pending if wanted(one)]
        self.pending = (
            [one for one in self.pending if one not in chosen] if chosen else self.pending
        )
        for one in chosen:
            self._move(one)
        return bool(chosen)

    def _move(self, one: Transfer) -> None:
        cohort = self.cohort
        pc, cohort.pc = cohort.pc, one.pc
        arena, lane = cohort.arena, np.array([one.lane])
        inside = one.source >= 0
        lanes = np.full(int(inside.sum()), one.lane)
        if inside.any():
            check_states(cohort, lanes, one.source[inside], one.unit, write=False)
        width = min(one.unit, 8)
        view = arena.view(np.dtype(f"u{width}"), one.unit // width)
        rows = np.array(view[np.where(inside, one.source, 0) // one.unit])
        rows[~inside] = one.fill
        if cohort.races is not None and one.reading is not None:
            cohort.races.copy_reads(*one.reading)
        if cohort.races is not None and inside.any():
            cohort.races.read(one.source[inside], one.unit, lanes)
        kept = one.to >= 0
        to, rows = one.to[kept], rows[kept]
        self._write(one, to, rows, view)
        arena.states[to[:, None] + np.arange(one.unit)] = 3
        if cohort.races is not None:
            if one.reduction is None:
                cohort.races.write(
                    to,
                    one.unit,
                    np.full(len(to), one.lane),
                    lambda lost: np.zeros(len(lost), np.bool_),
                    is_async=True,
                )
            elif cohort.races.has_atomics:
                cohort.races.atomic(to, one.unit, np.full(len(to), one.lane))
        if one.barrier is not None:
            release(cohort, one.barrier, lane)
            objects_of(cohort).expect(one.barrier, one.lane, -one.bytes)
        cohort.pc = pc
        cohort.progressed()

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
