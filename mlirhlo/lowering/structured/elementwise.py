"""Elementwise instructions, functions of elements, and what leaves arrays as they are."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.control_flow import ConstantOp, OptBarrierOp
from mlirhlo.dialects.hlo.ops.data_movement import GetDimensionSizeOp, IotaOp
from mlirhlo.dialects.hlo.ops.reduction import MapOp
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.lowering.structured.bodies import Body, applied, elementwise
from mlirhlo.lowering.structured.conversion import (
    Kernel,
    converts,
    element_of,
    in_memory_order,
    logical,
    no_form,
    parts_of,
    static_shape,
    tensor_of,
)


@converts("elementwise")
def convert_elementwise(kernel: Kernel, op: Instruction) -> Sequence[SSAValue]:
    """One map; a scalar among arrays is read everywhere."""
    shape = static_shape(op.shape)
    indices = logical(shape)
    inputs = [kernel.array(value) for value in op.inputs]
    reads: list[list[AffineExpr]] = []
    for value in op.inputs:
        operand = static_shape(shape_of(value.type))
        reads.append(in_memory_order(operand, indices if operand.rank else []))
    body = Body([element_of(value) for value in inputs])
    block = body.finish([elementwise(body, op, body.arguments)])
    return [kernel.map(tensor_of(shape), inputs, reads, block)]


@converts("map")
def convert_map(kernel: Kernel, op: MapOp) -> Sequence[SSAValue]:
    """One map with the function as its body."""
    shape = static_shape(op.shape)
    indices = logical(shape)
    inputs = [kernel.array(value) for value in op.inputs]
    reads = [in_memory_order(static_shape(shape_of(v.type)), indices) for v in op.inputs]
    elements = [element_of(value) for value in inputs]
    body = applied(
        kernel.computations[op.to_apply], elements, kernel.computations, [shape.element_type]
    )
    return [kernel.map(tensor_of(shape), inputs, reads, body)]


@converts("constant")
def convert_constant(kernel: Kernel, op: ConstantOp) -> Sequence[SSAValue]:
    """A constant an array."""
    literal = op.literal
    if literal is None:
        raise no_form(op, "it has no value")
    return [kernel.constant(part) for part in (literal.elements or (literal,))]


@converts("opt-barrier")
def convert_barrier(kernel: Kernel, op: OptBarrierOp) -> Sequence[SSAValue]:
    """Its operand."""
    return kernel.values[op.operand]


@converts("domain", "add-dependency")
def convert_annotation(kernel: Kernel, op: Instruction) -> Sequence[SSAValue]:
    """Its first operand."""
    return kernel.values[op.inputs[0]]


@converts("get-dimension-size")
def convert_dimension_size(kernel: Kernel, op: GetDimensionSizeOp) -> Sequence[SSAValue]:
    """A constant: sizes are static."""
    size = static_shape(shape_of(op.operand.type)).dimensions[op.dimensions[0]]
    return [kernel.scalar(parts_of(op.shape)[0].element_type, size)]


@converts("iota")
def convert_iota(kernel: Kernel, op: IotaOp) -> Sequence[SSAValue]:
    """A map of the index."""
    shape = static_shape(op.shape)
    position = physical_order(shape).index(op.iota_dimension)
    body = Body([])
    wide = shape.dimensions[op.iota_dimension] > 1 << 31
    index = body.index(position, wide=wide)
    block = body.finish([body.convert(index, shape.element_type)])
    return [kernel.map(tensor_of(shape), [], [], block)]
