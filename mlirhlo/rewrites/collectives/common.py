"""What the passes over collectives share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ConstantOp, DynamicSliceOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.spmd.reducers import opcode_of


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a rewrite asks about the module, looked up once."""

    module: HloModule
    computations: Mapping[str, ComputationOp]
    replicas: int
    partitions: int

    @staticmethod
    def of(module: HloModule) -> Surroundings:
        """Those of a module as it is."""
        return Surroundings(module, module.by_name(), module.replica_count, module.num_partitions)


def groups_of(op: Instruction, around: Surroundings) -> tuple[tuple[int, ...], ...] | None:
    """The groups of a collective as lists of partitions; None where ids are not partitions alone.

    That needs one replica and a channel; no groups at all mean one of all partitions.
    """
    if around.replicas != 1 or not getattr(op, "channel_id", None):
        return None
    if op.opcode.attribute("use_global_device_ids") is not None:
        if not getattr(op, "use_global_device_ids", False):
            return None
    groups = cast("ReplicaGroups | None", getattr(op, "replica_groups", None))
    listed = groups.groups() if groups is not None else ()
    return listed or (tuple(range(around.partitions)),)


def reduction_of(op: Instruction, around: Surroundings) -> str | None:
    """What an all-reduce or reduce-scatter does, as an opcode; None for anything unusual."""
    name = cast(str, getattr(op, "to_apply", ""))
    return opcode_of(around.computations[name]) if name else None


def key_of(op: Instruction, around: Surroundings) -> Hashable:
    """Equal for collectives that can be one: same opcode, groups, mode and reduction."""
    left_out = ("channel_id", "metadata", "to_apply", "sharding", "frontend_attributes")
    own = tuple(
        sorted((k, str(v)) for k, v in op.properties.items() if k not in (*left_out, "proto_id"))
    )
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


def by_partition(value: SSAValue, count: int) -> Sequence[int] | None:
    """The integer that a scalar has on each partition, where it follows from partition-id alone."""
    found = _numbers(value, count, 0)
    return None if found is None else [int(n) for n in found.reshape(count, -1)[:, 0]]


_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def _numbers(value: SSAValue, count: int, depth: int) -> Any | None:
    """An array of `count` rows, one a partition; None when it depends on anything else."""
    op = value.owner
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
    if name == "partition-id":
        return np.arange(count).reshape(count, 1)
    operands = [_numbers(v, count, depth + 1) for v in op.inputs]
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
