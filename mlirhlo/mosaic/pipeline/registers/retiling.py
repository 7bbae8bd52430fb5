"""Words moved between layouts by the plans of the TPU compiler, where it has one of its own.

Source: what it writes for vectors in tiles of fewer rows, and for rows that are replicated.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.attributes import PackFormatAttr
from mlirhlo.dialects.tpu.registers import explicit_shape
from mlirhlo.dialects.tpu.values import LANES, SCRATCH, SUBLANES
from mlirhlo.mosaic.pipeline.building import attribute
from mlirhlo.mosaic.pipeline.registers.shifting import picked
from mlirhlo.mosaic.pipeline.registers.state import (
    Part,
    Registers,
    flat,
    grid_of,
    packing_of,
    word_type,
)
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, SSAValue

    from mlirhlo.dialects.tpu.values import VectorLayout


def retiled(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue] | None:
    """The registers of words in `layout`; None where there is no plan for it."""
    before, shape = part.layout, explicit_shape(layout, shape_in(part.type))
    if before.implicit == (-2,) and before.tiling[0] == 1 and not layout.implicit:
        # Single rows are the same vectors one dimension lower.
        before = replace(before, implicit=())
        part = replace(part, layout=before)
    if shape is None or before.implicit != layout.implicit:
        return None
    if (0, 0) == before.offsets == layout.offsets and _is_taller(before, layout):
        return _more_rows(state, part, layout)
    packing = packing_of(layout)
    if packing > 1 and (0, 0) == before.offsets == layout.offsets:
        single = (1, LANES * packing)
        is_whole = layout.tiling[1] == LANES and layout.tiling[0] % packing == 0
        if before.tiling == single and is_whole and shape[-2] == 1:
            return _packed_rows_everywhere(state, part, layout)
        is_whole = before.tiling[1] == LANES and before.tiling[0] % packing == 0
        if layout.tiling == single and is_whole and shape[-2] == 1:
            return _single_rows(state, part, layout)
    if packing > 1 and shape[-2] == 1 and _is_row_of_columns(before, layout):
        return _columns_apart(state, part, layout)
    if packing == 1 and before.tiling == (1, LANES) and before.offsets == (0, 0):
        is_whole = layout.tiling == (SUBLANES, LANES)
        is_row = is_whole and layout.offsets[0] != 0 and layout.offsets[1] == 0
        return _rows_everywhere(state, part, layout) if is_row and shape[-2] == 1 else None
    rows, fewer = before.tiling[0], layout.tiling[0]
    starts = tuple(start or 0 for start in before.offsets)
    is_part = packing == 1 or (rows < SUBLANES * packing and fewer % packing == 0)
    fits = starts == (0, 0) or starts[0] + shape[-2] <= fewer
    if is_part and fewer < rows and rows % fewer == 0 and fits and starts == layout.offsets:
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


def _is_row_of_columns(before: VectorLayout, layout: VectorLayout) -> bool:
    """Whether a row lies in tiles of whole sublanes first, and then in whole registers at the same place."""
    packing = packing_of(layout)
    starts = before.offsets == layout.offsets and (layout.offsets[0] or 0) < before.tiling[0]
    is_whole = before.tiling[0] % packing == 0 and before.tiling[1] == LANES == layout.tiling[1]
    is_taller = before.tiling[0] < layout.tiling[0] == SUBLANES * packing
    return (
        starts and layout.offsets[1] == 0 and None not in layout.offsets and is_whole and is_taller
    )


def _columns_apart(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue]:
    """The tiles of a row, each in a register of its own: the first as it lies, others in all sublanes."""
    assert state.op is not None
    grid = grid_of(layout, part.type, state.op).shape
    old = grid_of(part.layout, part.type, state.op).shape
    tiles = part.layout.tiles_a_register
    found: list[SSAValue] = []
    for *lead, _, wide in product(*map(range, grid)):
        number, tile = divmod(wide, tiles)
        source = part.registers[flat((*lead, 0, number), old)]
        sublane = tile * (SUBLANES // tiles) + (layout.offsets[0] or 0) // packing_of(layout)
        found.append(_taken(state, source, [sublane] * SUBLANES) if tile else source)
    return found


def _packed_rows_everywhere(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue]:
    """128 narrow elements each of single rows, in all rows of a tile."""
    assert state.op is not None
    grid = grid_of(layout, part.type, state.op).shape
    old = grid_of(part.layout, part.type, state.op).shape
    tiles = layout.tiles_a_register
    height = SUBLANES // tiles
    known: dict[tuple[int, int], SSAValue] = {}
    found: list[SSAValue] = []
    for *lead, _, wide in product(*map(range, grid)):
        number, row = divmod(wide * tiles, SUBLANES)
        source, at = divmod(number, packing_of(layout))
        at_register = flat((*lead, 0, source), old)
        if (at_register, at) not in known:
            known[at_register, at] = _spread(state, part.registers[at_register], at)
        rows = [row + tile for tile in range(tiles) for _ in range(height)]
        found.append(_taken(state, known[at_register, at], rows))
    return found


def _spread(state: Registers, register: SSAValue, part: int) -> SSAValue:
    """Eight packed rows of a register, each in all rows of its own sublane."""
    packing = shape_in(register.type)[-1]
    words = _unpacked(state, register, part, "compressed")
    return _repacked(state, [words] * packing, register.type, "interleaved")


def _taken(state: Registers, register: SSAValue, rows: Sequence[int]) -> SSAValue:
    """The register with those sublanes."""
    if list(rows) == list(range(SUBLANES)):
        return register
    places = {
        "indices": attribute(f"array<i32: {', '.join(map(str, rows))}>"),
        "dimension": attribute("0 : i32"),
    }
    return state.emit("tpu.gather", (register,), register.type, places)


def _unpacked(state: Registers, register: SSAValue, part: int, kind: str) -> SSAValue:
    stated = {"index": attribute(f"{part} : i32"), "pack_format": PackFormatAttr(kind)}
    return state.emit("tpu.unpack_subelements", (register,), word_type(), stated)


def _repacked(state: Registers, words: Sequence[SSAValue], type_: Attribute, kind: str) -> SSAValue:
    places = ", ".join(map(str, range(len(words))))
    stated = {"pack_format": PackFormatAttr(kind), "positions": attribute(f"array<i32: {places}>")}
    return state.emit("tpu.pack_subelements", words, type_, stated)


def _single_rows(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue]:
    """A row in tiles, as single rows: its tiles are made sublanes first, whose upper halves go."""
    assert state.op is not None
    packing = packing_of(layout)
    low = replace(part.layout, tiling=(packing, LANES))
    rows = list(part.registers)
    if part.layout != low:
        rows = _fewer_rows(state, part, low)
    type_ = rows[0].type
    grid = grid_of(layout, part.type, state.op).shape
    old = grid_of(low, part.type, state.op).shape
    found: list[SSAValue] = []
    for *lead, _, wide in product(*map(range, grid)):
        last = min((wide + 1) * packing, old[-1])
        given = [rows[flat((*lead, 0, at), old)] for at in range(wide * packing, last)]
        made = _heads(state, given, type_)
        # The compiler goes there and back once more.
        again = [_spread(state, made, at) for at in range(len(given))]
        for one in again:
            state.emit("tpu.bitcast_vreg", (one,), word_type())
        found.append(_heads(state, again, type_))
    return found


def _heads(state: Registers, given: Sequence[SSAValue], type_: Attribute) -> SSAValue:
    """The first row of every sublane, one after another."""
    words = [_unpacked(state, one, 0, "interleaved") for one in given]
    return _repacked(state, words, type_, "compressed")


def _is_taller(before: VectorLayout, layout: VectorLayout) -> bool:
    """Whether tiles of whole sublanes have several times the rows afterwards, of narrow elements less
    than a register."""
    rows, more, packing = before.tiling[0], layout.tiling[0], packing_of(layout)
    is_whole = rows % packing == 0 and before.tiling[1] == layout.tiling[1] == LANES
    # Whole registers of narrow elements are packed from tiles of eight rows.
    is_part = packing == 1 or more < SUBLANES * packing or rows > SUBLANES
    return is_whole and is_part and more > rows and more % rows == 0


def _more_rows(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue]:
    """Tiles of more rows, by way of memory.

    Registers of one column of tiles go there sublane by sublane in turns, so that the rows of a taller
    tile lie next to each other; as many columns at a time as there is room for.
    """
    assert state.op is not None
    old = grid_of(part.layout, part.type, state.op).shape
    new = grid_of(layout, part.type, state.op).shape
    factor = layout.tiling[0] // part.layout.tiling[0]
    height, tiles = part.layout.tiling[0] // packing_of(layout), layout.tiles_a_register
    # Sublanes a whole register apart would meet in one bank.
    step = factor + (factor == SUBLANES)
    places = [
        (tile * height + row) * step + number
        for tile in range(tiles)
        for number in range(factor)
        for row in range(height)
    ]
    taken = {
        "sublane_mask": attribute(f"array<i1: {', '.join(['true'] * SUBLANES)}>"),
        "sublane_offsets": attribute(f"array<i32: {', '.join(map(str, places))}>"),
    }
    given = {
        "sublane_mask": taken["sublane_mask"],
        "sublane_stride": attribute(f"{step} : i32"),
        "operandSegmentSizes": attribute("array<i32: 1, 1, 2, 0>"),
    }
    memory = f"memref<{SCRATCH[0]}x{SCRATCH[1]}xi32, #tpu.tiled<(8,128),[1,1]>, "
    view = state.emit(
        "tpu.internal_scratch", (), attribute(memory + "#tpu.memory_space<vmem, tc>>")
    )
    lane = state.index(0)
    type_ = part.registers[0].type
    found: dict[tuple[int, ...], SSAValue] = {}
    there: dict[tuple[int, ...], SSAValue] = {}
    begin = 0

    def load() -> None:
        for at, first in there.items():
            words = state.emit("tpu.shuffled_load", (view, first, lane), word_type(), taken)
            found[at] = state.emit("tpu.bitcast_vreg", (words,), type_)
        there.clear()

    for *lead, high, wide in product(*map(range, (*new[:-1], old[-1]))):
        if begin + step * SUBLANES > SCRATCH[0]:
            load()
            begin = 0
        for column in range(wide * factor, min((wide + 1) * factor, new[-1])):
            first = begin + (column - wide * factor) * tiles * height * step
            there[(*lead, high, column)] = state.index(first)
        for number in range(min(factor, old[-2] - high * factor)):
            source = part.registers[flat((*lead, high * factor + number, wide), old)]
            words = state.emit("tpu.bitcast_vreg", (source,), word_type())
            state.effect("tpu.store", (words, view, state.index(begin + number), lane), given)
        begin += step * SUBLANES
    load()
    return [found[at] for at in product(*map(range, new))]


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
        return picked(state, state.box((begin, after), (0, LANES)), left, right)
    return picked(state, state.box((after, begin), (0, LANES)), right, left)
