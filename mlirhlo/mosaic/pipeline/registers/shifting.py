"""Vectors that begin elsewhere in a tile, or have their rows as lanes, by the TPU compiler's plans.

Source: its `apply-vector-layout`, by its open parts (columns) and by what it writes (rows).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.attributes import PackFormatAttr
from mlirhlo.dialects.tpu.registers import explicit_shape
from mlirhlo.dialects.tpu.values import LANES, SUBLANES
from mlirhlo.mosaic.pipeline.building import attribute, element_of
from mlirhlo.mosaic.pipeline.layouts import native_tiling
from mlirhlo.mosaic.pipeline.registers.bounds import Bounds
from mlirhlo.mosaic.pipeline.registers.state import (
    Part,
    Registers,
    flat,
    grid_of,
    indices_of,
    integer_type,
    packing_of,
    typed,
    word_type,
)
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, SSAValue

    from mlirhlo.dialects.tpu.values import VectorLayout

_WHOLE = (SUBLANES, LANES)


def shifted(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue] | None:
    """The registers of integers in `layout`; None where there is no plan for it."""
    before = part.layout
    if layout.bits == 32 and before.tiling == _WHOLE and before.implicit != layout.implicit:
        return _other_dimensions(state, part, layout)
    if (before.implicit, before.tiling) != (layout.implicit, layout.tiling):
        return None
    if None in (*before.offsets, *layout.offsets):
        return None
    if before.offsets[0] != layout.offsets[0]:
        if layout.tiling[1] != LANES or layout.tiling[0] % packing_of(layout):
            return None
        part = _rows(state, part, layout.offsets[0] or 0)
        if before.offsets[1] == layout.offsets[1]:
            return as_words(state, part.registers)
    if before.offsets[1] != layout.offsets[1]:
        if layout.tiling[1] != LANES or layout.tiling[0] % packing_of(layout):
            return None
        part = _columns(state, part, layout.offsets[1] or 0)
    return list(part.registers)


def _sides(state: Registers, part: Part, layout: VectorLayout) -> tuple[tuple[int, ...], ...]:
    """The registers along each dimension before and after."""
    assert state.op is not None
    return (
        grid_of(part.layout, part.type, state.op).shape,
        grid_of(layout, part.type, state.op).shape,
    )


def _rows(state: Registers, part: Part, begin: int) -> Part:
    """The same vector with its first row at `begin`.

    A register takes the upper rows of its tiles from the one before it, or itself, and the lower ones from
    the next.
    """
    start, height = part.layout.offsets[0] or 0, part.layout.tiling[0]
    amount = (begin - start) % height
    layout = replace(part.layout, offsets=(begin, part.layout.offsets[1]))
    old, new = _sides(state, part, layout)
    shape = explicit_shape(layout, shape_in(part.type))
    assert shape is not None
    type_ = part.registers[0].type
    # What leaves a tile below comes in again above.
    back = (SUBLANES - height // packing_of(layout)) % SUBLANES
    width = layout.lanes_a_register
    end = (layout.offsets[1] or 0) + shape[-1]

    def turned(at: tuple[int, ...], rows: range) -> SSAValue:
        """A register turned, for some of its rows."""
        same = state.emit("tpu.bitcast_vreg", (part.registers[flat(at, old)],), type_)
        return _rows_turned(state, same, amount, rows)

    found: list[SSAValue] = []
    for *lead, high, wide in indices_of(new):
        first, last = begin - high * height, begin + shape[-2] - high * height
        upper = high - 1 if begin > start else high
        made: SSAValue | None = None
        if first < amount:
            rows = range(max(first, 0), min(amount, last))
            made = state.turned(turned((*lead, upper, wide), rows), back, 0)
        if last > amount:
            rows = range(max(first, amount), min(height, last))
            lower = turned((*lead, upper + 1, wide), rows)
            lanes = min(-(-(end - wide * width) // LANES) * LANES, width)
            made = lower if made is None else _above(state, layout, (amount, lanes), made, lower)
        assert made is not None
        found.append(state.emit("tpu.bitcast_vreg", (made,), type_))
    return Part(found, layout, part.type)


def _rows_turned(state: Registers, register: SSAValue, amount: int, rows: range) -> SSAValue:
    """A register of which those rows are wanted, turned by an amount of rows, which may be part of a
    word's: then some of its elements go up in the word, and others down into the next."""
    shape = shape_in(register.type)
    packing = shape[2] if len(shape) == 3 else 1
    whole, up = divmod(amount, packing)
    if not up:
        return state.turned(register, whole, 0)
    bits = 32 // packing
    ways = (
        (
            "arith.shrui",
            packing - up,
            (whole + 1) % SUBLANES,
            any(row % packing < up for row in rows),
        ),
        ("arith.shli", up, whole, any(row % packing >= up for row in rows)),
    )
    found: list[SSAValue] = []
    for name, elements, sublanes, is_wanted in ways:
        if is_wanted:
            words = state.emit("tpu.bitcast_vreg", (register,), word_type())
            by = state.splat(str(elements * bits), word_type())
            words = state.emit(name, (words, by), word_type())
            one = state.emit("tpu.bitcast_vreg", (words,), register.type)
            found.append(state.turned(one, sublanes, 0))
    return found[0] if len(found) == 1 else state.emit("arith.ori", found, register.type)


