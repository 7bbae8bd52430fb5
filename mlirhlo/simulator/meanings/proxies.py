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
    if not assembler.has("async", "async.shared::cta", "async.global") and not any(
        one.startswith("proxy::async") or one == "async" for one in assembler.modifiers
    ):
        return nothing

    def run(cohort: Cohort, lanes: Lanes) -> None:
        if cohort.races is not None and cohort.races.generic is not None:
            cohort.races.pass_on(lanes)

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
    offset = ((int(dirty[0]) << races.shift) - launch.shared_region) % launch.shared_stride
    pc = (stamp & int(PC_MASK)) - 1
    launch.finding(
        ("proxy", cohort.pc, pc),
        Diagnostic(
            "HLO0782",
            f"{what} reads byte {offset} of shared memory, written by {races.thread(stamp)} without a proxy fence",
            place_at(cohort),
            notes=(("the write is", launch.place(pc)),),
            help="execute fence.proxy.async after the writes, then a barrier",
        ),
    )
