"""Rules of collectives on what is the same on every device."""

from __future__ import annotations

from typing import TypeAlias

from mlirhlo.dialects.hlo.ops import (
    AddOp,
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    BroadcastOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    ReduceScatterOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    is_array,
    is_constant,
    is_scalar_broadcast,
)
from mlirhlo.rewrites.algsimp.mapping import reducer
from mlirhlo.rewrites.computations import module_of
from mlirhlo.rewrites.rules import Rewriter, rule

_Reducing: TypeAlias = AllReduceOp | ReduceScatterOp


def _uniform(op: Instruction) -> BroadcastOp | None:
    """The broadcast of a scalar constant that is the one operand of a collective on an array."""
    if not is_array(op) or len(op.inputs) != 1 or array(op).is_dynamic:
        return None
    spread = is_scalar_broadcast(op.inputs[0])
    return spread if spread is not None and is_constant(spread.operand) else None


@rule(AllGatherOp)
def all_gather_of_constant(op: AllGatherOp, rewriter: Rewriter) -> None:
    """all-gather(bc(C)) => bc(C)"""
    if (spread := _uniform(op)) is not None:
        b = Builder(op, rewriter)
        b.broadcast(spread.operand, (), op.shape)
        b.done()


@rule(AllToAllOp)
def all_to_all_of_constant(op: AllToAllOp, rewriter: Rewriter) -> None:
    """all-to-all(bc(C)) => bc(C)"""
    if (spread := _uniform(op)) is not None and array(spread).dimensions == array(op).dimensions:
        forward(op, rewriter, spread.output)


@rule(AllReduceOp, ReduceScatterOp)
def extreme_over_devices_of_constant(op: _Reducing, rewriter: Rewriter) -> None:
    """all-reduce_max(bc(C)) => bc(C); as well min, and reduce-scatter"""
    spread = _uniform(op)
    if spread is not None and reducer(op.to_apply, rewriter) in (MaximumOp, MinimumOp):
        b = Builder(op, rewriter)
        b.broadcast(spread.operand, (), op.shape)
        b.done()


@rule(AllReduceOp, ReduceScatterOp, contract="rounding")
def sum_over_devices_of_constant(op: _Reducing, rewriter: Rewriter) -> None:
    """all-reduce_add(bc(C)) => bc(C * n), n devices in each group; as well reduce-scatter"""
    spread = _uniform(op)
    if spread is None or reducer(op.to_apply, rewriter) is not AddOp:
        return
    count = group_size(op)
    if count is None or element(op).name == "pred":
        return
    b = Builder(op, rewriter)
    total = b.on(MultiplyOp, spread.operand, b.scalar(element(op), count))
    b.broadcast(total, (), op.shape)
    b.done()


def group_size(op: _Reducing) -> int | None:
    """Devices in each group of a collective; None where groups differ in size."""
    module = module_of(op)
    groups = op.replica_groups
    # With a channel but without global numbers, groups of replicas stand for all their partitions.
    every = op.channel_id is not None and not op.use_global_device_ids
    each = module.num_partitions if every else 1
    if groups is None or not groups.group_count:
        is_global = op.channel_id is not None
        return module.replica_count * (module.num_partitions if is_global else 1)
    return None if groups.group_size is None else groups.group_size * each


RULES = (
    all_gather_of_constant,
    all_to_all_of_constant,
    extreme_over_devices_of_constant,
    sum_over_devices_of_constant,
)
