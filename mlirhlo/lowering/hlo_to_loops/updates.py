"""dynamic-update-slice, alone or at the root of a fusion: the slice is written, the rest stays.

The result begins as the operand, which costs nothing where both are one buffer. An update that reads the
operand elsewhere than where it writes is computed to its end before any of it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import ComputationOp, DynamicUpdateSliceOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import NOALIAS, FunctionBuilder
from mlirhlo.lowering.hlo_to_loops.array_kernel import start_as
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, buffer_type, physical_order
from mlirhlo.lowering.hlo_to_loops.kernels import Computations, builds, builds_fusions
from mlirhlo.lowering.hlo_to_loops.loop_kernels import array, element_loops, lanes_for, store
from mlirhlo.lowering.hlo_to_loops.movement import start_index
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.work import estimated_ns


@builds("dynamic-update-slice")
def dynamic_update_slice(name: str, op: Any) -> FuncOp:
    """The kernel of the instruction alone."""
    return _kernel(name, op, op.inputs)


@builds_fusions
def update_fusion(
    name: str, computation: ComputationOp, computations: Computations
) -> FuncOp | None:
    """The kernel of a fusion whose root updates a parameter; None for any other."""
    del computations
    root = computation.root
    operands = [p.output for p in computation.parameters]
    arrays = all(isinstance(shape_of(v.type), ArrayShape) for v in operands)
    if not isinstance(root, DynamicUpdateSliceOp) or root.inputs[0] not in operands or not arrays:
        return None
    return _kernel(name, root, operands)


def _kernel(name: str, op: DynamicUpdateSliceOp, operands: Sequence[SSAValue]) -> FuncOp:
    target, update, *starts = op.inputs
    shapes = [*map(array, operands), array(op.output)]
    b = FunctionBuilder(
        name,
        [buffer_type(s) for s in shapes],
        argument_attributes=[{NOALIAS: UnitAttr()} for _ in shapes],
    )
    *sources, result = b.arguments
    buffers = dict(zip(operands, sources, strict=False))
    outer = Elements(Places(b, 0), buffers)
    sizes, taken = array(target).dimensions, array(update).dimensions
    # Read before anything is written: they may come out of the operand.
    first = [
        start_index(outer, s, n - m) if n != m else 0
        for s, n, m in zip(starts, sizes, taken, strict=True)
    ]
    at = list(operands).index(target)
    start_as(b, at, len(operands))
    if _is_read_where_written(op):
        b.updates(at, len(operands))
    if 0 in taken:
        return b.finish()
    shape, order = array(op.output), physical_order(array(op.output))
    block = ArrayShape(shape.element_type, tuple(taken[d] for d in order))

    def computed(indices: Sequence[Coordinate], lanes: int, mask: SSAValue | None) -> Value:
        place = [Coordinate(0)] * len(order)
        for index, d in zip(indices, order, strict=True):
            place[d] = index
        return Elements(Places(b, lanes, mask), buffers).at(update, place)

    def written(
        value: Value, indices: Sequence[Coordinate], lanes: int, mask: SSAValue | None
    ) -> None:
        at = [b.add(first[d], index.base) for index, d in zip(indices, order, strict=True)]
        store(b, result, at, value, shape, lanes, mask)

    lanes = lanes_for([array(update), *map(array, _reached(update, operands))])
    work = estimated_ns([update], set(operands) - {target})
    if _is_read_where_written(op):
        element_loops(
            b, block.dimensions, lanes, work, lambda i, n, m: written(computed(i, n, m), i, n, m)
        )
        return b.finish()
    size = max(block.element_count * block.element_type.byte_size, 1)
    room = b.emit(memref.ViewOp, [b.workspace(size), b.index(0)], buffer_type(block))
    element_loops(
        b,
        block.dimensions,
        lanes,
        work,
        lambda i, n, m: store(b, room, [c.base for c in i], computed(i, n, m), block, n, m),
    )
    element_loops(
        b,
        block.dimensions,
        lanes_for([block]),
        estimated_ns([update], [update]),
        lambda i, n, m: written(Places(b, n, m).load(room, block, i), i, n, m),
    )
    return b.finish()


def _reached(value: SSAValue, ends: Sequence[SSAValue]) -> list[SSAValue]:
    """Arrays that a value is computed from, up to `ends`."""
    found: dict[SSAValue, None] = {}
    stack = [value]
    while stack:
        value = stack.pop()
        if value in found:
            continue
        found[value] = None
        if value not in ends and isinstance(value.owner, Instruction):
            stack += value.owner.inputs
    return [v for v in found if isinstance(shape_of(v.type), ArrayShape)]


def _is_read_where_written(op: DynamicUpdateSliceOp) -> bool:
    """Whether the update reads the operand only at the places that it writes, if at all."""
    target, update, *starts = op.inputs
    stack, seen = [update], {update}
    while stack:
        value = stack.pop()
        if value is target:
            return False
        inner = cast(Instruction, value.owner)
        if inner.opcode.name == "parameter":
            continue
        name, inputs = inner.opcode.name, list(inner.inputs)
        if (
            name == "dynamic-slice"
            and inputs[0] is target
            and inputs[1:] == starts
            and array(value).dimensions == array(update).dimensions
        ):
            continue
        if not inner.opcode.elementwise and target in _reached(value, [target]):
            return False
        new = [v for v in inputs if v not in seen]
        seen.update(new)
        stack += new
    return True
