"""Matrix products: blocks of 128 by 128 of the right side, with zeros where an operand has no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import attribute_of, lists_of
from mlirhlo.mosaic.pipeline.building import element_of, vector_type
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.registers.bounds import Bounds, bounds_of
from mlirhlo.mosaic.pipeline.registers.elementwise import attributes_of
from mlirhlo.mosaic.pipeline.registers.moving import relaid, undefined
from mlirhlo.mosaic.pipeline.registers.shapes import part_of
from mlirhlo.mosaic.pipeline.registers.state import (
    Part,
    Registers,
    grid_of,
    indices_of,
    layout_out,
    packing_of,
    register_type,
    word_type,
)
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation, SSAValue

    Made = Sequence[Sequence[SSAValue]]


def matmul(op: Operation, state: Registers) -> Made:
    """acc + lhs · rhs, as many columns of the result after another as a matrix unit has, and as much of the
    contraction at a time.

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
    nothing = [undefined(state, register_type(part.layout, part.type)) for part in sides]
    lhs = _contracted(state, op, lhs, along_lanes=True)
    rhs = _contracted(state, op, rhs, along_lanes=is_flipped)
    unit = state.mxu
    blocks = [
        _block(state, op, lhs, (0, deep), height, nothing[0]) for deep in range(-(-depth // unit))
    ]
    column = vector_type((height, unit), element_of(acc.type))
    columns: list[list[SSAValue]] = []
    for wide in range(-(-width // unit)):
        made: list[SSAValue] = []
        for deep, left in enumerate(blocks):
            at = (wide, deep) if is_flipped else (deep, wide)
            right = _block(state, op, rhs, at, unit, nothing[1])
            if made:
                total = state.rolled(made, column, acc.layout)
            else:
                total = _block(state, op, acc, (0, wide), height, nothing[2])
            total = state.emit("tpu.matmul", (left, right, total), total.type, attributes)
            made = state.of(total, acc.layout)
        columns.append(made)
    grid = grid_of(acc.layout, op.results[0].type, op).shape
    side = unit // LANES
    found = [
        columns[wide // side][high * side + wide % side]
        for high in range(grid[0])
        for wide in range(grid[1])
    ]
    result = Part(found, acc.layout, op.results[0].type)
    return [relaid(state, result, layout_out(op))]


def _whole(state: Registers, part: Part) -> Part:
    """The operand in whole registers."""
    layout = VectorLayout(part.layout.bits, (0, 0), (SUBLANES * packing_of(part.layout), LANES))
    return Part(relaid(state, part, layout), layout, part.type)


def _contracted(state: Registers, op: Operation, part: Part, *, along_lanes: bool) -> Part:
    """The operand with zeros where its last registers have no more of the contraction."""
    zero = undefined(state, register_type(part.layout, part.type))
    grid = grid_of(part.layout, part.type, op).shape
    dim = 1 if along_lanes else 0
    bounds = [bounds_of(part.layout, part.type, at, op) for at in indices_of(grid)]
    registers = list(part.registers)
    for number, (at, one) in enumerate(zip(indices_of(grid), bounds, strict=True)):
        if at[dim] < grid[dim] - 1:
            continue
        whole = (0, LANES if along_lanes else part.layout.tiling[0])
        if (one.lanes if along_lanes else one.rows) == whole:
            continue
        everything = (0, part.layout.tiling[0]), (0, LANES)
        box = (everything[0], one.lanes) if along_lanes else (one.rows, everything[1])
        mask = Bounds(part.layout, *box).mask(state)
        sides = [registers[number], zero]
        if shape_in(mask.type) != shape_in(zero.type):
            # A mask of words picks words.
            sides = [state.emit("tpu.bitcast_vreg", (side,), word_type()) for side in sides]
        chosen = state.emit("arith.select", (mask, *sides), sides[0].type)
        registers[number] = state.cast(chosen, zero.type)
    return Part(registers, part.layout, part.type)


def _block(
    state: Registers,
    op: Operation,
    part: Part,
    at: tuple[int, int],
    height: int,
    nothing: SSAValue,
) -> SSAValue:
    """`height` rows and as many lanes as a matrix unit has of an operand, rolled; `nothing` where it has
    no more registers."""
    each = SUBLANES * packing_of(part.layout)
    grid = grid_of(part.layout, part.type, op).shape
    side = state.mxu // LANES
    given: list[SSAValue] = []
    for number in range(height // each):
        row = at[0] * (state.mxu // each) + number
        for lane in range(at[1] * side, (at[1] + 1) * side):
            is_there = row < grid[0] and lane < grid[1]
            given.append(part.registers[row * grid[1] + lane] if is_there else nothing)
    block = vector_type((height, state.mxu), element_of(part.type))
    return state.rolled(given, block, part.layout)
