"""Barriers of blocks, and what happens when threads wait for ever."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.clocks import BLOCK, DEVICE, Known, merge
from mlirhlo.simulator.lanes import WARP, Array, Lanes

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

CLUSTER = -1
"""The number under which the barrier of a cluster is kept, with the cluster's first block."""


@dataclass(slots=True)
class Barrier:
    """Threads that have arrived at one barrier of one block."""

    expected: int | None = None
    """Threads that take part; None for all of the block."""
    arrived: int = 0
    waiting: list[tuple[int, Lanes]] = field(default_factory=list[tuple[int, Lanes]])
    """Threads that wait, with the instruction at which they go on."""
    lanes: list[Lanes] = field(default_factory=list[Lanes])
    """All that arrived, also those that do not wait."""
    pcs: list[int] = field(default_factory=list[int])
    votes: list[tuple[Lanes, Array, str, int]] = field(
        default_factory=list[tuple[Lanes, Array, str, int]]
    )
    """Predicates of `bar.red`, the operation, the slot of the result."""
    known: Known = field(default_factory=dict[int, "Array"])
    """What those that wait learn: what was released by arrivals."""
    missing: list[tuple[int, Array]] = field(default_factory=list[tuple[int, Array]])
    """Instructions at which threads arrived without others of their warp, and these others."""

    def everyone(self) -> Array:
        """The threads that have arrived."""
        nobody = np.zeros(0, np.intp)
        return np.concatenate([nobody, *(sets.indices(group) for group in self.lanes)])


