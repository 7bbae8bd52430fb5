"""XLA:TPU's asynchronous collectives, each spread over several fusions so that it runs beside their work.

The first fusion ends in `AsyncCollectiveStart`, whose operand is the collective; its result holds what
the collective reads, what it gives, and counters. The fusions after it hand these on and hold the
collective once more; `AsyncCollectiveDone`, in the last one, gives the result. Here each fusion that holds
the collective runs it whole, and the counters stay zero.
Source: operands and results of these calls in modules that libtpu compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls import computes, unfit
from mlirhlo.interp.registry import READS_MORE, Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


def _is_collective(value: SSAValue) -> bool:
    return isinstance(value.owner, Instruction) and value.owner.opcode.collective


def _read_by_collective(op: CustomCallOp) -> Sequence[SSAValue]:
    """What the collective that a start is given reads."""
    if len(op.inputs) != 1 or not _is_collective(op.inputs[0]):
        return ()
    return cast(Instruction, op.inputs[0].owner).inputs


READS_MORE["AsyncCollectiveStart"] = _read_by_collective


@computes("AsyncCollectiveStart")
def async_collective_start(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """What the collective reads, its results, zeros. Raises `HloError` HLO0355 where the operand is no
    collective, or the result is no tuple with room for these.
    """
    if not isinstance(op.shape, TupleShape) or len(inputs) < 2:
        raise unfit(op, "its operand is not a collective, or its result not a tuple")
    given = cast(Value, inputs[0])
    parts: list[Value] = [*inputs[1:], *(given if isinstance(given, tuple) else (given,))]
    counters = op.shape.elements[len(parts) :]
    if len(op.shape.elements) < len(parts) or not all(isinstance(s, ArrayShape) for s in counters):
        raise unfit(op, f"{op.shape} does not hold {len(parts)} arrays, and counters")
    return (*parts, *(_zeros(cast(ArrayShape, shape)) for shape in counters))


def _zeros(shape: ArrayShape) -> Array:
    return np.zeros(shape.dimensions, shape.element_type.dtype)


@computes("AsyncCollectiveDone")
def async_collective_done(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The result of the collective among the operands. Raises `HloError` HLO0355 where none is one."""
    for value, given in zip(inputs, op.inputs, strict=True):
        if _is_collective(given):
            return cast(Value, value)
    raise unfit(op, "none of its operands is a collective")
