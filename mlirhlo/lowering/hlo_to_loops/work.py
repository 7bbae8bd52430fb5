"""How long a kernel's work takes on one core: enough to tell what is worth threads."""

from __future__ import annotations

from collections.abc import Container, Iterable
from math import prod
from typing import cast

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.structured import MapOp

BYTES_PER_NS = 8.0
ELEMENT_NS = 0.03
"""Of an instruction that is one instruction of the processor, in vectors."""
_FUNCTION_NS = 0.5
"""Of an elementary function."""


def estimated_ns(values: Iterable[SSAValue], operands: Container[SSAValue]) -> float:
    """Nanoseconds to compute `values` from `operands`."""
    total = 0.0
    seen: set[SSAValue] = set()
    stack = list(values)
    total += sum(_bytes(shape_of(v.type)) for v in stack) / BYTES_PER_NS
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in operands:
            total += _bytes(shape_of(value.type)) / BYTES_PER_NS
            continue
        op = cast(Operation, value.owner)
        if isinstance(op, Instruction):
            total += _points(op) * _cost(op)
            stack.extend(op.inputs)
            continue
        inner = op.body.block.ops if isinstance(op, MapOp) else ()
        costs = [_cost(i) for i in inner if isinstance(i, Instruction)]
        total += _elements(shape_of(value.type)) * (sum(costs) or ELEMENT_NS)
        stack.extend(op.operands)
    return total


def is_plain(op: Instruction) -> bool:
    """Whether an element of it is no more than one or two instructions of the processor."""
    return not op.opcode.elementwise or op.opcode.is_plain


def _cost(op: Instruction) -> float:
    return ELEMENT_NS if is_plain(op) else _FUNCTION_NS


def _points(op: Instruction) -> float:
    """How often an instruction computes something: of folds more often than it has elements."""
    result = _elements(op.shape)
    name = op.opcode.name
    if name == "dot":
        lhs = cast(ArrayShape, shape_of(op.inputs[0].type))
        contracted = cast("tuple[int, ...]", getattr(op, "lhs_contracting_dims", ()))
        return result * prod(lhs.dimensions[d] for d in contracted)
    if name == "convolution":
        kernel = cast(ArrayShape, shape_of(op.inputs[1].type))
        return result * kernel.element_count / max(1, min(kernel.dimensions, default=1))
    if name in ("reduce", "reduce-window"):
        return max(result, sum(_elements(shape_of(v.type)) for v in op.inputs))
    return result


def _elements(shape: Shape) -> float:
    if isinstance(shape, TupleShape):
        return sum(map(_elements, shape.elements))
    return shape.element_count if isinstance(shape, ArrayShape) else 0


def _bytes(shape: Shape) -> float:
    if isinstance(shape, TupleShape):
        return sum(map(_bytes, shape.elements))
    if not isinstance(shape, ArrayShape):
        return 0
    return shape.element_count * shape.element_type.byte_size
