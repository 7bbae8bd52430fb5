"""Shared memory of other blocks of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.meanings.registry import elementwise, meaning
from mlirhlo.simulator.memory import CLUSTER_SHIFT, SHARED_BASE
from mlirhlo.simulator.specials import cluster_rank
from mlirhlo.simulator.types import DTYPES

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort


@meaning("mapa")
def map_address(assembler: Assembler) -> Run:
    """The address in the shared memory of another block that is where `a` is in one's own."""
    type_name = "u64" if assembler.has("u64") else "u32"
    dtype = DTYPES[type_name].type
    window = 0 if any(one.startswith("shared") for one in assembler.modifiers) else SHARED_BASE

    def function(address: Array, rank: Array) -> Array:
        offset = address & dtype((1 << CLUSTER_SHIFT) - 1)
        result: Array = (
            offset | (rank.astype(dtype) + dtype(1) << dtype(CLUSTER_SHIFT)) | dtype(window)
        )
        return result

    a, rank = assembler.source(1, type_name), assembler.source(2, "u32")
    return elementwise(assembler.dest(0, type_name), function, a, rank)


@meaning("getctarank")
def rank_of_address(assembler: Assembler) -> Run:
    """The rank of the block whose shared memory an address lies in."""
    type_name = "u64" if assembler.has("u64") else "u32"
    d, a = assembler.dest(0, "u32"), assembler.source(1, type_name)

    def run(cohort: Cohort, lanes: Lanes) -> None:
        address = cohort.slots[a][lanes].astype(np.uint64) & np.uint64(0xFFFFFFFF)
        rank = (address >> np.uint64(CLUSTER_SHIFT)).astype(np.int64) - 1
        cohort.slots[d][lanes] = np.where(rank < 0, cluster_rank(cohort)[lanes], rank)

    return run