class Barriers:
    """The barriers of one cohort."""

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort
        self.open: dict[tuple[int, int], Barrier] = {}
        self.completed: dict[int, Known] = {}
        """What was released at the last barrier of each cluster, by its first block."""

    def arrive(
        self,
        lanes: Lanes,
        numbers: Array,
        expected: Array | None,
        *,
        waits: bool,
        aligned: bool,
        vote: tuple[Array, str, int] | None = None,
    ) -> list[tuple[int, Lanes]] | None:
        """Threads arrive at barriers `numbers`; who may go on now, or None for just these threads."""
        cohort = self.cohort
        cohort.progressed()
        if (
            vote is None
            and expected is None
            and waits
            and not self.open
            and sets.size(lanes) == cohort.live == len(cohort.blocks) * cohort.threads
            and (numbers == numbers[0]).all()
            and numbers[0] < 16
        ):
            if cohort.races is not None:
                cohort.races.barrier()
            return None
        following = cohort.pc + 1
        result: list[tuple[int, Lanes]] = [] if waits else [(following, lanes)]
        blocks = cohort.block_of[lanes]
        keys = blocks * 64 + np.minimum(numbers, 63).astype(np.int64)
        for key, group in sets.split(lanes, keys):
            block, number = divmod(int(key), 64)
            if number > 15:
                raise self._error("HLO0780", f"barrier {number}: a block has barriers 0 to 15")
            barrier = self.open.setdefault((block, number), Barrier())
            inside = np.isin(sets.indices(lanes), sets.indices(group))
            if expected is not None:
                self._expect(barrier, int(expected[inside][0]), number)
            barrier.arrived += self._arrivals(group, barrier)
            barrier.lanes.append(group)
            barrier.pcs.append(cohort.pc)
            if cohort.races is not None:
                merge(barrier.known, cohort.races.arrive(group, BLOCK))
            if waits:
                barrier.waiting.append((following, group))
            if vote is not None:
                barrier.votes.append((group, vote[0][inside], vote[1], vote[2]))
            if aligned:
                self._note_missing(barrier, group)
            result += self._complete(block, number)
        return result

    def _expect(self, barrier: Barrier, count: int, number: int) -> None:
        if count % WARP or count == 0:
            raise self._error(
                "HLO0780", f"barrier {number} waits for {count} threads, which is no multiple of 32"
            )
        if barrier.expected not in (None, count):
            raise self._error(
                "HLO0780",
                f"barrier {number} is used with {barrier.expected} threads and with {count} at once",
            )
        barrier.expected = count

    def _arrivals(self, group: Lanes, barrier: Barrier) -> int:
        """What threads add to the count: where it is stated, whole warps, each once for all its threads."""
        if barrier.expected is None:
            return sets.size(group)
        numbers, before = sets.indices(group), barrier.everyone()
        again = np.unique(numbers[np.isin(numbers, before)] // WARP)
        first = np.setdiff1d(numbers // WARP, before // WARP)
        return (len(first) + len(again)) * WARP

    def _note_missing(self, barrier: Barrier, group: Lanes) -> None:
        """Notes who has to arrive at the same instruction: an aligned barrier is executed by whole warps."""
        cohort = self.cohort
        numbers = sets.indices(group)
        present = np.zeros(cohort.count, np.bool_)
        present[numbers] = True
        warps = np.unique(numbers // WARP)
        alive = ~cohort.exited.reshape(-1, WARP)[warps]
        missing = alive & ~present.reshape(-1, WARP)[warps]
        if missing.any():
            rows, columns = np.nonzero(missing)
            barrier.missing.append((cohort.pc, warps[rows] * WARP + columns))

    def _check_aligned(self, barrier: Barrier) -> None:
        """Whether warps have met at the instruction before the barrier let them go, in whatever order."""
        cohort = self.cohort
        for pc, missing in barrier.missing:
            groups = zip(barrier.pcs, barrier.lanes, strict=True)
            met = np.concatenate([sets.indices(group) for at, group in groups if at == pc])
            absent = np.setdiff1d(missing, met)
            if len(absent):
                lane = int(absent[0])
                self._diverges(
                    f"only some threads of warp {lane % cohort.block_lanes // WARP} of block "
                    f"{cohort.blocks[cohort.block_of[lane]]} execute this barrier together",
                    pc,
                )

    def _diverges(self, message: str, pc: int, other: int | None = None) -> None:
        launch = self.cohort.launch
        notes = [] if other is None else [("others are", launch.place(other))]
        launch.finding(
            ("divergence", pc),
            Diagnostic(
                "HLO0780",
                f"divergent barrier: {message}",
                launch.place(pc),
                notes=notes,
                help="let all threads of the block reach the barrier, out of the branch",
            ),
        )

    def _is_partial(self, barrier: Barrier) -> bool:
        """Whether a part of a warp is at the barrier, whose other threads a branch has led elsewhere for now."""
        exited, here = self.cohort.exited, barrier.everyone()
        return any((~exited[np.setdiff1d(lanes, here)]).any() for _, lanes in barrier.missing)

    def complete_partial(self) -> bool:
        """Completes barriers that parts of warps have reached, when no thread can go on; whether one does then."""
        cohort, steps = self.cohort, list[tuple[int, Lanes]]()
        for block, number in list(self.open):
            if number != CLUSTER:
                steps += self._complete(block, number, partial=True)
        for pc, group in steps:
            cohort.add(pc, group)
        return bool(steps)

    def _complete(
        self, block: int, number: int, *, partial: bool = False
    ) -> list[tuple[int, Lanes]]:
        """Whom barrier `number` of `block` lets go on, if all have arrived; `partial`: or parts of their warps."""
        cohort, barrier = self.cohort, self.open[block, number]
        needed = barrier.expected
        if needed is None:
            needed = int(cohort.block_live[block])
        if barrier.arrived < needed or not barrier.arrived:
            return []
        if not partial and barrier.missing and self._is_partial(barrier):
            return []
        del self.open[block, number]
        if cohort.launch.machine.checks:
            self._check_aligned(barrier)
        if barrier.expected is None and needed < cohort.threads and cohort.launch.machine.checks:
            self._diverges(
                f"{cohort.threads - needed} of {cohort.threads} threads of "
                f"block {cohort.blocks[block]} have ended before it",
                barrier.pcs[-1],
            )
        if cohort.races is not None:
            for _, group in barrier.waiting:
                cohort.races.wait(group, barrier.known)
        if barrier.votes:
            self._vote(barrier)
        return barrier.waiting

    def _vote(self, barrier: Barrier) -> None:
        flags = np.concatenate([votes for _, votes, _, _ in barrier.votes])
        for group, _, operation, slot in barrier.votes:
            value = {"popc": flags.sum(), "and": flags.all(), "or": flags.any()}[operation]
            self.cohort.slots[slot][group] = value

    def after_exit(self, blocks: Array) -> None:
        """Threads of `blocks` have ended: barriers no longer wait for them."""
        for block, number in list(self.open):
            if number == CLUSTER:
                if np.isin(self._cluster_blocks(block), blocks).any():
                    for pc, group in self._complete_cluster(block):
                        self.cohort.add(pc, group)
            elif block in blocks and self.cohort.block_live[block]:
                for pc, group in self._complete(block, number):
                    self.cohort.add(pc, group)

    # Clusters

    def _cluster_blocks(self, first: int) -> Array:
        return np.arange(first, first + int(np.prod(self.cohort.launch.cluster)))

    def arrive_cluster(self, lanes: Lanes, *, releases: bool) -> list[tuple[int, Lanes]]:
        """Threads arrive at the barrier of their cluster, and do not wait yet."""
        size = int(np.prod(self.cohort.launch.cluster))
        result: list[tuple[int, Lanes]] = []
        for cluster, group in sets.split(lanes, self.cohort.block_of[lanes] // size):
            barrier = self.open.setdefault((int(cluster) * size, CLUSTER), Barrier())
            barrier.arrived += sets.size(group)
            barrier.lanes.append(group)
            barrier.pcs.append(self.cohort.pc)
            if self.cohort.races is not None and releases:
                merge(barrier.known, self.cohort.races.arrive(group, DEVICE))
            result += self._complete_cluster(int(cluster) * size)
        return result

    def wait_cluster(self, lanes: Lanes) -> list[tuple[int, Lanes]]:
        """Threads wait for the barrier of their cluster, at which they have arrived."""
        size = int(np.prod(self.cohort.launch.cluster))
        result: list[tuple[int, Lanes]] = []
        for cluster, group in sets.split(lanes, self.cohort.block_of[lanes] // size):
            barrier = self.open.get((int(cluster) * size, CLUSTER))
            arrived = (
                ()
                if barrier is None
                else np.concatenate([sets.indices(one) for one in barrier.lanes])
            )
            inside = np.isin(sets.indices(group), arrived)
            done, waiting = sets.narrow(group, ~inside), sets.narrow(group, inside)
            if done is not None:
                result.append((self.cohort.pc + 1, done))
                self._learn(int(cluster) * size, done)
            if waiting is not None and barrier is not None:
                barrier.waiting.append((self.cohort.pc + 1, waiting))
        return result

    def _complete_cluster(self, first: int) -> list[tuple[int, Lanes]]:
        cohort = self.cohort
        barrier = self.open.get((first, CLUSTER))
        blocks = self._cluster_blocks(first)
        if barrier is None or barrier.arrived < int(cohort.block_live[blocks].sum()):
            return []
        del self.open[first, CLUSTER]
        self.completed[first] = barrier.known
        for _, group in barrier.waiting:
            self._learn(first, group)
        return barrier.waiting

    def _learn(self, cluster: int, lanes: Lanes) -> None:
        """Threads have waited for the last barrier of their cluster."""
        if self.cohort.races is not None and cluster in self.completed:
            self.cohort.races.wait(lanes, self.completed[cluster])

    # Threads that wait for ever

    def stuck(self) -> None:
        """Raises HLO0781: nobody can go on."""
        cohort = self.cohort
        launch = cohort.launch
        waits = [
            (pc, group, "at the instruction for lanes of their warp that do not come")
            for pc, group in cohort.parked.items()
        ]
        for (_, number), barrier in self.open.items():
            self._check_aligned(barrier)
            what = "the cluster's barrier" if number == CLUSTER else f"barrier {number}"
            detail = f"at {what}, which {barrier.arrived} threads have reached"
            waits += [(pc - 1, group, detail) for pc, group in barrier.waiting]
        parts = [
            (f"{sets.size(group)} threads wait {detail}", launch.place(pc))
            for pc, group, detail in waits[:8]
        ]
        first = parts[0] if parts else ("threads wait", None)
        raise HloError(
            Diagnostic(
                "HLO0781",
                f"deadlock: {cohort.live} threads of {cohort.live_blocks()} wait for each other",
                first[1],
                notes=[(text, place) for text, place in parts],
                help="every thread that a barrier counts has to reach it",
            )
        )

    def spinning(self) -> None:
        """Raises HLO0781: threads poll memory that no thread changes any more."""
        cohort = self.cohort
        if self.complete_partial():
            cohort.progressed()
            return
        raise HloError(
            Diagnostic(
                "HLO0781",
                f"deadlock: threads of {cohort.live_blocks()} poll memory that no thread writes any more",
                cohort.launch.place(cohort.pc),
                help="check who writes the flag, or arrives at the mbarrier, and whether that thread can run",
            )
        )

    def _error(self, code: str, message: str) -> HloError:
        return HloError(Diagnostic(code, message, self.cohort.launch.place(self.cohort.pc)))
