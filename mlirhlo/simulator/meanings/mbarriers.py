"""`mbarrier` objects: arrivals, bytes of copies that are under way, phases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.dialects.ptx import Address, Sink
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.access import (
    Index,
    Locate,
    check_states,
    located,
    mark_written,
    place_at,
    thread_name,
)
from mlirhlo.simulator.assembler import Assembler, Run, Split
from mlirhlo.simulator.cohort import POLLS_BEFORE_DEADLOCK, POLLS_BEFORE_TURN
from mlirhlo.simulator.lanes import WARP, Array, Lanes
from mlirhlo.simulator.meanings.asynchronous import copies_of
from mlirhlo.simulator.meanings.registry import meaning

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

MAX_BYTES = (1 << 20) - 1
PHASE_SHIFT = 32


@dataclass(slots=True)
class Barrier:
    """The state of one object."""

    expected: int
    pending: int
    bytes: int = 0
    phase: int = 0

    def settle(self) -> None:
        """Begins the next phase when the present one is complete."""
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.expected


@dataclass(slots=True)
class Objects:
    """The objects of a cohort by their index in the arena."""

    cohort: Cohort
    known: dict[int, Barrier] = field(default_factory=dict[int, Barrier])

    def at(self, index: int, lane: int) -> Barrier:
        """The object at an index. Raises HLO0783 when there is none."""
        if index not in self.known:
            raise self.wrong(index, lane, "which was never initialised")
        return self.known[index]

    def wrong(self, index: int, lane: int, why: str) -> HloError:
        """The error HLO0783."""
        launch = self.cohort.launch
        offset = (index - launch.shared_region) % launch.shared_stride
        return HloError(
            Diagnostic(
                "HLO0783",
                f"{thread_name(self.cohort, lane)} uses the mbarrier at byte {offset} of shared memory, {why}",
                place_at(self.cohort),
                help="initialise it once, let the others see that, and count its arrivals and bytes",
            )
        )

    def arrive(self, index: int, lane: int, count: int) -> int:
        """Some arrivals; the token of the phase they belong to."""
        barrier = self.at(index, lane)
        token = barrier.phase << PHASE_SHIFT | barrier.pending
        if count > barrier.pending:
            raise self.wrong(
                index,
                lane,
                f"which waits for {barrier.pending} more arrivals in this phase, not {count}",
            )
        barrier.pending -= count
        barrier.settle()
        return token

    def expect(self, index: int, lane: int, count: int) -> None:
        """The present phase waits for more bytes (or for fewer, when copies have completed)."""
        barrier = self.at(index, lane)
        barrier.bytes += count
        if not -MAX_BYTES <= barrier.bytes <= MAX_BYTES:
            raise self.wrong(index, lane, f"which would wait for {barrier.bytes} bytes")
        if count < 0:
            barrier.settle()


def objects_of(cohort: Cohort) -> Objects:
    """The objects of a cohort."""
    if "mbarriers" not in cohort.extra:
        cohort.extra["mbarriers"] = Objects(cohort)
    return cast("Objects", cohort.extra["mbarriers"])


def groups(lanes: Lanes, index: Index) -> Iterator[tuple[int, Lanes]]:
    """Threads by the object they use."""
    for place, group in sets.split(lanes, index):
        yield int(place), group


def release(cohort: Cohort, index: int, lanes: Lanes) -> None:
    """What threads did before is seen by those that wait for the object."""
    races = cohort.races
    if races is None:
        return
    warps = cohort.block_lanes // WARP
    for number in np.unique(sets.indices(lanes) // WARP).tolist():
        races.clocks.publish(index, *divmod(number, warps))
    races.renew()


def acquire(cohort: Cohort, index: int, lanes: Lanes) -> None:
    """The other side of `release`."""
    races = cohort.races
    if races is None:
        return
    warps = cohort.block_lanes // WARP
    for number in np.unique(sets.indices(lanes) // WARP).tolist():
        races.clocks.learn(index, *divmod(number, warps))


@meaning("mbarrier")
def mbarrier(assembler: Assembler) -> Run:
    """All instructions on the objects."""
    if assembler.has("pending_count"):
        d, state = assembler.dest(0, "u32"), assembler.source(1, "u64")

        def count(cohort: Cohort, lanes: Lanes) -> None:
            cohort.slots[d][lanes] = cohort.slots[state][lanes] & np.uint64(0xFFFFFFFF)

        return count
    if assembler.has("test_wait", "try_wait"):
        return _wait(assembler)
    if assembler.has("arrive", "arrive_drop"):
        return _arrive(assembler)
    space = "shared" if any(one.startswith("shared") for one in assembler.modifiers) else "generic"
    locate = located(assembler, assembler.operands[0], space, 8)
    if assembler.has("init"):
        return _initialise(assembler.source(1, "u32"), locate)
    if assembler.has("inval"):
        return _invalidate(locate)
    amount = assembler.source(1, "u32")
    sign = 1 if assembler.has("expect_tx") else -1

    def transact(cohort: Cohort, lanes: Lanes) -> None:
        objects, index = objects_of(cohort), locate(cohort, lanes)
        counts = cohort.slots[amount][lanes]
        for lane, place, size in zip(
            sets.indices(lanes).tolist(), index.tolist(), counts.tolist(), strict=True
        ):
            objects.expect(place, lane, sign * size)
        cohort.progressed()

    return transact


def _initialise(amount: int, locate: Locate) -> Run:
    def run(cohort: Cohort, lanes: Lanes) -> None:
        objects, index = objects_of(cohort), locate(cohort, lanes)
        check_states(cohort, lanes, index, 8, write=True)
        counts = cohort.slots[amount][lanes]
        for lane, place, count in zip(
            sets.indices(lanes).tolist(), index.tolist(), counts.tolist(), strict=True
        ):
            if place in objects.known:
                raise objects.wrong(place, lane, "which is initialised already")
            if not 1 <= count <= MAX_BYTES:
                raise objects.wrong(place, lane, f"with a count of {count}")
            objects.known[place] = Barrier(count, count)
        mark_written(cohort, index, 8)
        if cohort.races is not None:
            cohort.races.write(index, 8, lanes, lambda lost: np.ones(len(lost), np.bool_))
        cohort.progressed()

    return run


def _invalidate(locate: Locate) -> Run:
    def run(cohort: Cohort, lanes: Lanes) -> None:
        objects, index = objects_of(cohort), locate(cohort, lanes)
        for lane, place in zip(sets.indices(lanes).tolist(), index.tolist(), strict=True):
            objects.at(place, lane)
            del objects.known[place]

    return run


def _check_visible(cohort: Cohort, lanes: Lanes, index: Index) -> None:
    """Uses of an object come after its initialisation, and before the end of its block."""
    if cohort.races is None:
        return
    cohort.races.strong_read(index, 8, lanes)
    offset = index - cohort.shared_base[lanes]
    remote = (offset < 0) | (offset >= cohort.launch.shared_stride)
    if remote.any():
        cohort.races.note_use(index[remote], 8, sets.indices(lanes)[remote])


def _arrive(assembler: Assembler) -> Run:
    operands = assembler.operands
    remote = assembler.has("shared::cluster")
    token = None
    at = 0
    if not _is_address(operands[0]):
        token = None if isinstance(operands[0], Sink) else assembler.dest(0, "u64")
        at = 1
    space = (
        "shared"
        if remote or any(one.startswith("shared") for one in assembler.modifiers)
        else "generic"
    )
    locate = located(assembler, operands[at], space, 8)
    extra = assembler.source(at + 1, "u32") if len(operands) > at + 1 else None
    expects, drops = assembler.has("expect_tx"), assembler.has("arrive_drop")
    relaxed = assembler.has("relaxed")

    def run(cohort: Cohort, lanes: Lanes) -> None:
        objects, index = objects_of(cohort), locate(cohort, lanes)
        _check_visible(cohort, lanes, index)
        cohort.progressed()
        for place, group in groups(lanes, index):
            if not relaxed:
                release(cohort, place, group)
            for lane in sets.indices(group).tolist():
                count = 1 if extra is None else int(cohort.slots[extra][lane])
                barrier = objects.at(place, lane)
                if expects:
                    objects.expect(place, lane, count)
                    count = 1
                if drops:
                    barrier.expected -= count
                state = objects.arrive(place, lane, count)
                if token is not None:
                    cohort.slots[token][lane] = state

    return run


def _is_address(operand: object) -> bool:
    return isinstance(operand, Address)


POLLS_A_TRY = 8
"""What an attempt in vain counts for: others have had a turn of many instructions."""


def _wait(assembler: Assembler) -> Run:
    parity = assembler.has("parity")
    done = assembler.dest(0, "pred")
    space = "shared" if any(one.startswith("shared") for one in assembler.modifiers) else "generic"
    locate = located(assembler, assembler.operands[1], space, 8)
    state = assembler.source(2, "u32" if parity else "u64")
    relaxed = assembler.has("relaxed")
    # A thread that tries is suspended, and goes on without success only after a long time.
    tries = POLLS_BEFORE_DEADLOCK // 2 if assembler.has("try_wait") else 0

    def run(cohort: Cohort, lanes: Lanes) -> Split | None:
        from mlirhlo.simulator.meanings import transfers
        from mlirhlo.simulator.meanings.matrices import tensor_memory

        objects, index = objects_of(cohort), locate(cohort, lanes)
        _check_visible(cohort, lanes, index)
        for place, group in groups(lanes, index):
            lane = int(sets.indices(group)[0])
            barrier = objects.at(place, lane)
            values = cohort.slots[state][group]
            if parity and int(values.max()) > 1:
                raise objects.wrong(place, lane, f"waiting for parity {int(values.max())}")
            complete = _complete(barrier, values, parity=parity)
            if not complete.all() and (
                transfers.complete_for(cohort, place) | tensor_memory.complete_for(cohort, place)
            ):
                complete = _complete(barrier, values, parity=parity)
            cohort.slots[done][group] = complete
            ready = sets.narrow(group, complete)
            if ready is not None and not relaxed:
                acquire(cohort, place, ready)
        succeeded = cohort.slots[done][lanes]
        if succeeded.any():
            cohort.progressed()
        else:
            cohort.polls_without_progress += tries and POLLS_A_TRY
            cohort.polled()
        waiting = sets.narrow(lanes, ~succeeded)
        if waiting is None or cohort.polls_without_progress > tries:
            return None
        cohort.polls = max(cohort.polls, POLLS_BEFORE_TURN)
        # The attempt counts when it succeeds.
        cohort.launch.counts.add(cohort.pc + 1, cohort.pc, waiting)
        going_on = sets.narrow(lanes, succeeded)
        split = [(cohort.pc, waiting)]
        return split if going_on is None else [*split, (cohort.pc + 1, going_on)]

    return run


def _complete(barrier: Barrier, values: Array, *, parity: bool) -> Array:
    if parity:
        return np.not_equal(values, barrier.phase & 1)
    result: Array = np.not_equal(values >> np.uint64(PHASE_SHIFT), barrier.phase)
    return result


def arrive_after_copies(assembler: Assembler) -> Run:
    """`cp.async.mbarrier.arrive`: arrives when the thread's copies have completed."""
    space = "shared" if any(one.startswith("shared") for one in assembler.modifiers) else "generic"
    locate = located(assembler, assembler.operands[0], space, 8)
    counted = assembler.has("noinc")

    def run(cohort: Cohort, lanes: Lanes) -> None:
        objects, index = objects_of(cohort), locate(cohort, lanes)
        copies_of(cohort).complete(lanes, None)
        cohort.progressed()
        for place, group in groups(lanes, index):
            release(cohort, place, group)
            for lane in sets.indices(group).tolist():
                barrier = objects.at(place, lane)
                if not counted:
                    barrier.pending += 1
                objects.arrive(place, lane, 1)

    return run
