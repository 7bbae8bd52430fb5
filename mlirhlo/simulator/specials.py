"""Values of special registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.simulator.lanes import WARP, Array

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

VOLATILE = frozenset(
    {"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}
)
"""Special registers that another value is read from each time."""


def special_register(cohort: Cohort, name: str) -> Array:
    """The elements of a special register, one a lane."""
    if name.startswith("wide "):
        return special_register(cohort, name[5:]).astype(np.uint64)
    stem, _, axis = name.removeprefix("%").partition(".")
    if stem in _VECTORS:
        values = (
            _VECTORS[stem](cohort)[("x", "y", "z").index(axis)] if axis in ("x", "y", "z") else 0
        )
    elif name in VOLATILE:
        wide = name in ("%clock64", "%globaltimer")
        return np.zeros(cohort.count, np.uint64 if wide else np.uint32)
    else:
        values = _SCALARS[stem](cohort) if stem in _SCALARS else 0
    if stem == "gridid":
        return np.full(cohort.count, 1, np.uint64)
    if stem == "is_explicit_cluster":
        return np.broadcast_to(np.array([bool(values)]), (cohort.count,))
    if isinstance(values, int):
        return np.broadcast_to(np.array([values], np.uint32), (cohort.count,))
    return values.astype(np.uint32)


def refresh(cohort: Cohort, name: str, slot: int) -> None:
    """Puts the present value of a volatile register into its slot."""
    # One instruction takes four cycles, a cycle of the clock is a nanosecond.
    now = cohort.launch.clock + 4 * (cohort.steps + cohort.pc)
    cohort.slots[slot][:] = (
        now >> 32
        if name.endswith("_hi")
        else now & (0xFFFFFFFF if cohort.slots[slot].dtype == np.uint32 else 0xFFFFFFFFFFFFFFFF)
    )
    cohort.launch.clock += 4


def _split(numbers: Array, shape: tuple[int, int, int]) -> tuple[Array, Array, Array]:
    x, y, _ = shape
    return numbers % x, numbers // x % y, numbers // (x * y)


def _ctaid(c: Cohort) -> tuple[Array, Array, Array]:
    return _split(c.blocks[c.block_of], c.launch.grid)


def _cluster_ctaid(c: Cohort) -> tuple[Array, Array, Array]:
    x, y, z = (index % size for index, size in zip(_ctaid(c), c.launch.cluster, strict=True))
    return x, y, z


def _clusterid(c: Cohort) -> tuple[Array, Array, Array]:
    x, y, z = (index // size for index, size in zip(_ctaid(c), c.launch.cluster, strict=True))
    return x, y, z


def _nclusterid(c: Cohort) -> tuple[int, int, int]:
    x, y, z = (-(-size // part) for size, part in zip(c.launch.grid, c.launch.cluster, strict=True))
    return x, y, z


def _lane_bits(c: Cohort, shift: int) -> Array:
    """`1 << lane + shift`."""
    return np.uint64(1 << shift) << (c.thread_of % WARP).astype(np.uint64)


def cluster_rank(c: Cohort) -> Array:
    """Rank of each lane's block in its cluster."""
    x, y, z = _cluster_ctaid(c)
    result: Array = x + c.launch.cluster[0] * (y + c.launch.cluster[1] * z)
    return result


_VECTORS: dict[str, Callable[[Cohort], tuple[Array | int, Array | int, Array | int]]] = {
    "tid": lambda c: _split(c.thread_of, c.launch.block),
    "ntid": lambda c: c.launch.block,
    "ctaid": _ctaid,
    "nctaid": lambda c: c.launch.grid,
    "clusterid": _clusterid,
    "nclusterid": _nclusterid,
    "cluster_ctaid": _cluster_ctaid,
    "cluster_nctaid": lambda c: c.launch.cluster,
}

_SCALARS: dict[str, Callable[[Cohort], Array | int]] = {
    "laneid": lambda c: c.thread_of % WARP,
    "warpid": lambda c: c.thread_of // WARP,
    "nwarpid": lambda c: c.block_lanes // WARP,
    "smid": lambda c: c.blocks[c.block_of] % 132,
    "nsmid": lambda c: 132,
    "cluster_ctarank": cluster_rank,
    "cluster_nctarank": lambda c: int(np.prod(c.launch.cluster)),
    "is_explicit_cluster": lambda c: int(np.prod(c.launch.cluster) > 1),
    "lanemask_eq": lambda c: _lane_bits(c, 0),
    "lanemask_lt": lambda c: _lane_bits(c, 0) - np.uint64(1),
    "lanemask_le": lambda c: _lane_bits(c, 1) - np.uint64(1),
    "lanemask_gt": lambda c: ~(_lane_bits(c, 1) - np.uint64(1)),
    "lanemask_ge": lambda c: ~(_lane_bits(c, 0) - np.uint64(1)),
    "dynamic_smem_size": lambda c: c.launch.dynamic_shared,
    "total_smem_size": lambda c: c.launch.shared_bytes,
    "aggr_smem_size": lambda c: c.launch.shared_bytes,
}
