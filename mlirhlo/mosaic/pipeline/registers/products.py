"""Matrix products: blocks of 128 by 128 of the right side, with zeros where an operand has no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import attribute_of, lists_of
from mlirhlo.mosaic.pipeline.building import element_of, vector_type
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.registers.elementwise import attributes_of
from mlirhlo.mosaic.pipeline.registers.moving import Part, relaid, undefined
from mlirhlo.mosaic.pipeline.registers.shapes import part_of
from mlirhlo.mosaic.pipeline.registers.state import (
    Registers,
    grid_of,
    is_float,
    layout_out,
    packing_of,
    register_type,
)
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation, SSAValue

    Made = Sequence[Sequence[SSAValue]]


def matmul(op: Operation, state: Registers) -> Made:
    """acc + lhs · rhs, a column of 128 of the result after another, 128 of the contraction at a time.

    lhs is rows by contraction; rhs contraction by columns, or the other way round.
    """
    numbers: Any = attribute_of(op, "dimension_numbers")
    contracting = lists_of(numbers)[:2] if numbers is not None else ((1,), (0,))
    shapes = [shape_in(value.type) for value in op.operands]
    if any(len(shape) != 2 for shape in shapes) or contracting[0] != (1,):
        raise cannot(op, f"with dimension numbers {numbers}", "contract the last dimension of lhs")
    is_flipped = contracting[1] == (1,)
    sides = [_whole(state, part_of(op, state, at)) for at in range(3)]
    lhs, rhs, acc = sides
    depth, width, rows = shapes[0][1], shapes[2][1], shapes[2][0]
    step = max(SUBLANES * packing_of(part.layout) for part in (lhs, acc))
    height = -(-rows // step) * step
    attributes = {
        k: v for k, v in attributes_of(op).items() if k not in ("transpose_lhs", "transpose_rhs")
    }
    columns: list[list[SSAValue]] = []
    for wide in range(-(-width // LANES)):
        total: SSAValue | None = None
        for deep in range(-(-depth // LANES)):
            inside = min(depth - deep * LANES, LANES)
            left = _block(state, op, lhs, 0, deep, height, (rows, inside), in_lanes=True)
            # Of columns that are not the result's nothing is kept.
            if is_flipped:
                right = _block(state, op, rhs, wide, deep, LANES, (width, inside), in_lanes=True)
            else:
                right = _block(state, op, rhs, deep, wide, LANES, (inside, LANES), in_lanes=False)
            if total is None:
                total = _block(state, op, acc, 0, wide, height, (rows, LANES), in_lanes=None)
            total = state.emit("tpu.matmul", (left, right, total), total.type, attributes)
        assert total is not None
        columns.append(list(state.of(total, acc.layout)))
    grid = grid_of(acc.layout, op.results[0].type, op).shape
    made = [columns[wide][high] for high in range(grid[0]) for wide in range(grid[1])]
    result = Part(made, acc.layout, op.results[0].type)
    return [relaid(state, result, layout_out(op))]


def _whole(state: Registers, part: Part) -> Part:
    """The operand in whole registers."""
    layout = VectorLayout(part.layout.bits, (0, 0), (SUBLANES * packing_of(part.layout), LANES))
    return Part(relaid(state, part, layout), layout, part.type)


def _block(
    state: Registers,
    op: Operation,
    part: Part,
    high: int,
    wide: int,
    height: int,
    inside: tuple[int, int],
    *,
    in_lanes: bool | None,
) -> SSAValue:
    """`height` rows and 128 lanes of an operand, rolled; zeros where the contraction has no more.

    `in_lanes` says that the contraction goes along lanes; None that nothing is contracted.
    """
    packing = packing_of(part.layout)
    each = SUBLANES * packing
    grid = grid_of(part.layout, part.type, op).shape
    zero = "0.0" if is_float(part.type) else "0"
    type_ = register_type(part.layout, part.type)
    given: list[SSAValue] = []
    for at in range(height // each):
        row = high * (LANES // each) + at
        if row >= grid[0]:
            given.append(undefined(state, type_))
            continue
        register = part.registers[row * grid[1] + wide]
        mask: SSAValue | None = None
        if in_lanes is True:
            mask = state.inside(each, inside[1], packing)
        elif in_lanes is False:
            left = inside[0] - at * each
            if left <= 0:
                given.append(undefined(state, type_))
                continue
            mask = state.inside(left, LANES, packing)
        given.append(state.kept(register, mask, zero))
    block = vector_type((height, LANES), element_of(part.type))
    return state.rolled(given, block, part.layout)
