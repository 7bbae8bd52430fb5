"""Proxy fences, and the check that they stand between generic writes and asynchronous reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.diagnostics import Diagnostic
from mlirhlo.simulator.access import Index, place_at
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Lanes
from mlirhlo.simulator.meanings.registry import nothing
from mlirhlo.simulator.races import PC_MASK

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort


def fence(assembler: Assembler) -> Run:
    """`fence.proxy.async` passes on what the thread wrote, or knows that others wrote."""
    if not any(one.startswith(("async", "proxy::async")) for one in assembler.modifiers):
        return nothing
    words = " ".join(assembler.modifiers)
    space = "shared" if "shared" in words else "global" if "global" in words else "all"

    def run(cohort: Cohort, lanes: Lanes) -> None:
        if cohort.races is not None and cohort.races.generic is not None:
            cohort.races.pass_on(lanes, space)

    return run


def check_async_read(cohort: Cohort, index: Index, size: int, what: str) -> None:
    """HLO0782 when bytes were written by threads and not passed on since."""
    races = cohort.races
    if races is None or races.generic is None:
        return
    places = np.unique(
        ((index[:, None] + np.arange(0, size, 1 << races.shift)) >> races.shift).reshape(-1)
    )
    dirty = places[races.generic[places] != 0]
    if not len(dirty):
        return
    launch = cohort.launch
    stamp = int(races.writes[dirty[0]])
    byte = int(dirty[0]) << races.shift
    where = (
        f"byte {(byte - launch.shared_region) % launch.shared_stride} of shared memory"
        if cohort.space_at(byte) == "shared"
        else cohort.arena.describe(byte)
    )
    pc = (stamp & int(PC_MASK)) - 1
    launch.finding(
        ("proxy", cohort.pc, pc),
        Diagnostic(
            "HLO0782",
            f"{what} reads {where}, written by {races.thread(stamp)} without a proxy fence",
            place_at(cohort),
            notes=(("the write is", launch.place(pc)),),
            help="execute fence.proxy.async after the writes, then a barrier",
        ),
    )
