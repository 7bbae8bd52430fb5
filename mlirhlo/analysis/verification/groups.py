"""Checks of the devices that collectives name against the module's replicas and partitions."""

from __future__ import annotations

from enum import Enum
from typing import cast

from mlirhlo.analysis.shape_inference.base import declare
from mlirhlo.analysis.verification.report import GROUPS, Report
from mlirhlo.dialects.hlo.attributes.base import bool_of, ints
from mlirhlo.dialects.hlo.attributes.groups import IotaGroups, ReplicaGroups, ReplicaGroupsAttr
from mlirhlo.dialects.hlo.attributes.kinds import IntegerListsAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.table import OPCODES, opcodes

declare(
    "collective",
    c1="no group is empty",
    c2="no device is in two groups",
    c3="the groups name the devices 0, 1, … without a gap",
    c4="the groups name as many devices as the module has",
    c5="groups have equal sizes",
    c6="with use_global_device_ids the groups are written",
    c7="sources and targets are devices the module has",
    c8="gathered or scattered sizes differ by the group size",
)


class GroupMode(Enum):
    """What the numbers in replica groups mean."""

    CROSS_REPLICA = "replicas"
    CROSS_PARTITION = "partitions"
    CROSS_REPLICA_AND_PARTITION = "replicas, each with all its partitions"
    FLATTENED_ID = "devices"


_BY_PARTITION = opcodes(lambda row: row.groups_partitions)
"""Collectives that join partitions when they have a channel."""


def group_mode(op: Instruction) -> GroupMode:
    """What the groups of `op` name, by its channel_id and use_global_device_ids."""
    if op.properties.get("channel_id") is None:
        return GroupMode.CROSS_REPLICA
    if op.opcode.name in _BY_PARTITION:
        return GroupMode.CROSS_PARTITION
    if bool_of(op.properties.get("use_global_device_ids")):
        return GroupMode.FLATTENED_ID
    return GroupMode.CROSS_REPLICA_AND_PARTITION


def _device_count(mode: GroupMode, module: HloModule) -> int:
    """Devices that groups of `mode` may name; 1 when the module does not say."""
    match mode:
        case GroupMode.CROSS_REPLICA | GroupMode.CROSS_REPLICA_AND_PARTITION:
            return module.replica_count
        case GroupMode.CROSS_PARTITION:
            return module.num_partitions
        case GroupMode.FLATTENED_ID:
            return module.replica_count * module.num_partitions


def check_groups(op: Instruction, module: HloModule, report: Report) -> None:
    """Adds to the report what is wrong with the devices that `op` names."""
    mode = group_mode(op)
    count = _device_count(mode, module)
    if "source_target_pairs" in op.properties:
        _check_pairs(op, count, report)
        return
    attribute = op.properties.get("replica_groups")
    groups = cast(ReplicaGroupsAttr, attribute).data if attribute is not None else ReplicaGroups()
    if not isinstance(groups.form, IotaGroups):
        written = tuple(g for g in groups.groups())
        if not written or written == ((),):
            if mode is GroupMode.FLATTENED_ID:  # collective_c6
                _add(
                    report,
                    "collective_c6",
                    op,
                    "Replica groups must be specified in flattened-id mode",
                )
            return
        problem = _group_problem(written, op.opcode.name)
        if problem is not None:
            _add(report, problem[0], op, problem[1])
            return
        named = sum(map(len, written))
    else:
        named = groups.form.group_count * groups.form.group_size
    if count != 1 and named != count:  # collective_c4
        _add(
            report,
            "collective_c4",
            op,
            f"the groups name {named} {mode.value}, the module has {count}",
        )
    elif groups.group_size is not None:
        _check_ratio(op, groups.group_size, mode, module, report)


def _add(report: Report, constraint: str, op: Instruction, message: str) -> None:
    key = "replica_groups" if "replica_groups" in op.properties else "source_target_pairs"
    report.add(GROUPS, constraint, f"{op.opcode.name}: {message}", op, attribute=key)


def _group_problem(groups: tuple[tuple[int, ...], ...], opcode: str) -> tuple[str, str] | None:
    seen: set[int] = set()
    for group in groups:
        if not group:  # collective_c1
            return "collective_c1", "Instruction cannot have an empty replica group"
        for device in group:
            if device in seen:  # collective_c2
                return (
                    "collective_c2",
                    f"Replica {device} is repeated in instruction's replica-groups",
                )
            seen.add(device)
    for device in range(len(seen)):
        if device not in seen:  # collective_c3
            return (
                "collective_c3",
                f"Replica {device} is not named in instruction's replica-groups",
            )
    # Only some collectives need equal sizes; a reduction does not.
    uniform = OPCODES[opcode].splits_groups
    if uniform and len({len(group) for group in groups}) > 1:  # collective_c5
        return "collective_c5", "Replica groups expected to be of uniform size"
    return None


def _check_pairs(op: Instruction, count: int, report: Report) -> None:
    pairs = cast(IntegerListsAttr, op.properties["source_target_pairs"]).data
    for pair in pairs:
        for device in pair:
            if device < 0 or (device >= count != 1):  # collective_c7
                bound = ">= 0" if device < 0 else f"< {count}"
                _add(
                    report,
                    "collective_c7",
                    op,
                    f"Source or target {device} in instruction's source-target pair must be {bound}",
                )
                return


def _check_ratio(
    op: Instruction, group_size: int, mode: GroupMode, module: HloModule, report: Report
) -> None:
    """Sizes of all-gather and reduce-scatter against the group; skipped where XLA cannot know."""
    name = op.opcode.name
    if not name.startswith(("all-gather", "reduce-scatter")) or name.endswith("-done"):
        return
    if mode is GroupMode.CROSS_REPLICA_AND_PARTITION:
        group_size *= module.num_partitions
    dim = ints(op.properties.get("dimensions"))
    shape: Shape = op.shape
    if name.endswith("-start") and isinstance(shape, TupleShape) and len(shape.elements) > 1:
        shape = shape.elements[1]
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    for source, result in zip(op.input_shapes, parts, strict=False):
        if not isinstance(source, ArrayShape) or not isinstance(result, ArrayShape):
            return
        if not dim or max(source.rank, result.rank) <= dim[0]:
            return
        small, big = source.dimensions[dim[0]], result.dimensions[dim[0]]
        if name.startswith("reduce-scatter"):
            small, big = big, small
        if group_size > 1 and small > 0 and big != small * group_size:  # collective_c8
            _add(
                report,
                "collective_c8",
                op,
                f"sizes {small} and {big} of dimension {dim[0]} do not differ by the {group_size}"
                " devices of a group",
            )
            return