def _above(
    state: Registers,
    layout: VectorLayout,
    bounds: tuple[int, int],
    first: SSAValue,
    second: SSAValue,
) -> SSAValue:
    """The upper rows of the tiles of one register, up to some lane, and the lower ones of another."""
    rows, lanes = bounds
    mask = Bounds(layout, (0, rows), (0, lanes)).mask(state)
    return picked(state, mask, first, second)


def picked(state: Registers, mask: SSAValue, first: SSAValue, second: SSAValue) -> SSAValue:
    """One register where a mask, which may be of words, is true, and another elsewhere."""
    if shape_in(mask.type) == shape_in(first.type):
        return state.emit("arith.select", (mask, first, second), first.type)
    pair = [state.emit("tpu.bitcast_vreg", (one,), word_type()) for one in (first, second)]
    words = state.emit("arith.select", (mask, *pair), word_type())
    return state.emit("tpu.bitcast_vreg", (words,), first.type)


def concatenated(
    state: Registers, parts: Sequence[Part], dim: int, type_: Attribute, layout: VectorLayout
) -> list[SSAValue] | None:
    """Whole registers of vectors that begin where the one before them ends; None for others.

    A register that holds the end of one and the beginning of another is picked from both by words.
    """
    assert state.op is not None
    tiling, rank = native_tiling(layout.bits), len(shape_in(type_))
    axis = dim - (rank - 2)
    if layout.tiling != tiling or layout.implicit or str(element_of(type_)) == "i1":
        return None
    if axis < 0 or layout.offsets[axis] != 0:
        return None
    made: dict[tuple[int, ...], SSAValue] = {}
    begin = 0
    later: list[tuple[tuple[int, ...], int, SSAValue]] = []
    for part in parts:
        number, offset = divmod(begin, tiling[axis])
        offsets = [layout.offsets[0], layout.offsets[1]]
        offsets[axis] = offset
        if part.layout != replace(layout, offsets=(offsets[0], offsets[1])):
            return None
        grid = grid_of(part.layout, part.type, state.op).shape
        for at, register in zip(indices_of(grid), part.registers, strict=True):
            later.append(((*at[:dim], at[dim] + number, *at[dim + 1 :]), offset, register))
        begin += shape_in(part.type)[dim]
    for at, offset, register in later:
        if at not in made:
            made[at] = register
            continue
        if axis == 0:
            made[at] = _above(state, layout, (offset, LANES), made[at], register)
        else:
            mask = state.box((0, SUBLANES), (0, offset))
            made[at] = picked(state, mask, made[at], register)
    return [made[at] for at in indices_of(grid_of(layout, type_, state.op).shape)]


