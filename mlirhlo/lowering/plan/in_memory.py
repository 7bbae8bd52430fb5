"""What of a value stands in memory, and what Python holds."""

from __future__ import annotations

from typing import cast

from mlirhlo.dialects.hlo.element_types import Kind
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, BufferShape, Shape, TokenShape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.hlo_to_loops.elements import buffer_type
from mlirhlo.lowering.memory_order import byte_size as byte_size
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.lowering.plan.steps import Buffer, Held, Tree, held


def in_memory(shape: Shape) -> ArrayShape | None:
    """The array that stands in memory for a value of that shape; None for what Python holds."""
    if isinstance(shape, BufferShape):
        shape = shape.element
    return shape if isinstance(shape, ArrayShape) and not shape.is_dynamic else None


def is_held(value: Tree | Shape) -> bool:
    """Whether Python holds a value, or would hold one of that shape."""
    if isinstance(value, (Buffer, Held, tuple)):
        return any(True for _ in held(value))
    if isinstance(value, TupleShape):
        return any(map(is_held, value.elements))
    return not isinstance(value, TokenShape) and in_memory(value) is None


def crops(op: Instruction) -> bool:
    """Whether this is a bitcast that leaves out the padding of tiles."""
    if op.opcode.name != "bitcast":
        return False
    before, after = (cast(ArrayShape, shape_of(v.type)) for v in (op.inputs[0], op.output))
    return byte_size(before) != byte_size(after)


def is_same_memory(op: Instruction) -> bool:
    """Whether a reshape, copy or bitcast-convert leaves the bytes where they are."""
    (operand,) = op.inputs
    before, after = (cast(ArrayShape, shape_of(v.type)) for v in (operand, op.output))
    if op.opcode.name == "copy":
        return buffer_type(before) == buffer_type(after) and before.layout == after.layout
    if op.opcode.name == "bitcast-convert":
        # Elements of less than a byte take one, pred and complex numbers stand in another way.
        types = [s.element_type for s in (before, after)]
        if any(t.bits % 8 or t.is_complex or t.kind is Kind.PRED for t in types):
            return False
    return all(physical_order(s) == tuple(range(s.rank)) for s in (before, after))


def physical_bytes(buffer: Buffer) -> bytes:
    """A constant as it stands in memory."""
    import numpy as np

    assert buffer.literal is not None
    values = buffer.literal.array
    return np.ascontiguousarray(values.transpose(physical_order(buffer.shape))).tobytes()
