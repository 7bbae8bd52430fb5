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


def partitions_of(module: HloModule, wanted: int) -> int:
    """How many partitions a module is for; 1 where it is partitioned already."""
    if module.entry.computation_name.endswith(PARTITIONED):
        return 1
    return wanted or module.num_partitions
