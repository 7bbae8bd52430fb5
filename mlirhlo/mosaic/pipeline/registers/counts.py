"""`tpu.iota`: counts within a register, and where each register begins."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i32

from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import integers_of
from mlirhlo.mosaic.pipeline.building import attribute
from mlirhlo.mosaic.pipeline.registers.elementwise import narrowed
from mlirhlo.mosaic.pipeline.registers.moving import relaid
from mlirhlo.mosaic.pipeline.registers.shapes import explicit
from mlirhlo.mosaic.pipeline.registers.state import (
    Part,
    Registers,
    grid_of,
    indices_of,
    layout_out,
    packing_of,
    register_type,
    typed,
)
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation, SSAValue

    Made = Sequence[Sequence[SSAValue]]


def iota(op: Operation, state: Registers) -> Made:
    """Row-major counts of some dimensions: of a register's rows and lanes, and its own beginning."""
    type_, layout = op.results[0].type, layout_out(op)
    shape, dims = shape_in(type_), integers_of(op, "dimensions") or ()
    rows = SUBLANES * packing_of(layout)
    counted = layout
    if layout.tiling != (rows, LANES):
        counted = VectorLayout(layout.bits, (0, 0), (rows, LANES), layout.implicit)
    steps = [0] * len(shape)
    step = 1
    for dim in reversed(dims):
        steps[dim] = step
        step *= shape[dim]
    by = explicit(steps, counted.implicit)
    places = explicit([dim + 1 for dim in range(len(shape))], counted.implicit)
    order = [places.index(dim + 1) for dim in dims]
    # Rows of narrow elements are counted as words, and packed.
    packing = packing_of(layout)
    is_packed = packing > 1 and by[-2] > 0
    register = typed(i32, 1) if is_packed else register_type(counted, type_)
    inner = _within(state, by[-2], by[-1], register)
    parts: list[SSAValue | None] = [inner]
    if is_packed:
        assert inner is not None
        parts = [
            state.emit(
                "arith.addi", (inner, state.splat(str(at * SUBLANES * by[-2]), register)), register
            )
            for at in range(packing)
        ]
    grid = grid_of(counted, type_, op).shape
    units = [*(1,) * (len(grid) - 2), rows, LANES]
    starts = [0] * (len(grid) - 2) + [offset or 0 for offset in counted.offsets]
    made: dict[tuple[int, ...], SSAValue] = {}
    for index in product(*(range(grid[dim]) for dim in order)):
        begin = sum(
            (at * units[dim] - starts[dim]) * by[dim] for dim, at in zip(order, index, strict=True)
        )
        start = state.splat(str(begin), register)
        words = [
            start if part is None else state.emit("arith.addi", (start, part), register)
            for part in parts
        ]
        made[index] = narrowed(state, words, register_type(counted, type_))
    registers = [made[tuple(at[dim] for dim in order)] for at in indices_of(grid)]
    return [relaid(state, Part(registers, counted, type_), layout)]


def _within(state: Registers, rows: int, lanes: int, register: Attribute) -> SSAValue | None:
    """What the places in a register count, by a step for rows and one for lanes; None for nothing."""
    found: SSAValue | None = None
    sides = [("0", rows), ("1", lanes)]
    if lanes and rows == lanes * LANES:
        sides = [("0, 1", lanes)]
    for dims, step in sides:
        if step == 0:
            continue
        order = {"dimensions": attribute(f"array<i32: {dims}>")}
        count = state.emit("tpu.iota", (), register, order)
        count = state.emit("arith.muli", (count, state.splat(str(step), register)), register)
        found = count if found is None else state.emit("arith.addi", (found, count), register)
    return found
