"""What the passes over collectives share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import AsyncStartOp, ConstantOp, DynamicSliceOp, IotaOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import Role, properties_of
from mlirhlo.interp.ops.collectives import GroupMode, group_mode
from mlirhlo.rewrites.spmd.reducers import opcode_of

Ids = tuple[tuple[int, ...], ...]
"""Groups of a collective, each in order."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a rewrite asks about the module, looked up once."""

    module: HloModule
    computations: Mapping[str, ComputationOp]
    replicas: int
    partitions: int

    wrapped: frozenset[str]
    """Names of the computations that async instructions run; each is about one instruction, and stays so."""

    @staticmethod
    def of(module: HloModule) -> Surroundings:
        """Those of a module as it is."""
        starts = module.candidates(AsyncStartOp)
        wrapped = frozenset(name for op in starts for name in op.called_computations)
        counts = module.replica_count, module.num_partitions
        return Surroundings(module, module.by_name(), *counts, wrapped)

    def collectives(self, *kinds: type[Instruction]) -> list[Instruction]:
        """Those of some kinds that no async instruction wraps."""
        found = self.module.instructions_of(*kinds)
        return [op for op in found if holder(op).computation_name not in self.wrapped]


def ids_of(op: Instruction, around: Surroundings) -> Ids | None:
    """The groups of a collective as it names them, in the ids of its mode; one of all for none.

    None where some id is named twice, is in no group, or does not exist.
    """
    if getattr(op, "use_global_device_ids", False) and not getattr(op, "channel_id", None):
        return None
    count = {
        GroupMode.CROSS_PARTITION: around.partitions,
        GroupMode.FLATTENED_ID: around.replicas * around.partitions,
    }.get(group_mode(op), around.replicas)
    groups = cast("ReplicaGroups | None", getattr(op, "replica_groups", None))
    listed = groups.groups() if groups is not None else ()
    listed = tuple(g for g in listed if g) or (tuple(range(count)),)
    return listed if sorted(i for g in listed for i in g) == list(range(count)) else None


def groups_of(op: Instruction, around: Surroundings) -> Ids | None:
    """The groups of a collective as lists of devices, in order; None as `ids_of`.

    Devices are numbered replica * partitions + partition; each is in one group. Source: the modes of
    `mlirhlo.interp.ops.collectives`.
    """
    ids = ids_of(op, around)
    if ids is None:
        return None
    parts = range(around.partitions)
    match group_mode(op):
        case GroupMode.FLATTENED_ID:
            return ids
        case GroupMode.CROSS_REPLICA:
            found = [[r * len(parts) + p for r in group] for group in ids for p in parts]
        case GroupMode.CROSS_PARTITION:
            replicas = range(around.replicas)
            found = [[r * len(parts) + p for p in group] for group in ids for r in replicas]
        case GroupMode.CROSS_REPLICA_AND_PARTITION:
            found = [[r * len(parts) + p for r in group for p in parts] for group in ids]
    return tuple(map(tuple, found))


def reduction_of(op: Instruction, around: Surroundings) -> str | None:
    """What an all-reduce or reduce-scatter does, as an opcode; None for anything unusual."""
    name = cast(str, getattr(op, "to_apply", ""))
    if not name:
        return None
    # A pass may have added it.
    return opcode_of(around.computations.get(name) or around.module.by_name()[name])


_NOT_COMPARED = properties_of(Role.PROVENANCE, Role.PLACEMENT)


def key_of(op: Instruction, around: Surroundings) -> Hashable:
    """Equal for collectives that can be one: same opcode, groups, mode and reduction."""
    left_out = {"channel_id", "to_apply", *_NOT_COMPARED}
    own = tuple(sorted((k, str(v)) for k, v in op.properties.items() if k not in left_out))
    reduction: str | None = None
    if "to_apply" in op.properties:
        reduction = reduction_of(op, around) or str(op.properties["to_apply"])
    return (op.opcode.name, own, "channel_id" in op.properties, reduction)


def next_channel(module: HloModule) -> Callable[[], Any]:
    """Channel ids that no instruction has."""
    used = [getattr(op, "channel_id", None) or 0 for op in module.instructions]
    last = max(used, default=0)

    def take() -> Any:
        nonlocal last
        last += 1
        return integer(last)

    return take


def by_device(value: SSAValue, around: Surroundings) -> Sequence[int] | None:
    """The integer that a scalar has on each device, where it follows from its numbers alone."""
    found = _numbers(value, around, 0)
    return None if found is None else [int(n) for n in found[:, 0]]


_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def _numbers(value: SSAValue, around: Surroundings, depth: int) -> Any | None:
    """An array of rows, one a device; None when it depends on anything else."""
    op, count = value.owner, around.replicas * around.partitions
    if not isinstance(op, Instruction) or depth > 32 or not isinstance(op.shape, ArrayShape):
        return None
    if op.shape.element_type.is_float or op.shape.element_type.is_complex:
        return None
    if isinstance(op, ConstantOp):
        if op.literal is None or op.literal.is_elided or op.shape.element_count > 1 << 16:
            return None
        flat = op.literal.array.astype(np.int64).reshape(1, -1)
        return np.broadcast_to(flat, (count, flat.shape[1]))
    name = op.opcode.name
    if isinstance(op, IotaOp) and op.shape.rank == 1:
        return np.broadcast_to(np.arange(op.shape.element_count), (count, op.shape.element_count))
    if name in ("partition-id", "replica-id"):
        devices = np.arange(count).reshape(count, 1)
        is_partition = name == "partition-id"
        return devices % around.partitions if is_partition else devices // around.partitions
    operands = [_numbers(v, around, depth + 1) for v in op.inputs]
    if any(o is None for o in operands):
        return None
    known = cast("list[Any]", operands)
    if name in ("convert", "reshape", "copy"):
        return known[0]
    if name in _TWO and op.shape.element_count == 1:
        return _TWO[name](known[0], known[1])
    if name in ("divide", "remainder") and op.shape.element_count == 1:
        if (known[1] <= 0).any() or (known[0] < 0).any():
            return None
        return known[0] // known[1] if name == "divide" else known[0] % known[1]
    if isinstance(op, DynamicSliceOp) and op.shape.rank == 1 and op.shape.element_count == 1:
        places = np.clip(known[1][:, 0], 0, known[0].shape[1] - 1)
        return known[0][np.arange(count), places].reshape(count, 1)
    return None
