"""How many devices a module needs, from its header, its manual computations and its collectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirhlo.diagnostics import HloError

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups
    from mlirhlo.dialects.hlo.module import HloModule
    from mlirhlo.dialects.hlo.ops.base import Instruction


@dataclass(frozen=True, slots=True)
class DeviceCounts:
    """Replicas and partitions of a module."""

    replicas: int = 1
    partitions: int = 1
    is_unpartitioned: bool = False
    """Whether every partition takes whole arrays and gives whole results: the module is from before
    partitioning, and holds manual computations for more partitions than its header says."""


def device_counts(module: HloModule) -> DeviceCounts:
    """What the header says; where that is 1, as much as the instructions ask for.

    Manual computations (`shard_map`) are written for the partitions of their mesh. Replica groups
    and source-target pairs name replicas, partitions or devices, by the collective's mode; devices
    beyond the replicas are partitions.
    """
    from mlirhlo.interp.collectives import GroupMode, group_mode
    from mlirhlo.interp.custom_calls.manual import manual_partitions

    replicas, partitions = module.replica_count, module.num_partitions
    if partitions == 1 and (manual := manual_partitions(module)) > 1:
        return DeviceCounts(replicas, manual, is_unpartitioned=True)
    if partitions > 1 and replicas > 1:
        return DeviceCounts(replicas, partitions)
    named = dict.fromkeys(GroupMode, 0)
    for op in module.instructions:
        if op.opcode.collective and (count := _named(op)):
            try:
                mode = group_mode(op)
            except HloError:
                continue  # running the instruction says what is wrong with it, and where
            named[mode] = max(named[mode], count)
    if replicas == 1:
        by_replica = (GroupMode.CROSS_REPLICA, GroupMode.CROSS_REPLICA_AND_PARTITION)
        replicas = max(1, *(named[mode] for mode in by_replica))
    if partitions == 1:
        by_device = -(-named[GroupMode.FLATTENED_ID] // replicas)
        partitions = max(1, named[GroupMode.CROSS_PARTITION], by_device)
    return DeviceCounts(replicas, partitions)


def _named(op: Instruction) -> int:
    """One more than the highest number that the groups or pairs of a collective hold."""
    pairs: tuple[tuple[int, int], ...] = getattr(op, "source_target_pairs", None) or ()
    groups: ReplicaGroups | None = getattr(op, "replica_groups", None)
    listed = pairs if groups is None else groups.groups()
    return max((max(group) + 1 for group in listed if group), default=0)
