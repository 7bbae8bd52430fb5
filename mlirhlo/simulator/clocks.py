"""Which accesses happen before which: vector clocks of warps.

Each warp counts its releases (barriers, fences with atomics, arrivals). `knows[b, w, v]` is the last count of
warp v that warp w of the same block has synchronised with; what blocks know of other blocks comes through
locations in memory that one releases and the other acquires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.lanes import WARP, Array, Lanes

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

NO_FENCE, BLOCK, DEVICE = range(3)
"""How far a fence, or an access with release or acquire semantics, reaches."""

Known: TypeAlias = dict[int, NDArray[np.int32]]
"""Counts of the warps of blocks, by number of the block."""


def merge(known: Known, more: Known) -> None:
    """Adds to what is known."""
    for key, counts in more.items():
        known[key] = np.maximum(known[key], counts) if key in known else counts


class Clocks:
    """The clocks of one cohort."""

    def __init__(self, cohort: Cohort, locations: dict[int, Known]) -> None:
        self.cohort = cohort
        self.warps = cohort.block_lanes // WARP
        blocks = len(cohort.blocks)
        self.own = np.ones((blocks, self.warps), np.int32)
        self.knows = np.zeros((blocks, self.warps, self.warps), np.int32)
        self.fenced = np.zeros((blocks, self.warps), np.int8)
        self.remote: list[Known] = [{} for _ in range(blocks)]
        self.pending: list[list[tuple[int, Known]]] = [[] for _ in range(blocks)]
        self.locations = locations

    def barrier(self) -> None:
        """All warps of all blocks met, each those of its block."""
        self._release(slice(None), slice(None))
        self.knows[:] = self.knows.max(axis=1)[:, None, :]

    def _release(self, block: int | slice, warps: Array | slice) -> None:
        if isinstance(block, slice):
            diagonal = np.arange(self.warps)
            self.knows[block, diagonal, diagonal] = self.own[block]
        else:
            chosen = np.arange(self.warps)[warps]
            self.knows[block, chosen, chosen] = self.own[block, chosen]
        self.own[block, warps] += 1

    def arrive(self, lanes: Lanes, reach: int) -> Known:
        """Threads arrive at a barrier of a block or (`DEVICE`) cluster: what those that wait for it will know."""
        known: Known = {}
        for block, warps in self._blocks(lanes):
            self._release(block, warps)
            merge(known, {int(self.cohort.blocks[block]): self.knows[block, warps].max(axis=0)})
            if reach >= DEVICE:
                merge(known, self.remote[block])
        return known

    def wait(self, lanes: Lanes, known: Known) -> None:
        """Threads have waited for a barrier at which others released `known`."""
        for block, warps in self._blocks(lanes):
            number = int(self.cohort.blocks[block])
            if number in known:
                self.knows[block, warps] = np.maximum(self.knows[block, warps], known[number])
            merge(self.remote[block], {key: c for key, c in known.items() if key != number})

    def _blocks(self, lanes: Lanes) -> list[tuple[int, Array]]:
        """Blocks, each with warps of it."""
        blocks, warps = np.divmod(np.unique(sets.indices(lanes) // WARP), self.warps)
        return [(block, warps[blocks == block]) for block in np.unique(blocks).tolist()]

    def warp_barrier(self, lanes: Lanes) -> None:
        """Threads met others of their warp."""
        for block, warp in self._warps(lanes):
            self._release(block, np.array([warp]))

    def _warps(self, lanes: Lanes) -> list[tuple[int, int]]:
        numbers = np.unique(sets.indices(lanes) // WARP)
        return [divmod(int(number), self.warps) for number in numbers]

    def fence(self, lanes: Lanes, reach: int) -> None:
        """Threads executed a fence: what they read before is acquired, what they write next may release."""
        for block, warp in self._warps(lanes):
            self.fenced[block, warp] = max(self.fenced[block, warp], reach)
            for scope, known in self.pending[block]:
                self._learn(block, warp, known, min(scope, reach))
            self.pending[block].clear()

    def strong(
        self,
        index: NDArray[np.int64],
        lanes: Lanes,
        *,
        release: int,
        acquire: int,
        reads: bool,
        writes: bool,
    ) -> None:
        """Atomic or strong accesses at `index`; `release` and `acquire` say what the instruction itself does."""
        warps = sets.indices(lanes) // WARP
        pairs = np.unique(np.stack((warps, index), axis=1), axis=0)
        for number, place in pairs.tolist():
            block, warp = divmod(int(number), self.warps)
            known = self.locations.get(place)
            if reads and known is not None:
                if acquire:
                    self._learn(block, warp, known, acquire)
                else:
                    self.pending[block].append((DEVICE, known))
            reach = max(release, int(self.fenced[block, warp]))
            if writes and reach:
                self.publish(place, block, warp, reach)

    def publish(self, place: int, block: int, warp: int, reach: int = DEVICE) -> None:
        """A warp releases what it knows at a location."""
        self._release(block, np.array([warp]))
        known = self.locations.setdefault(place, {})
        number = int(self.cohort.blocks[block])
        merge(known, {number if reach >= DEVICE else -1 - number: self.knows[block, warp].copy()})
        if reach >= DEVICE:
            merge(known, self.remote[block])

    def learn(self, place: int, block: int, warp: int) -> None:
        """A warp acquires what was released at a location."""
        if place in self.locations:
            self._learn(block, warp, self.locations[place], DEVICE)

    def _learn(self, block: int, warp: int, known: Known, reach: int) -> None:
        number = int(self.cohort.blocks[block])
        for key in (number, -1 - number):
            if key in known:
                np.maximum(self.knows[block, warp], known[key], out=self.knows[block, warp])
        if reach >= DEVICE:
            others = {key: c for key, c in known.items() if key >= 0 and key != number}
            merge(self.remote[block], others)

    def ordered(
        self,
        block: Array,
        warp: Array,
        other_block: Array,
        other_number: Array,
        other_warp: Array,
        clock: Array,
    ) -> NDArray[np.bool_]:
        """Whether accesses of other warps, at their `clock`, happened before those of `warp` now."""
        same = other_block == block
        result = np.zeros(len(block), np.bool_)
        result[same] = self.knows[block[same], warp[same], other_warp[same]] >= clock[same]
        if any(self.remote):
            for position in np.flatnonzero(~same).tolist():
                counts = self.remote[int(block[position])].get(int(other_number[position]))
                if counts is not None:
                    result[position] = counts[other_warp[position]] >= clock[position]
        return result
