"""Barriers, fences, and what lets time pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.simulator.assembler import Assembler, Run, Split
from mlirhlo.simulator.clocks import BLOCK, DEVICE
from mlirhlo.simulator.lanes import Lanes
from mlirhlo.simulator.meanings.collectives import collective
from mlirhlo.simulator.meanings.registry import meaning, nothing

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort


@meaning("bar", "barrier")
def barrier(assembler: Assembler) -> Run:
    """Barriers of a warp, block or cluster."""
    if assembler.has("warp"):
        return _warp_barrier(assembler)
    if assembler.has("cluster"):
        return _cluster_barrier(assembler)
    aligned = assembler.op.opcode == "bar" or assembler.has("aligned")
    if assembler.has("red"):
        return _voting_barrier(assembler, aligned=aligned)
    waits = not assembler.has("arrive")
    number = assembler.source(0, "u32")
    count = assembler.source(1, "u32") if assembler.count > 1 else None

    def run(cohort: Cohort, lanes: Lanes) -> Split | None:
        slots = cohort.slots
        expected = None if count is None else slots[count][lanes]
        return cohort.barriers.arrive(
            lanes, slots[number][lanes], expected, waits=waits, aligned=aligned
        )

    return run


def _voting_barrier(assembler: Assembler, *, aligned: bool) -> Run:
    operation = assembler.one_of("popc", "and", "or")
    d = assembler.dest(0, "u32" if operation == "popc" else "pred")
    number = assembler.source(1, "u32")
    count = assembler.source(2, "u32") if assembler.count > 3 else None
    p, negated = assembler.condition(assembler.count - 1)

    def run(cohort: Cohort, lanes: Lanes) -> Split | None:
        slots = cohort.slots
        expected = None if count is None else slots[count][lanes]
        flags = slots[p][lanes] ^ negated
        return cohort.barriers.arrive(
            lanes,
            slots[number][lanes],
            expected,
            waits=True,
            aligned=aligned,
            vote=(flags, operation, d),
        )

    return run


def _warp_barrier(assembler: Assembler) -> Run:
    def body(cohort: Cohort, lanes: Lanes) -> None:
        if cohort.races is not None:
            cohort.races.warp_barrier(lanes)

    return collective(assembler, assembler.source(0, "b32"), body)


def _cluster_barrier(assembler: Assembler) -> Run:
    if assembler.has("arrive"):
        releases = not assembler.has("relaxed")

        def arrive(cohort: Cohort, lanes: Lanes) -> Split | None:
            following = [(cohort.pc + 1, lanes)]
            return [*following, *cohort.barriers.arrive_cluster(lanes, releases=releases)]

        return arrive
    return lambda cohort, lanes: cohort.barriers.wait_cluster(lanes)


@meaning("membar", "fence")
def fence(assembler: Assembler) -> Run:
    """Orders memory; proxy fences order it between the units that access it."""
    if assembler.has("proxy", "mbarrier_init") or any(
        "proxy" in one for one in assembler.modifiers
    ):
        from mlirhlo.simulator.meanings import proxies

        return proxies.fence(assembler)
    reach = BLOCK if assembler.has("cta") else DEVICE

    def run(cohort: Cohort, lanes: Lanes) -> None:
        if cohort.races is not None:
            cohort.races.fence(lanes, reach)

    return run


@meaning("nanosleep")
def sleep(assembler: Assembler) -> Run:
    """Lets others run."""

    def run(cohort: Cohort, lanes: Lanes) -> None:
        cohort.polls += 16
        cohort.launch.clock += 1000

    return run


@meaning("griddepcontrol")
def grid_dependency(assembler: Assembler) -> Run:
    """Launches are executed one after the other: the one before has ended."""
    return nothing
