"""Whether a module is to be partitioned, and the shardings it says."""

from __future__ import annotations

from collections.abc import Iterator

from mlirhlo.dialects.hlo.attributes.sharding import Sharding, ShardingKind
from mlirhlo.dialects.hlo.module import HloModule

PARTITIONED = "_spmd"
"""Ending of the name of an entry that is partitioned, as XLA names it."""


def shardings_of(module: HloModule) -> Iterator[Sharding]:
    """Every sharding of a module, tuples taken apart, parameters and results first."""
    entry = module.entry
    first = (*entry.parameters, entry.root)
    for op in (*first, *module.instructions):
        if op.sharding is not None:
            yield from (
                op.sharding.elements if op.sharding.kind is ShardingKind.TUPLE else (op.sharding,)
            )


def unsaid_partitions(module: HloModule) -> int:
    """Partitions that the shardings of a module are for, when its header says no number; else 0."""
    if module.get("num_partitions") is not None or _is_partitioned(module):
        return 0
    tiles = (s.to_v2().tiles for s in shardings_of(module))
    count = max((t.size for t in tiles if t is not None), default=0)
    return count if count > 1 else 0


def _is_partitioned(module: HloModule) -> bool:
    return module.entry.computation_name.endswith(PARTITIONED)


def partitions_of(module: HloModule, wanted: int) -> int:
    """How many partitions a module is for; 1 where it is partitioned already."""
    if _is_partitioned(module):
        return 1
    return wanted or module.num_partitions
