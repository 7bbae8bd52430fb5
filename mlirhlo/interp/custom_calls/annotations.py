"""Custom calls that say something about a value and hand it on, and those that make a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.interp.custom_calls import computes, unfit
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.registry import Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


ANNOTATIONS = (
    "AssumeGatherIndicesInBound",
    "GatherScatterIndicesBitpacked",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "PinToDevice",
    "PinToDeviceSram",
    "PinToVmem",
    "ShardBarrierFrom",
    "ShardBarrierTo",
    "Sharding",
    "UnpinFromVmem",
    "annotate_device_placement",
    "inspect_sharding",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.PropagationBarrier",
    "xla.sdy.ShardingGroup",
)
"""Targets of calls that hand on their operand."""

NEW_BUFFERS = ("AllocateBuffer", "CreateBuffer", "AllocatePersistentBuffer")
"""Targets of calls that make memory without defined contents."""


@computes(*ANNOTATIONS)
def annotation(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The operands as they are; nothing where the call has no result."""
    if isinstance(op.shape, TupleShape):
        parts = op.shape.elements
        if len(inputs) == 1 and op.input_shapes[0] == op.shape:
            return inputs[0]
        return tuple(inputs) if len(inputs) == len(parts) else zeros(op.shape)
    return inputs[0] if inputs else zeros(op.shape)


@computes(*NEW_BUFFERS)
def new_buffer(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """A buffer without defined contents: zeros."""
    return zeros(op.shape)


@computes("GetRngSeed")
def rng_seed(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The seed that the run was given. Raises `HloError` HLO0355 but for `u64[]` of nothing, as XLA refuses it."""
    if inputs or str(op.shape) != "u64[]":
        raise unfit(op, f"it has no operands and gives u64[], not {op.shape}")
    return np.uint64(frame.machine.seed % 2**64)


@computes("Pin", "Unpin")
def pin(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """An array as a mutable buffer, or back: the same elements."""
    return inputs[0]
