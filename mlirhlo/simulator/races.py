"""Races: two accesses of different threads to one location, one a write, with nothing that orders them.

Every granule of memory remembers its last write, its last atomic access, and two reads, each as one stamp:
thread, clock of its warp (`clocks`), instruction. What copies write has the clock `UNDER_WAY`, which no thread
knows, until the copy has been waited for. What copies and products may still read is counted (`PendingReads`): until
they have been waited for, no barrier orders a write after them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from mlirhlo.diagnostics import Diagnostic
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.clocks import Clocks, Known
from mlirhlo.simulator.lanes import WARP, Array, Lanes
from mlirhlo.simulator.pending_reads import PendingReads

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort
    from mlirhlo.simulator.launch import Launch

THREAD_SHIFT, CLOCK_SHIFT = np.uint64(36), np.uint64(16)
CLOCK_MASK, PC_MASK = np.uint64(0xFFFFF), np.uint64(0xFFFF)
UNDER_WAY = CLOCK_MASK << CLOCK_SHIFT
"""The clock of accesses that may still happen, in a stamp."""

_MEET = "put a barrier between the two, or make both atomic"
_WAIT = "wait for the copy or product before"


class Races:
    """The stamps of all memory during one launch."""

    def __init__(self, launch: Launch, used_bytes: int) -> None:
        self.launch = launch
        self.shift = launch.code.granule.bit_length() - 1
        count = (used_bytes >> self.shift) + 16
        self.writes = np.zeros(count, np.uint64)
        self.reads = np.zeros(count, np.uint64)
        self.more_reads = np.zeros(count, np.uint64)
        code = launch.code
        self.has_atomics, self.synchronises = code.has_atomics, code.synchronises
        self.generic = np.zeros(count, np.uint8) if code.is_async else None
        """Whether the last write was a thread's, and no proxy fence has passed it on."""
        self.written = (count, 0)
        """The first and last granule that threads wrote."""
        self.atomics = np.zeros(count if self.has_atomics else 0, np.uint64)
        self.pending_reads = PendingReads(count if code.is_async else 0)
        self.has_copies = False
        """Whether a copy has begun."""
        self.locations: dict[int, Known] = {}
        self.blocks: list[NDArray[np.int64]] = []
        self.first_lanes = [0]
        self.block_lanes = -(-launch.threads // WARP) * WARP
        self.clocks = cast("Clocks", None)

    def begin(self, cohort: Cohort) -> None:
        """A cohort begins; its shared and local memory is new."""
        self.cohort = cohort
        self.clocks = Clocks(cohort, self.locations)
        self.blocks.append(cohort.blocks)
        self.order = np.concatenate(self.blocks)
        self.first = self.first_lanes[-1]
        self.first_lanes.append(self.first + cohort.count)
        self.threads = (self.first + np.arange(cohort.count)).astype(np.uint64) << THREAD_SHIFT
        launch = self.launch
        for region, size in (
            (launch.shared_region, len(cohort.blocks) * launch.shared_stride),
            (launch.local_region, 0),
        ):
            part = slice(region >> self.shift, region + size >> self.shift)
            for array in (self.writes, self.reads, self.more_reads):
                array[part] = 0
            if self.has_atomics:
                self.atomics[part] = 0
            self.pending_reads.clear(part)
            if self.generic is not None:
                self.generic[part] = 0
        self.renew()

    def renew(self) -> None:
        """Clocks have changed: stamps are computed again."""
        clocks = self.clocks.own.reshape(-1).astype(np.uint64) & CLOCK_MASK
        self.stamps = self.threads | (np.repeat(clocks, WARP) << CLOCK_SHIFT)

    def _stamp(self, index: NDArray[np.int64], size: int, lanes: Lanes) -> tuple[Array, Array]:
        stamps = self.stamps[lanes] | np.uint64(self.cohort.pc + 1)
        places = index >> self.shift
        count = size >> self.shift
        if count > 1:
            places = (places[:, None] + np.arange(count)).reshape(-1)
            stamps = np.repeat(stamps, count)
        return places, stamps

    def read(self, index: NDArray[np.int64], size: int, lanes: Lanes) -> None:
        """A weak read."""
        places, stamps = self._stamp(index, size, lanes)
        self._compare_read(places, stamps)
        self._note_read(places, stamps)

    def note_use(self, index: NDArray[np.int64], size: int, lanes: Lanes) -> None:
        """A use of an object of another block, which may not have ended."""
        self._note_read(*self._stamp(index, size, lanes))

    def _note_read(self, places: Array, stamps: Array) -> None:
        before = self.reads[places]
        others = ((before ^ stamps) >> THREAD_SHIFT != 0) & (before != 0)
        if others.any():
            self.more_reads[places[others]] = before[others]
        self.reads[places] = stamps
        lost = self.reads[places] != stamps
        if lost.any():
            self.more_reads[places[lost]] = stamps[lost]

    def _compare_read(self, places: Array, stamps: Array) -> None:
        self._compare(self.writes[places], stamps, places, "writes", "reads")
        if self.has_atomics:
            self._compare(self.atomics[places], stamps, places, "updates atomically", "reads")

    def write(
        self,
        index: NDArray[np.int64],
        size: int,
        lanes: Lanes,
        differs: Callable[[NDArray[np.intp]], NDArray[np.bool_]],
    ) -> None:
        """A weak write; `differs` tells which of some lanes did not write what is in memory now."""
        places, stamps = self._stamp(index, size, lanes)
        self._compare_write(places, stamps)
        self.writes[places] = stamps
        self._mark_generic(places)
        final = self.writes[places]
        lost = final != stamps
        if lost.any():
            # Threads that write the same value with one instruction do no harm.
            count = max(1, size >> self.shift)
            numbers = np.flatnonzero(lost)
            wrong = numbers[differs(numbers // count)]
            if len(wrong):
                one = wrong[0]
                self._report(
                    int(final[one]), int(stamps[one]), int(places[one]), "writes", "writes"
                )

    def _compare_write(self, places: Array, stamps: Array) -> None:
        self._compare(self.writes[places], stamps, places, "writes", "writes")
        self._compare(self.reads[places], stamps, places, "reads", "writes")
        self._compare(self.more_reads[places], stamps, places, "reads", "writes")
        self._compare_pending(places, stamps)
        if self.has_atomics:
            self._compare(self.atomics[places], stamps, places, "updates atomically", "writes")

    def _mark_generic(self, places: Array) -> None:
        if self.generic is not None:
            self.generic[places] = True
            first, last = self.written
            self.written = min(first, int(places.min())), max(last, int(places.max()))

    def atomic(self, index: NDArray[np.int64], size: int, lanes: Lanes) -> None:
        """An atomic or strong access."""
        places, stamps = self._stamp(index, size, lanes)
        self._compare(self.writes[places], stamps, places, "writes", "accesses atomically")
        self._compare(self.reads[places], stamps, places, "reads", "accesses atomically")
        self._compare_pending(places, stamps)
        self.atomics[places] = stamps

    def strong_read(self, index: NDArray[np.int64], size: int, lanes: Lanes) -> None:
        """A relaxed, acquiring or volatile read: it races with weak writes."""
        places, stamps = self._stamp(index, size, lanes)
        self._compare(self.writes[places], stamps, places, "writes", "reads")

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
        """What an atomic or strong access orders."""
        if self.synchronises:
            self.clocks.strong(
                index, lanes, release=release, acquire=acquire, reads=reads, writes=writes
            )
            if writes:
                self.renew()

    # What copies and products do some time later

    def read_begins(self, index: NDArray[np.int64], size: int, lanes: Lanes) -> tuple[Array, Array]:
        """From now on a copy or product may read; returns what `read_ends` expects."""
        places, stamps = self._stamp(index, size, lanes)
        places, first = np.unique(places, return_index=True)
        self._compare_read(places, stamps[first])
        self.pending_reads.begin(places, stamps[first])
        return places, stamps[first] >> THREAD_SHIFT

    def read_ends(self, pending: tuple[Array, Array], pc: int) -> None:
        """A copy or product, begun at `pc`, has read."""
        places, threads = pending
        self.pending_reads.end(places)
        lanes = threads.astype(np.int64) - self.first
        self._note_read(places, self.stamps[lanes] | np.uint64(pc + 1))

    def write_begins(
        self, index: NDArray[np.int64], size: int, lanes: Lanes, *, atomically: bool = False
    ) -> None:
        """From now on a copy may write."""
        self.has_copies = True
        places, stamps = self._stamp(index, size, lanes)
        if atomically:
            self._compare(self.writes[places], stamps, places, "writes", "accesses atomically")
            self._compare(self.reads[places], stamps, places, "reads", "accesses atomically")
            self._compare_pending(places, stamps)
        else:
            self._compare_write(places, stamps)
        (self.atomics if atomically else self.writes)[places] = stamps | UNDER_WAY

    def write_ends(
        self,
        index: NDArray[np.int64],
        size: int,
        lanes: Lanes,
        *,
        generic: bool,
        atomically: bool = False,
    ) -> None:
        """A copy has written, with the instruction and threads with which it began; `generic`: as threads do."""
        places, stamps = self._stamp(index, size, lanes)
        memory = self.atomics if atomically else self.writes
        still = memory[places] == stamps | UNDER_WAY
        memory[places[still]] = stamps[still]
        if generic:
            self._mark_generic(places)
        elif self.generic is not None:
            self.generic[places] = False

    def _compare_pending(self, places: Array, stamps: Array) -> None:
        """Reports writes to what may still be read by copies and products under way."""
        pending = self.pending_reads
        if not pending.begun:
            return
        numbers = np.flatnonzero(pending.counts[places])
        if len(numbers):
            one = numbers[0]
            old, new = int(pending.stamps[places[one]]), int(stamps[one])
            self._report(old, new, int(places[one]), "may still read", "writes", _WAIT)

    def _compare(self, before: Array, now: Array, places: Array, earlier: str, later: str) -> None:
        suspects = ((before ^ now) >> THREAD_SHIFT != 0) & (before != 0)
        if self.has_copies:
            suspects |= before & UNDER_WAY == UNDER_WAY
        if not suspects.any():
            return
        numbers = np.flatnonzero(suspects)
        old, new = before[numbers], now[numbers]
        lane = (old >> THREAD_SHIFT).astype(np.int64)
        mine = (new >> THREAD_SHIFT).astype(np.int64) - self.first
        slot, here = lane // self.block_lanes, mine // self.block_lanes
        ordered = self.clocks.ordered(
            here,
            mine % self.block_lanes // WARP,
            slot - self.first // self.block_lanes,
            self.order[slot],
            lane % self.block_lanes // WARP,
            (old >> CLOCK_SHIFT & CLOCK_MASK).astype(np.int64),
        )
        wrong = np.flatnonzero(~ordered)
        if len(wrong):
            one = wrong[0]
            stamp, remedy = int(old[one]), _MEET
            if stamp & int(UNDER_WAY) == int(UNDER_WAY):
                earlier, remedy = "may still write", _WAIT
            self._report(stamp, int(new[one]), int(places[numbers[one]]), earlier, later, remedy)

    def _report(
        self,
        old: int,
        new: int,
        place: int,
        earlier: str,
        later: str,
        remedy: str = _MEET,
    ) -> None:
        first, second = (old & int(PC_MASK)) - 1, (new & int(PC_MASK)) - 1
        launch = self.launch
        shared = self.cohort.space_at(place << self.shift) == "shared"
        key = ("race", shared, min(first, second), max(first, second))
        if key in launch.found:
            return
        where = self._where(place << self.shift, shared=shared)
        launch.finding(
            key,
            Diagnostic(
                "HLO0776" if shared else "HLO0777",
                f"race in {'shared' if shared else 'global'} memory: {self.thread(new)} {later} {where}, "
                f"which {self.thread(old)} {earlier} with nothing that orders the two",
                launch.place(second),
                notes=(("the other access is", launch.place(first)),),
                help=remedy,
            ),
        )

    def _where(self, index: int, *, shared: bool) -> str:
        if shared:
            launch = self.launch
            return f"byte {(index - launch.shared_region) % launch.shared_stride}"
        return self.launch.machine.arena.describe(index)

    def thread(self, stamp: int) -> str:
        """The thread of a stamp: `thread 3 of block 1`."""
        lane = stamp >> int(THREAD_SHIFT)
        return f"thread {lane % self.block_lanes} of block {self.order[lane // self.block_lanes]}"

    def ended(self, block: int) -> None:
        """A block of a cluster ends: HLO0775 for accesses of others to its shared memory that may come later."""
        launch, cohort = self.launch, self.cohort
        start = launch.shared_region + block * launch.shared_stride >> self.shift
        part = slice(start, start + (launch.shared_stride >> self.shift))
        arrays = [self.reads, self.more_reads, self.writes]
        if self.has_atomics:
            arrays.append(self.atomics)
        for stamps in (one[part] for one in arrays):
            old = stamps[stamps != 0]
            lane = (old >> THREAD_SHIFT).astype(np.int64)
            slot = lane // self.block_lanes - self.first // self.block_lanes
            own = np.full(len(old), block)
            ordered = self.clocks.ordered(
                own,
                np.zeros(len(old), np.int64),
                slot,
                cohort.blocks[slot],
                lane % self.block_lanes // WARP,
                (old >> CLOCK_SHIFT & CLOCK_MASK).astype(np.int64),
            )
            wrong = np.flatnonzero(~ordered & (slot != block))
            if len(wrong):
                stamp = int(old[wrong[0]])
                pc = (stamp & int(PC_MASK)) - 1
                launch.finding(
                    ("ended", pc),
                    Diagnostic(
                        "HLO0775",
                        f"{self.thread(stamp)} accesses shared memory of block "
                        f"{cohort.blocks[block]}, which may have ended",
                        launch.place(pc),
                        help="let all blocks of the cluster meet at barrier.cluster before they end",
                    ),
                )

    # Synchronisation

    def barrier(self) -> None:
        """All threads met, those of each block."""
        self.clocks.barrier()
        self.renew()

    def arrive(self, lanes: Lanes, reach: int) -> Known:
        """Threads arrive at a barrier of their block or cluster; what they release."""
        known = self.clocks.arrive(lanes, reach)
        self.renew()
        return known

    def wait(self, lanes: Lanes, known: Known) -> None:
        """Threads have waited for a barrier at which others released `known`."""
        self.clocks.wait(lanes, known)

    def warp_barrier(self, lanes: Lanes) -> None:
        """Threads met others of their warp."""
        self.clocks.warp_barrier(lanes)
        self.renew()

    def pass_on(self, lanes: Lanes, space: str) -> None:
        """A proxy fence for `shared`, `global` or `all` memory: asynchronous copies may read writes before it."""
        assert self.generic is not None
        first, last = self.written
        dirty = np.flatnonzero(self.generic[first : last + 1]) + first
        if space != "all":
            start = self.launch.shared_region >> self.shift
            size = len(self.cohort.blocks) * self.launch.shared_stride >> self.shift
            inside = (dirty >= start) & (dirty < start + size)
            dirty = dirty[inside if space == "shared" else ~inside]
        if not len(dirty):
            return
        stamps = self.writes[dirty]
        lane = (stamps >> THREAD_SHIFT).astype(np.int64)
        slot, warp = lane // self.block_lanes, lane % self.block_lanes // WARP
        clock = (stamps >> CLOCK_SHIFT & CLOCK_MASK).astype(np.int64)
        seen = np.isin(lane - self.first, sets.indices(lanes))
        blocks = slot - self.first // self.block_lanes
        warps = self.block_lanes // WARP
        for number in np.unique(sets.indices(lanes) // WARP).tolist():
            block, own = (np.full(len(dirty), part) for part in divmod(number, warps))
            seen |= self.clocks.ordered(block, own, blocks, self.order[slot], warp, clock)
        self.generic[dirty[seen]] = 0

    def fence(self, lanes: Lanes, reach: int) -> None:
        """Threads executed a fence."""
        self.clocks.fence(lanes, reach)
