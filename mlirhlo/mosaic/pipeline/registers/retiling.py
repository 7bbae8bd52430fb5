"""Words moved between layouts by the plans of the TPU compiler, where it has one of its own.

Source: what it writes for vectors in tiles of fewer rows, and for rows that are replicated.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.registers import explicit_shape
from mlirhlo.dialects.tpu.values import LANES, SUBLANES
from mlirhlo.mosaic.pipeline.building import attribute
from mlirhlo.mosaic.pipeline.registers.state import Part, Registers, flat, grid_of
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import SSAValue

    from mlirhlo.dialects.tpu.values import VectorLayout


def retiled(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue] | None:
    """The registers of words in `layout`; None where there is no plan for it."""
    before, shape = part.layout, explicit_shape(layout, shape_in(part.type))
    if layout.bits != 32 or shape is None or before.implicit != layout.implicit:
        return None
    if before.tiling == (1, LANES) and before.offsets == (0, 0):
        is_row = layout.tiling == (SUBLANES, LANES) and layout.offsets == (None, 0)
        return _rows_everywhere(state, part, layout) if is_row and shape[-2] == 1 else None
    rows, fewer = before.tiling[0], layout.tiling[0]
    starts = tuple(start or 0 for start in before.offsets)
    if fewer < rows and rows % fewer == 0 and (0, 0) == starts == layout.offsets:
        return _fewer_rows(state, part, layout)
    return None


def _rows_everywhere(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue]:
    """Each sublane of single rows, in all sublanes of a register of its own."""
    assert state.op is not None
    grid = grid_of(layout, part.type, state.op).shape
    old = grid_of(part.layout, part.type, state.op).shape
    found: list[SSAValue] = []
    for *lead, _, wide in product(*map(range, grid)):
        source = part.registers[flat((*lead, 0, wide // SUBLANES), old)]
        rows = ", ".join([str(wide % SUBLANES)] * SUBLANES)
        places = {
            "indices": attribute(f"array<i32: {rows}>"),
            "dimension": attribute("0 : i32"),
        }
        found.append(state.emit("tpu.gather", (source,), source.type, places))
    return found


def _fewer_rows(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue]:
    """Tiles of fewer rows, of which a register has more side by side.

    Every register is turned once, so that its tiles are where some register wants them; a register is
    picked from them by halves, and turned to its beginning.
    """
    assert state.op is not None
    old = grid_of(part.layout, part.type, state.op).shape
    new = grid_of(layout, part.type, state.op).shape
    tiles, side = layout.tiles_a_register, part.layout.tiles_a_register
    height, big = SUBLANES // tiles, SUBLANES // side
    factor = part.layout.tiling[0] // layout.tiling[0]
    turned: dict[tuple[int, ...], SSAValue] = {}
    for *lead, column in product(*map(range, (*old[:-1], old[-1] * side))):
        index = (*lead, column // side)
        amount = (column % tiles * height - column % side * big) % SUBLANES
        source = part.registers[flat(index, old)]
        turned[(*lead, column)] = state.turned(source, amount, 0) if amount else source
    found: list[SSAValue] = []
    for *lead, row, column in product(*map(range, new)):
        begin = row % factor * height
        last = min((column + 1) * tiles, old[-1] * side)
        given = [turned[(*lead, row // factor, at)] for at in range(column * tiles, last)]
        value = _picked(state, given, begin, height)
        found.append(state.turned(value, SUBLANES - begin, 0) if begin else value)
    return found


def _picked(state: Registers, given: Sequence[SSAValue], begin: int, height: int) -> SSAValue:
    """Tiles from one register after another, the first at sublane `begin`, around the end."""
    if len(given) == 1:
        return given[0]
    middle = (len(given) + 1) // 2
    after = (begin + middle * height) % SUBLANES
    left = _picked(state, given[:middle], begin, height)
    right = _picked(state, given[middle:], after, height)
    if begin < after:
        mask = state.box((begin, after), (0, LANES))
        return state.emit("arith.select", (mask, left, right), left.type)
    mask = state.box((after, begin), (0, LANES))
    return state.emit("arith.select", (mask, right, left), left.type)
