"""How many devices a module needs, from its header, its manual computations and its collectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls.manual import manual_partitions
from mlirhlo.interp.machine import Machine
from mlirhlo.interp.ops.collectives import GroupMode, group_mode

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups
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
    """What the header says; where that is 1, as many as the instructions need.

    Manual computations (`shard_map`) are written for the partitions of their mesh. Replica groups
    and source-target pairs name replicas, partitions or devices, by the collective's mode; devices
    beyond the replicas are partitions. A collective without groups is of as many devices as its shapes
    say: an all-gather of f32[1] to f32[4] of four.
    """
    replicas, partitions = module.replica_count, module.num_partitions
    if partitions == 1 and (manual := manual_partitions(module)) > 1:
        return DeviceCounts(replicas, manual, is_unpartitioned=True)
    if partitions > 1 and replicas > 1:
        return DeviceCounts(replicas, partitions)
    named = dict.fromkeys(GroupMode, 0)
    beside = 1
    for op in module.instructions:
        if not op.opcode.collective:
            continue
        count, implied = _named(op), _implied(op)
        if not count and not implied:
            continue
        try:
            mode = group_mode(op)
        except HloError:
            continue  # running the instruction says what is wrong with it, and where
        if mode is GroupMode.CROSS_REPLICA_AND_PARTITION:
            # Shapes say replicas × partitions: divided by what is known, they say the others.
            known = _group_size(op) or (replicas if replicas > 1 else implied // partitions)
            beside = max(beside, implied // max(known, 1))
            count = count or implied // partitions
        named[mode] = max(named[mode], count or implied)
    if replicas == 1:
        by_replica = (GroupMode.CROSS_REPLICA, GroupMode.CROSS_REPLICA_AND_PARTITION)
        replicas = max(1, *(named[mode] for mode in by_replica))
    if partitions == 1:
        by_device = -(-named[GroupMode.FLATTENED_ID] // replicas)
        partitions = max(beside, named[GroupMode.CROSS_PARTITION], by_device)
    return DeviceCounts(replicas, partitions)


def machine_for(module: ModuleOp) -> Machine:
    """A machine with as many replicas and partitions as the module needs."""
    counts = device_counts(HloModule(module))
    return Machine(counts.replicas, counts.partitions)


def _implied(op: Instruction) -> int:
    """Devices of a group as the shapes of a collective say it; 0 where they do not."""
    name, shape = op.opcode.name.removesuffix("-start"), op.shape
    if isinstance(shape, TupleShape):
        if name == "all-to-all":
            return len(op.inputs)
        if name != op.opcode.name and len(shape.elements) > 1:
            shape = shape.elements[1]
    while isinstance(shape, TupleShape) and shape.elements:
        shape = shape.elements[0]
    operand = op.input_shapes[0] if op.inputs else None
    dims: tuple[int, ...] = getattr(op, "dimensions", ())
    if name not in ("all-gather", "reduce-scatter") or len(dims) != 1:
        return 0
    if not isinstance(operand, ArrayShape) or not isinstance(shape, ArrayShape):
        return 0
    if not 0 <= dims[0] < min(operand.rank, shape.rank):
        return 0
    small, big = operand.dimensions[dims[0]], shape.dimensions[dims[0]]
    if name == "reduce-scatter":
        small, big = big, small
    return big // small if small > 0 and big % small == 0 else 0


def _group_size(op: Instruction) -> int:
    """Devices in each listed group; 0 when none is listed."""
    groups: ReplicaGroups | None = getattr(op, "replica_groups", None)
    return 0 if groups is None else max(map(len, groups.groups()), default=0)


def _named(op: Instruction) -> int:
    """One more than the highest number that the groups or pairs of a collective hold."""
    pairs: tuple[tuple[int, int], ...] = getattr(op, "source_target_pairs", None) or ()
    groups: ReplicaGroups | None = getattr(op, "replica_groups", None)
    listed = pairs if groups is None else groups.groups()
    return max((max(group) + 1 for group in listed if group), default=0)
