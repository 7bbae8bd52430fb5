"""A cohort: the blocks that run together, their registers, and the scheduler of their threads.

Each thread has its own program counter. Threads with the same one form a fragment, which executes an
instruction at once; the fragment with the least program counter runs first, so that threads meet again
after a branch. Threads that wait at barriers or for lanes of their warp are out of the pool until the others
arrive. Fragments that poll memory take turns with the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.barriers import Barriers
from mlirhlo.simulator.lanes import WARP, Array, Lanes
from mlirhlo.simulator.slots import build_slots
from mlirhlo.simulator.specials import special_register

if TYPE_CHECKING:
    from mlirhlo.simulator.launch import Launch

NEVER = 1 << 60
POLLS_BEFORE_TURN = 64
"""Polls of memory after which a fragment lets others run."""
TURN = 4000
"""Instructions that the others may then execute."""
POLLS_BEFORE_DEADLOCK = 5_000
"""Polls in a row, without a write by any thread, after which the launch is stuck."""


class Cohort:
    """The state of some blocks of a launch."""

    def __init__(self, launch: Launch, blocks: NDArray[np.int64]) -> None:
        self.launch: Launch = launch
        self.code = launch.code
        self.arena = launch.machine.arena
        self.blocks: NDArray[np.int64] = blocks
        self.threads = launch.threads
        self.block_lanes: int = -(-launch.threads // WARP) * WARP
        self.count: int = len(blocks) * self.block_lanes
        lanes = np.arange(self.count)
        self.block_of: NDArray[np.intp] = lanes // self.block_lanes
        self.thread_of: NDArray[np.intp] = lanes % self.block_lanes
        self.exists: NDArray[np.bool_] = self.thread_of < self.threads
        self.exited: NDArray[np.bool_] = ~self.exists
        self.live = len(blocks) * self.threads
        self.block_live = np.full(len(blocks), self.threads)
        self.shared_base: NDArray[np.int64] = (
            launch.shared_region + self.block_of * launch.shared_stride
        ).astype(np.int64)
        self.local_base: NDArray[np.int64] = (
            launch.local_region + lanes * launch.local_stride
        ).astype(np.int64)
        self.slots: list[Array] = build_slots(
            self.code.slots, self.count, lambda name: special_register(self, name)
        )
        self.pool: dict[int, tuple[Lanes, int]] = {}
        self.parked: dict[int, Lanes] = {}
        self.barriers = Barriers(self)
        self.races = launch.races
        self.figures = launch.figures
        self.pc = 0
        self.steps = 0
        self.polls = 0
        self.polls_without_progress = 0
        self.returns = np.zeros((4, self.count), np.int32)
        self.depth = np.zeros(self.count, np.int32)
        self.extra: dict[str, Any] = {}
        """State of the units for asynchronous copies and products, by name."""

    def run(self) -> None:
        """Runs all threads to their end. Raises `HloError` for what stops a kernel."""
        self._start()
        while self.live:
            if not (self.pool or self._start_late() or self.barriers.complete_partial()):
                self.barriers.stuck()
            self._execute(self._choose())

    def _start(self) -> None:
        alive = np.flatnonzero(self.exists)
        self.late: NDArray[np.intp] = alive[:0]
        if self.launch.machine.seed and self.count > WARP:
            # Some warps run only when the others wait for them.
            chosen = self.launch.random.random(self.count // WARP)[alive // WARP] < 0.5
            if chosen.any():
                self.late, alive = alive[~chosen], alive[chosen]
        self.add(0, sets.compact(alive))

    def _start_late(self) -> bool:
        late, self.late = self.late, self.late[:0]
        if len(late):
            self.add(0, sets.compact(late))
        return len(late) > 0

    def add(self, pc: int, lanes: Lanes) -> None:
        """Puts threads that go on at `pc` into the pool."""
        if pc in self.parked:
            lanes = sets.union(lanes, self.parked.pop(pc))
        since = self.steps
        if pc in self.pool:
            others, since = self.pool[pc]
            lanes = sets.union(lanes, others)
        self.pool[pc] = (lanes, since)

    def _choose(self) -> int:
        if self.polls >= POLLS_BEFORE_TURN:
            self._start_late()
        if self.polls < POLLS_BEFORE_TURN or len(self.pool) == 1:
            return min(self.pool)
        self.polls = 0
        return min(self.pool, key=lambda pc: self.pool[pc][1])

    def _execute(self, pc: int) -> None:
        lanes, _ = self.pool.pop(pc)
        turn = self.steps + TURN if self.pool and pc > min(self.pool) else 0
        limit = min((other for other in self.pool if other > pc), default=NEVER)
        run, start = self.code.run, pc
        while pc != limit:
            self.pc = pc
            step = run[pc](self, lanes)
            if step is None:
                pc += 1
                continue
            self._account(start, pc + 1, lanes)
            if isinstance(step, list):
                for target, group in step:
                    self.add(target, group)
                if turn > self.steps and len(step) == 1 and self.polls < POLLS_BEFORE_TURN:
                    pc = start = step[0][0]
                    lanes = self.pool.pop(pc)[0]
                    limit = min((other for other in self.pool if other > pc), default=NEVER)
                    continue
                return
            if self.pool and turn <= self.steps:
                self.add(step, lanes)
                return
            pc = start = step
            if pc in self.pool:
                lanes = sets.union(lanes, self.pool.pop(pc)[0])
            limit = min((other for other in self.pool if other > pc), default=NEVER)
        self._account(start, pc, lanes)
        self.add(pc, lanes)

    def _account(self, start: int, end: int, lanes: Lanes) -> None:
        self.steps += end - start
        self.launch.counts.add(start, end, lanes)

    # What instructions tell the scheduler

    def polled(self) -> None:
        """An instruction read what another thread may be about to change."""
        self.polls += 1
        self.polls_without_progress += 1
        if self.polls_without_progress > POLLS_BEFORE_DEADLOCK:
            self.barriers.spinning()

    def progressed(self) -> None:
        """An instruction changed what others may poll."""
        self.polls_without_progress = 0

    def leave(self, lanes: Lanes) -> list[tuple[int, Lanes]]:
        """Threads end."""
        self.progressed()
        self.exited[lanes] = True
        self.live -= sets.size(lanes)
        numbers, counts = np.unique(self.block_of[lanes], return_counts=True)
        self.block_live[numbers] -= counts
        if self.races is not None:
            for block in numbers[self.block_live[numbers] == 0].tolist():
                self._ended(block)
        waiting, self.parked = self.parked, {}
        for pc, group in waiting.items():
            self.add(pc, group)
        self.barriers.after_exit(numbers)
        return []

    def _ended(self, block: int) -> None:
        """A block has ended, and its shared memory is gone."""
        if "transfers" in self.extra:
            self.extra["transfers"].ended(block)
        if self.races is not None and int(np.prod(self.launch.cluster)) > 1:
            self.races.ended(block)

    def converge(self, lanes: Lanes, masks: int | None) -> tuple[Lanes | None, bool]:
        """
        The threads that may execute a collective instruction of their warp, and whether they are just `lanes`.

        `masks` (a slot, or None for whole warps) names the lanes that take part; threads whose partners
        have not arrived are parked at the instruction.
        """
        pc = self.pc
        if pc in self.parked:
            # The threads that wait here have just been joined by others.
            joined = sets.union(lanes, self.parked.pop(pc))
            ready, _ = self.converge(joined, masks)
            return ready, False
        if isinstance(lanes, slice) and not (lanes.start % WARP or lanes.stop % WARP):
            return lanes, True
        needed = self.warp_bits(~self.exited)
        numbers = sets.indices(lanes)
        wanted: NDArray[np.uint32] = needed[numbers // WARP]
        if masks is not None:
            wanted = wanted & self.slots[masks][lanes].astype(np.uint32)
        present = np.zeros(self.count, np.bool_)
        present[lanes] = True
        missing = wanted & ~self.warp_bits(present)[numbers // WARP]
        if not missing.any():
            return lanes, True
        waiting = sets.narrow(lanes, missing != 0)
        assert waiting is not None
        self.parked[pc] = waiting
        return sets.narrow(lanes, missing == 0), False

    def warp_bits(self, flags: NDArray[np.bool_]) -> NDArray[np.uint32]:
        """One flag a lane as one mask of 32 bits a warp."""
        return np.packbits(flags.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32)[:, 0]

    def space_at(self, index: int) -> str:
        """The state space of a position in the arena."""
        launch = self.launch
        if 0 <= index - launch.shared_region < len(self.blocks) * launch.shared_stride:
            return "shared"
        if 0 <= index - launch.local_region < self.count * launch.local_stride:
            return "local"
        return "global"

    def live_blocks(self) -> str:
        """The blocks that have not ended, for messages."""
        numbers = self.blocks[self.block_live > 0]
        shown = ", ".join(map(str, numbers[:4].tolist()))
        return (
            f"block {shown}"
            if len(numbers) == 1
            else f"blocks {shown}{', …' if len(numbers) > 4 else ''}"
        )

    def grow_returns(self) -> None:
        """Makes space for deeper calls."""
        self.returns = np.concatenate((self.returns, np.zeros_like(self.returns)))
