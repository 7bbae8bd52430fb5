"""`clusterlaunchcontrol`: a block asks for the indices of a cluster that has not been launched, to do its work too.

The simulator launches every cluster of a grid, as a device does that can hold all of them at once, so a
request is always answered with "nothing was cancelled": 16 bytes of zeros, which arrive at the mbarrier as a copy's do.
Source: PTX ISA, "clusterlaunchcontrol".
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.access import TRANSLATIONS, addresses, check_states
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Lanes
from mlirhlo.simulator.meanings.bulk import targets
from mlirhlo.simulator.meanings.mbarriers import objects_of
from mlirhlo.simulator.meanings.registry import meaning
from mlirhlo.simulator.meanings.transfers import Transfer, transfers_of

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

_RESPONSE_BYTES = 16


@meaning("clusterlaunchcontrol")
def cluster_launch_control(assembler: Assembler) -> Run:
    """`try_cancel`, and the two questions that are asked of its response."""
    if assembler.has("try_cancel"):
        return _try_cancel(assembler)
    response = assembler.source(1, "b128")
    if assembler.has("is_canceled"):
        answer = assembler.dest(0, "pred")

        def is_cancelled(cohort: Cohort, lanes: Lanes) -> None:
            cohort.slots[answer][lanes] = cohort.slots[response][lanes].any(axis=1)

        return is_cancelled
    first = next((n for n, dim in enumerate("xyz") if assembler.has(f"get_first_ctaid::{dim}")), 0)
    indices = [assembler.value(part, "u32") for part in assembler.parts(0)]

    def first_block(cohort: Cohort, lanes: Lanes) -> None:
        numbers = np.ascontiguousarray(cohort.slots[response][lanes]).view(np.uint32)
        for number, slot in enumerate(indices, first):
            cohort.slots[slot][lanes] = numbers[:, number]

    return first_block


def _try_cancel(assembler: Assembler) -> Run:
    to, barrier = (addresses(assembler, operand) for operand in assembler.operands[:2])
    is_multicast = assembler.has("multicast::cluster::all")

    def run(cohort: Cohort, lanes: Lanes) -> None:
        mask = (1 << prod(cohort.launch.cluster)) - 1 if is_multicast else None
        for lane in sets.indices(lanes).tolist():
            one = np.array([lane])
            index, object_index = (
                int(TRANSLATIONS["shared"](cohort, one, locate(cohort, one), size)[0])
                for locate, size in ((to, _RESPONSE_BYTES), (barrier, 8))
            )
            ends = (targets(cohort, lane, mask, index), targets(cohort, lane, mask, object_index))
            for target, told in zip(*ends, strict=True):
                response = np.array([target])
                check_states(cohort, one, response, _RESPONSE_BYTES, write=True)
                objects_of(cohort).at(told, lane)
                none, size = np.array([-1]), _RESPONSE_BYTES
                transfers_of(cohort).start(
                    Transfer(cohort.pc, lane, response, none, size, size, told)
                )

    return run