def lanes_folded(
    state: Registers, part: Part, type_: Attribute, layout: VectorLayout
) -> list[SSAValue] | None:
    """Tiles side by side in a register as rows of one of 128 lanes, or the other way round; None for
    other reshapes.

    Row r of tile t of k is row r * k + t.
    """
    before, (narrow, wide) = part.layout, (shape_in(part.type), shape_in(type_))
    is_split = narrow[-1] > wide[-1]
    small, whole = (before, layout) if is_split else (layout, before)
    lanes = sorted((narrow[-1], wide[-1]))
    height, packing = small.tiling[0], packing_of(layout)
    if (
        before.bits != layout.bits
        or (before.implicit, layout.implicit) != ((), ())
        or (before.offsets, layout.offsets) != ((0, 0), (0, 0))
        or (whole.tiling, small.tiling[1]) != (native_tiling(layout.bits), LANES)
        or lanes != [LANES, LANES * (SUBLANES * packing // height)]
        or height in (1, SUBLANES * packing)
        or height % packing
    ):
        return None
    few, many = sorted((narrow[-2], wide[-2]))
    if narrow[:-2] != wide[:-2] and (many % whole.tiling[0] or few % height):
        return None
    count = SUBLANES * packing // height
    if packing > 1:
        return [_halves_folded(state, one, count, is_split=is_split) for one in part.registers]
    rows = [tile * height + row for row in range(height) for tile in range(count)]
    if not is_split:
        rows = [row * count + tile for tile in range(count) for row in range(height)]
    pattern = {"pattern": attribute(f"array<i32: {', '.join(map(str, rows))}>")}
    return [
        state.emit("tpu.sublane_shuffle", (one, one), one.type, pattern) for one in part.registers
    ]


def _halves_folded(state: Registers, register: SSAValue, count: int, *, is_split: bool) -> SSAValue:
    """Tiles of packed rows: the upper and the lower half of all rows become every other one, or the other
    way round, until there are `count` times as many rows."""
    formats = [PackFormatAttr(name) for name in ("compressed", "interleaved")]
    if not is_split:
        formats.reverse()
    final = register.type
    packing = shape_in(final)[-1]
    whole = typed(integer_type(32 // packing), packing)
    half = typed(integer_type(64 // packing), packing // 2)
    found = state.emit("tpu.bitcast_vreg", (register,), whole)
    for _ in range(count.bit_length() - 1):
        parts: list[SSAValue] = []
        for number in range(2):
            stated = {
                "index": attribute(f"{number} : i32"),
                "integer_extended": attribute("false"),
                "pack_format": formats[0],
            }
            parts.append(state.emit("tpu.unpack_subelements", (found,), half, stated))
        places = {"pack_format": formats[1], "positions": attribute("array<i32: 0, 1>")}
        found = state.emit("tpu.pack_subelements", parts, whole, places)
    return state.emit("tpu.bitcast_vreg", (found,), final)


def lanes_spread(
    state: Registers, part: Part, type_: Attribute, layout: VectorLayout
) -> list[SSAValue] | None:
    """Lanes as rows of one lane, which all lanes hold; None for other reshapes.

    The row is taken to all sublanes, of which each then spreads the lane that is its own.
    """
    assert state.op is not None
    before, shape = part.layout, shape_in(part.type)
    is_alone = before.implicit == (-2,)
    if (
        (before.bits, before.tiling, before.offsets) != (32, _WHOLE, (0, 0))
        or (layout.implicit, layout.tiling, layout.offsets) != ((), _WHOLE, (0, None))
        or shape_in(type_) != (*shape, 1)
        or not (is_alone or (before.implicit == () and len(shape) > 1))
        or shape[-1] > LANES
    ):
        return None
    old = grid_of(before, part.type, state.op).shape
    found: list[SSAValue] = []
    for *lead, high, _ in indices_of(grid_of(layout, type_, state.op).shape):
        box, row = (lead, 0) if is_alone else (lead[:-1], lead[-1])
        source = part.registers[flat((*box, row // SUBLANES, 0), old)]
        rows = ", ".join([str(row % SUBLANES)] * SUBLANES)
        places = {
            "indices": attribute(f"array<i32: {rows}>"),
            "dimension": attribute("0 : i32"),
        }
        everywhere = state.emit("tpu.gather", (source,), source.type, places)
        lane = {"lane": attribute(f"{high * SUBLANES} : i32")}
        found.append(state.emit("tpu.broadcast_in_sublanes", (everywhere,), everywhere.type, lane))
    return found


def _columns(state: Registers, part: Part, begin: int) -> Part:
    """The same vector with its first column at `begin`, counted through the tiles of a register.

    The lanes of all registers are turned; what leaves a tile goes on in the next one. A register has a
    left and a right part, of tiles that lie further down by one, each with upper tiles from the register
    before and lower ones from its own.
    """
    start = part.layout.offsets[1] or 0
    layout = replace(part.layout, offsets=(part.layout.offsets[0], begin))
    old, new = _sides(state, part, layout)
    shape = explicit_shape(layout, shape_in(part.type))
    assert shape is not None
    tiles, width = layout.tiles_a_register, layout.lanes_a_register
    height = SUBLANES // tiles
    split = (begin - start) % width
    before = -1 if begin > start else 0
    across, turn = divmod(split, LANES)
    downs = {"left": -(-split // LANES), "right": across}
    columns = {"left": (0, turn), "right": (turn, LANES)}
    inner = part.registers[0].type
    words = [state.cast(one, word_type()) for one in part.registers]
    if turn:
        words = [state.turned(one, turn, 1) for one in words]
    moved = {
        side: [state.turned(one, down * height % SUBLANES, 0) for one in words]
        if down * height % SUBLANES
        else words
        for side, down in downs.items()
    }
    masks: dict[str, SSAValue] = {}

    def chosen(kind: str, first: SSAValue | None, second: SSAValue | None) -> SSAValue | None:
        """The first where a mask of that kind is true."""
        if first is None or second is None:
            return second if first is None else first
        if kind not in masks:
            lanes = turn if kind == "both" else LANES
            masks[kind] = state.box((0, downs.get(kind, tiles) * height), (0, lanes))
        return state.emit("arith.select", (masks[kind], first, second), word_type())

    found: list[SSAValue] = []
    for *lead, high, wide in indices_of(new):
        first, last = begin - wide * width, begin + shape[-1] - wide * width
        sides: list[SSAValue | None] = []
        for side, (left, right) in columns.items():
            halves: list[SSAValue | None] = []
            for at, some in zip(
                (wide + before, wide + before + 1),
                (range(downs[side]), range(downs[side], tiles)),
                strict=True,
            ):
                has = left < right and any(
                    tile * LANES + left < last and tile * LANES + right > first for tile in some
                )
                index = flat((*lead, high, at), old) if has else 0
                halves.append(moved[side][index] if has else None)
            sides.append(chosen(side, *halves))
        made = chosen("both", *sides)
        assert made is not None
        found.append(made)
    return Part([state.cast(one, inner) for one in found], layout, part.type)


def as_words(state: Registers, registers: Sequence[SSAValue]) -> list[SSAValue]:
    """The same registers, by way of words, as the compiler has them before it moves lanes."""
    words = [state.cast(one, word_type()) for one in registers]
    return [state.cast(one, old.type) for one, old in zip(words, registers, strict=True)]


def _other_dimensions(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue] | None:
    """Rows of one lane become lanes of one row, and rows alone those of whole registers."""
    before = part.layout
    if before.implicit == (-1,) and before.offsets == (0, None):
        if shape_in(part.type)[-1] > LANES:
            return None
        part = _lanes_of_rows(state, part)
        if layout.implicit == (-2,) and layout.offsets == (0, 0):
            fits = len(part.registers) == len(indices_of(_sides(state, part, layout)[1]))
            return list(part.registers) if fits and len(shape_in(part.type)) == 1 else None
    is_alone = part.layout.implicit == (-2,) and part.layout.offsets in ((None, 0), (0, 0))
    is_whole = (layout.implicit, layout.tiling, layout.offsets) == ((), _WHOLE, (0, 0))
    return _gathered(state, part, layout) if is_alone and is_whole else None


def _lanes_of_rows(state: Registers, part: Part) -> Part:
    """A row, in all sublanes, of what all lanes hold in rows of their own."""
    layout = replace(part.layout, implicit=(-2,), offsets=(None, 0))
    old, _ = _sides(state, part, layout)
    inner = {"dimensions": attribute("array<i32: 0>")}
    count = {"dimensions": attribute("array<i32: 1>")}
    found: list[SSAValue] = []
    for lead in product(*map(range, old[:-2])):
        made: SSAValue | None = None
        for row in range(old[-2]):
            lane = state.emit("tpu.iota", (), word_type(), count)
            begin = state.splat(str(-row * SUBLANES), word_type())
            place = state.emit("arith.addi", (lane, begin), word_type())
            source = part.registers[flat((*lead, row, 0), old)]
            value = state.emit("tpu.dynamic_gather", (source, place), word_type(), inner)
            if made is not None:
                mask = state.box((0, SUBLANES), (row * SUBLANES, (row + 1) * SUBLANES))
                value = state.emit("arith.select", (mask, value, made), word_type())
            made = value
        assert made is not None
        found.append(made)
    return Part(found, layout, part.type)


def _gathered(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue]:
    """Rows that have registers of their own, one below the other."""
    old, new = _sides(state, part, layout)
    rows = shape_in(part.type)[-2]
    is_everywhere = part.layout.offsets[0] is None
    found: list[SSAValue] = []
    for *lead, high, wide in indices_of(new):
        made: SSAValue | None = None
        for row in range(min(rows - high * SUBLANES, SUBLANES)):
            source = part.registers[flat((*lead, high * SUBLANES + row, 0, wide), old)]
            value = state.turned(source, 0 if is_everywhere else row, 0)
            if made is not None:
                mask = state.box((row, row + 1), (0, LANES))
                value = state.emit("arith.select", (mask, value, made), word_type())
            made = value
        assert made is not None
        found.append(made)
    return found
