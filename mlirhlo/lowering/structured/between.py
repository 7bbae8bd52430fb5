"""The kernel between values and the operands that they are computed from.

Instructions become ops one by one, but for chains of elementwise ones: these become one map at once, the one that
`structured-merge-maps` would make of a map for each, in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from mlirhlo.dialects.hlo.ops import BroadcastOp, ConstantOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import create_op, ops_of, region_of
from mlirhlo.dialects.structured import KernelOp, MapOp
from mlirhlo.dialects.structured.base import maps_attribute
from mlirhlo.dialects.structured.index_maps import simplified_map
from mlirhlo.lowering.memory_order import physical_dimensions, physical_order
from mlirhlo.lowering.structured.bodies import elementwise
from mlirhlo.lowering.structured.conversion import (
    Kernel,
    converters,
    in_memory_order,
    logical,
    scalar_constant,
    set_name,
    static_shape,
    tensor_of,
)
from mlirhlo.lowering.structured.merged_bodies import MergedBody


def structured_between(
    name: str, outputs: Sequence[tuple[SSAValue, int | None]], operands: Sequence[SSAValue]
) -> KernelOp:
    """The kernel `name` that computes values, or parts of that number of tuples, from operands.

    Raises `HloError` HLO0790 and HLO0791 for what has no structured form.
    """
    kernel = Kernel({})
    for operand in operands:
        kernel.values[operand] = kernel.arguments(operand)
    ops = _needed([value for value, _ in outputs], kernel)
    if len(outputs) == 1 and len(ops) > 1 and _is_chain(ops, kernel):
        kernel.finish([_chain(ops, kernel)])
        return KernelOp(name, kernel.block)
    for op in ops:
        kernel.values[op.output] = kernel.converted(op)
    kernel.finish([kernel.values[value][part or 0] for value, part in outputs])
    return KernelOp(name, kernel.block)


def _needed(outputs: Sequence[SSAValue], kernel: Kernel) -> list[Instruction]:
    """What computes the outputs from the values that a kernel has, in order."""
    needed: dict[SSAValue, None] = {}
    stack = list(outputs)
    while stack:
        value = stack.pop()
        if value not in kernel.values and value not in needed:
            needed[value] = None
            stack += cast(Instruction, value.owner).inputs
    ops: Sequence[Operation] = [cast(Operation, v.owner) for v in needed]
    if len(ops) > 1:
        block = cast(Block, ops[0].parent)
        ops = [op for op in ops_of(block) if op.results and op.results[0] in needed]
    return cast("list[Instruction]", list(ops))


def _is_chain(ops: Sequence[Instruction], kernel: Kernel) -> bool:
    """Whether each instruction computes an element of the last one's shape from elements at the same index, of
    the kernel's arrays also from broadcast ones."""
    shape = ops[-1].shape
    if not isinstance(shape, ArrayShape) or shape.is_dynamic or 0 in shape.dimensions:
        return False
    order, special = physical_order(shape), converters()
    for op in ops:
        if isinstance(op, ConstantOp):
            if scalar_constant(op.output) is None:
                return False
            continue
        if isinstance(op, BroadcastOp):
            operand = op.operand
            if operand not in kernel.values and scalar_constant(operand) is None:
                return False
        elif not op.opcode.elementwise or op.opcode.name in special:
            return False
        own = op.shape
        if not isinstance(own, ArrayShape) or own.dimensions != shape.dimensions:
            return False
        if own.is_dynamic or physical_order(own) != order:
            return False
    return not isinstance(ops[-1], ConstantOp | BroadcastOp)


def _chain(ops: Sequence[Instruction], kernel: Kernel) -> SSAValue:
    """The array that a chain computes: a map."""
    root = ops[-1]
    shape = static_shape(root.shape)
    sizes, indices = physical_dimensions(shape), logical(shape)
    body = MergedBody(sizes)
    computed: dict[SSAValue, SSAValue] = {}

    def element(value: SSAValue, at: Sequence[AffineExpr]) -> SSAValue:
        if value in computed:
            return computed[value]
        operand = static_shape(shape_of(value.type))
        read = AffineMap(
            len(sizes), 0, tuple(in_memory_order(operand, list(at) if operand.rank else []))
        )
        return body.read(kernel.array(value), simplified_map(read, sizes))

    for op in ops:
        literal = scalar_constant(op.output)
        if literal is not None:
            computed[op.output] = body.literal(literal)
        elif isinstance(op, BroadcastOp):
            computed[op.output] = element(op.operand, [indices[dim] for dim in op.dimensions])
        else:
            values = [element(value, indices) for value in op.inputs]
            computed[op.output] = elementwise(body, op, values)
    block = body.finish([computed[root.output]])
    inputs, maps = body.reads()
    types, regions = [tensor_of(shape)], [region_of(block)]
    map_op = create_op(MapOp, inputs, types, {"maps": maps_attribute(maps)}, regions=regions)
    (result,) = kernel.add(map_op)
    set_name(result, root.instruction_name)
    return result
