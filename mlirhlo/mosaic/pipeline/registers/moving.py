"""Elements moved from registers to registers, whatever the layouts of both.

A move is a table: for each place of the registers to be made, the place in the given ones that its
element comes from, or -1 where any value will do. Words that stay in their place cost nothing; others are
turned along sublanes and lanes, or gathered, and picked by masks. Narrow elements move as words where
whole words do, else they are unpacked to words first and packed last.
"""

# numpy states no types of what `divmod` and `indices` give.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.dialects.tpu.attributes import PackFormatAttr
from mlirhlo.dialects.tpu.registers import Places, register_grid
from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.pipeline.building import attribute, element_of, vector_type
from mlirhlo.mosaic.pipeline.registers.retiling import retiled
from mlirhlo.mosaic.pipeline.registers.shifting import as_words, shifted
from mlirhlo.mosaic.pipeline.registers.state import (
    Part,
    Registers,
    grid_of,
    integer_type,
    mask_type,
    packing_of,
    register_type,
    typed,
    word_type,
)
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

_WORDS = SUBLANES * LANES
_FEW_LANES = 3
"""Lanes that want one and the same lane from which on it is spread to all of them."""


def relaid(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue]:
    """The registers of the same vector in another layout.

    They stay where they hold the vector so too; one that is the same everywhere stands for all. Others
    are moved as integers of their width.
    """
    if part.layout == layout:
        return list(part.registers)
    assert state.op is not None
    count = grid_of(layout, part.type, state.op).count
    if count == len(part.registers) and part.layout.generalizes(layout, shape_in(part.type)):
        return list(part.registers)
    is_mask = str(element_of(part.type)) == "i1"
    size = np.prod(shape_in(part.type), dtype=int)
    is_splat = part.layout.offsets == (None, None) and part.layout.tiles_a_register == 1
    if is_splat and is_mask:
        type_ = register_type(layout, part.type)
        seen = [state.emit("tpu.mask_cast", (one,), type_) for one in dict.fromkeys(part.registers)]
        if len(seen) == 1:
            return seen * count
    if is_mask or is_splat or part.layout.bits != layout.bits:
        return moved(state, [part], np.arange(size), part.type, layout)
    bits = vector_type(shape_in(part.type), integer_type(layout.bits))
    type_ = register_type(layout, bits)
    seen = [state.emit("tpu.bitcast_vreg", (one,), type_) for one in part.registers]
    whole = Part(seen, part.layout, bits)
    made = _planned(state, whole, layout)
    if made is None:
        made = moved(state, [whole], np.arange(size), bits, layout)
    final = register_type(layout, part.type)
    return [state.emit("tpu.bitcast_vreg", (one,), final) for one in made]


def _planned(state: Registers, part: Part, layout: VectorLayout) -> list[SSAValue] | None:
    """The registers of integers in another layout by the compiler's plans: tiles first, then rows, then
    lanes; None where it has none that we know."""
    before = part.layout
    if before.tiling == layout.tiling or layout.bits == 32:
        plain = retiled(state, part, layout) or shifted(state, part, layout)
        if plain is not None or before.tiling == layout.tiling:
            return plain
    between = layout
    if None not in (*before.offsets, *layout.offsets):
        rows = (layout.offsets[0] or 0) - (before.offsets[0] or 0)
        # Whole small tiles are put where they belong at once.
        top = before.offsets[0] if rows % before.tiling[0] else layout.offsets[0]
        between = replace(layout, offsets=(top, before.offsets[1]))
    begins = zip(between.offsets, (layout.tiling[0], layout.lanes_a_register), strict=True)
    if any(at is not None and at >= size for at, size in begins):
        # It begins beyond a smaller tile.
        return None
    made = retiled(state, part, between)
    if made is None and layout.bits < 32:
        # Tiles of other heights have other rows in a word.
        is_cut = before.tiling[0] > layout.tiling[0]
        numbers = np.arange(np.prod(shape_in(part.type), dtype=int))
        if register_grid(between, shape_in(part.type)) is None:
            return None
        made = moved(state, [part], numbers, part.type, between, by_words=False, as_wanted=is_cut)
    if made is None:
        return None
    if between != layout:
        return shifted(state, Part(made, between, part.type), layout)
    return as_words(state, made) if layout.tiling[0] > 1 else made


def moved(
    state: Registers,
    parts: Sequence[Part],
    source: Any,
    type_: Attribute,
    layout: VectorLayout,
    *,
    by_words: bool = True,
    as_wanted: bool = False,
) -> list[SSAValue]:
    """The registers of a vector of `type_` in `layout`; narrow elements by words, where that is possible.

    `source` has for each of its elements the row-major number of the element it is, counted through all
    parts one after another. Parts have elements of one type.
    """
    bits = parts[0].layout.bits
    parts = [part if part.layout.bits == bits else _of_width(state, part, bits) for part in parts]
    table = table_of(state, parts, source, type_, layout, by_words=by_words)
    registers = [register for part in parts for register in part.registers]
    register = register_type(layout, type_)
    return assemble(state, registers, bits, table, register, by_words=by_words, as_wanted=as_wanted)


def _of_width(state: Registers, part: Part, bits: int) -> Part:
    """A mask of words of another width."""
    have = part.layout
    layout = VectorLayout(bits, (0, 0), (SUBLANES * 32 // bits, LANES), have.implicit)
    return Part(relaid(state, part, layout), layout, part.type)


def table_of(
    state: Registers,
    parts: Sequence[Part],
    source: Any,
    type_: Attribute,
    layout: VectorLayout,
    *,
    by_words: bool = True,
) -> Any:
    """The table of a move."""
    assert state.op is not None
    grid = grid_of(layout, type_, state.op)
    size = _WORDS * packing_of(layout)
    places, is_free = _places(state, parts)
    table = np.full(grid.count * size, -1, np.int64)
    wanted = np.asarray(source, np.int64).reshape(-1)
    table[grid.places.reshape(-1)] = places[wanted]
    free = np.zeros((2, grid.count * size), np.int64)
    free[:, grid.places.reshape(-1)] = is_free[:, wanted]
    shape = (grid.count, SUBLANES, LANES, packing_of(layout))
    table, free = table.reshape(shape), free.reshape(2, *shape)
    table, free = grid.repeated(table), np.stack([grid.repeated(one) for one in free])
    return _nearest(table, free, packing_of(parts[0].layout), by_words=by_words)


def _places(state: Registers, parts: Sequence[Part]) -> tuple[Places, Any]:
    """The places of all elements of the parts, of how many sublanes theirs may be any, and whether their
    lane may."""
    places: list[Places] = []
    free: list[Any] = []
    begin = 0
    assert state.op is not None
    for part in parts:
        grid = grid_of(part.layout, part.type, state.op)
        places.append(grid.places.reshape(-1) + begin)
        # Other sublanes of one tile hold the same, but not those of others.
        height = SUBLANES // grid.tiles if grid.replicated[0] else 0
        anywhere = np.array((height, grid.replicated[1]))
        free.append(np.broadcast_to(anywhere[:, None], (2, places[-1].size)))
        begin += grid.count * _WORDS * packing_of(part.layout)
    return np.concatenate(places), np.concatenate(free, axis=1)


def _nearest(table: Any, free: Any, old: int, *, by_words: bool) -> Any:
    """The table with sublanes and lanes that may be any those of the places to be made."""
    packing = table.shape[-1]
    _, sublane, lane, sub = np.indices(table.shape, sparse=True)
    number, place = np.divmod(table, _WORDS * old)
    row, rest = np.divmod(place, LANES * old)
    column, inner = np.divmod(rest, old)
    tall = np.maximum(free[0], 1)
    top = row // tall * tall
    if old == packing and by_words:
        row, inner = np.where(free[0], top + sublane % tall, row), np.where(free[0], sub, inner)
    elif old == 1:
        # A row of words becomes one of a register's several times as many rows.
        row = np.where(free[0], top + (sublane * packing + sub) % tall, row)
    else:
        # One of several times as many rows becomes a row of words.
        one = top * old + (sublane * packing + sub) % np.minimum(tall * old, SUBLANES)
        row, inner = np.where(free[0], one // old, row), np.where(free[0], one % old, inner)
    column = np.where(free[1], lane, column)
    nearest = ((number * SUBLANES + row) * LANES + column) * old + inner
    return np.where(table < 0, -1, nearest)


def assemble(
    state: Registers,
    registers: Sequence[SSAValue],
    bits: int,
    table: Any,
    type_: Attribute,
    *,
    by_words: bool = True,
    as_wanted: bool = False,
) -> list[SSAValue]:
    """Registers of `type_` by a table of places in `registers`, whose elements have `bits`.

    The table has the shape (registers, 8, 128, elements a word). Narrow elements are unpacked from one
    register after another, or `as_wanted` by those to be made.
    """
    packing = table.shape[-1]
    old = 32 // bits
    word, sub = table // old, table % old
    is_mask = str(element_of(type_)) == "i1"
    if old == packing and by_words:
        whole = _whole_words(table, word, sub)
        if whole is not None:
            mover = _Words(state, registers, is_mask)
            return [mover.register(one, type_) for one in whole]
    by_rows = rows_of(table, old)
    if is_mask and old == 1:
        masks = [_masks_packed(state, registers, one, type_) for one in by_rows]
        if all(one is not None for one in masks):
            return [one for one in masks if one is not None]
    wide: list[Any] = [None] * (len(registers) * old)
    wanted = dict.fromkeys(at for one in by_rows for part in one for at in used_parts(part))
    for at in wanted if as_wanted else sorted(wanted):
        wide[at] = unpacked(state, registers[at // old], at % old)
    made: dict[bytes, SSAValue] = {}
    for words, part in zip(parts_of(state, wide, by_rows), by_rows, strict=True):
        if part.tobytes() not in made:  # rows that are all the same are packed once
            made[part.tobytes()] = packed(state, words, type_)
    return [made[part.tobytes()] for part in by_rows]


def _masks_packed(
    state: Registers, registers: Sequence[SSAValue], parts: Any, type_: Attribute
) -> SSAValue | None:
    """The mask of narrow elements whose parts are whole masks of words; None for others."""
    own = np.arange(_WORDS).reshape(SUBLANES, LANES)
    given: list[SSAValue] = []
    for part in parts:
        known = part >= 0
        number, place = np.divmod(part, _WORDS)
        if (place != own)[known].any() or np.unique(number[known]).size > 1:
            return None
        if known.any():
            given.append(registers[int(number.max())])
        elif not given:
            return None
    if not given or (parts[: len(given)] < 0).all(axis=(1, 2)).any():
        return None
    positions = ", ".join(map(str, range(len(given))))
    places = {"positions": attribute(f"array<i32: {positions}>")}
    return state.emit("tpu.pack_vmsk", given, type_, places)


def rows_of(table: Any, old: int) -> Any:
    """A table of packed places as one of words: row r of a register is row r % 8 of its part r // 8.

    From (registers, 8, 128, elements a word) to (registers, parts, 8, 128).
    """
    number, place = np.divmod(table, _WORDS * old)
    sublane, rest = np.divmod(place, LANES * old)
    lane, sub = np.divmod(rest, old)
    row = sublane * old + sub
    part = number * old + row // SUBLANES
    in_words = np.where(table < 0, -1, (part * SUBLANES + row % SUBLANES) * LANES + lane)
    return np.moveaxis(in_words, 3, 2).reshape(-1, table.shape[-1], SUBLANES, LANES)


def used_parts(by_rows: Any) -> list[int]:
    """The numbers of the parts that a table takes from."""
    found: list[int] = np.unique(by_rows[by_rows >= 0] // _WORDS).tolist()
    return found


def parts_of(
    state: Registers, wide: Sequence[Any], by_rows: Any, type_: Attribute | None = None
) -> list[list[SSAValue | None]]:
    """Registers of words by a table of `rows_of`; None for parts that nobody wants."""
    mover = _Words(state, wide, is_mask=False)
    return [
        [mover.register(part, type_ or word_type()) if (part >= 0).any() else None for part in one]
        for one in by_rows
    ]


def _whole_words(table: Any, word: Any, sub: Any) -> Any:
    """The table by words, where all elements of each word come from one, in their order."""
    packing = table.shape[-1]
    known = table >= 0
    if packing == 1:
        return np.where(known, word, -1)[..., 0]
    if (known & (sub != np.arange(packing))).any():
        return None
    best = np.where(known, word, -1).max(axis=-1)
    if (known & (word != best[..., None])).any():
        return None
    return best


def unpacked(state: Registers, register: SSAValue, part: int) -> SSAValue:
    """Part `part` of the rows of a packed register as words, whose low bits are the elements'."""
    shape = shape_in(register.type)
    packing = shape[2] if len(shape) == 3 else 1
    bits = 32 // packing
    if str(element_of(register.type)) == "i1":
        register = state.emit("arith.extui", (register,), typed(integer_type(bits), packing))
    elif packing > 1:
        register = state.cast(register, typed(integer_type(bits), packing))
    if packing == 1:
        return state.words(register)
    return state.emit(
        "tpu.unpack_subelements",
        (register,),
        word_type(),
        {
            "index": attribute(f"{part} : i32"),
            "pack_format": PackFormatAttr("compressed"),
        },
    )


def interleaved(state: Registers, sources: Sequence[SSAValue], type_: Attribute) -> SSAValue:
    """The register whose words hold the low bits of one word of each source, the first one's lowest."""
    places = {
        "pack_format": PackFormatAttr("interleaved"),
        "positions": attribute(f"array<i32: {', '.join(map(str, range(len(sources))))}>"),
    }
    return state.emit("tpu.pack_subelements", sources, type_, places)


def packed(state: Registers, parts: Sequence[SSAValue | None], type_: Attribute) -> SSAValue:
    """The register whose rows are the low bits of words; the inverse of `unpacked`."""
    packing = len(parts)
    element = element_of(type_)
    is_mask = str(element) == "i1"
    given = [(at, part) for at, part in enumerate(parts) if part is not None]
    if not given:
        return undefined(state, type_)
    whole = typed(integer_type(32 // packing), packing)
    value = given[0][1]
    if packing > 1:
        value = state.emit(
            "tpu.pack_subelements",
            [part for _, part in given],
            whole,
            {
                "pack_format": PackFormatAttr("compressed"),
                "positions": attribute(f"array<i32: {', '.join(str(at) for at, _ in given)}>"),
            },
        )
    if is_mask:
        zero = state.splat("0", whole)
        return state.emit(
            "arith.cmpi", (value, zero), mask_type(packing), {"predicate": attribute("1 : i64")}
        )
    return state.cast(value, type_)


def undefined(state: Registers, type_: Attribute) -> SSAValue:
    """A register that nobody reads."""
    element = str(element_of(type_))
    text = "false" if element == "i1" else "0" if element.startswith("i") else "0.0"
    return state.splat(text, type_)


@dataclass(slots=True)
class _Words:
    """Registers of words, by tables of places in others."""

    state: Registers
    registers: Sequence[Any]
    is_mask: bool
    turned: dict[tuple[int, int, int], SSAValue] = field(
        default_factory=dict[tuple[int, int, int], "SSAValue"]
    )
    spread: dict[tuple[int, int], SSAValue] = field(
        default_factory=dict[tuple[int, int], "SSAValue"]
    )
    seen: dict[int, SSAValue] = field(default_factory=dict[int, "SSAValue"])

    def register(self, table: Any, type_: Attribute) -> SSAValue:
        """The register of a table of shape (8, 128)."""
        known = table >= 0
        if not known.any():
            return undefined(self.state, type_)
        own = np.arange(_WORDS).reshape(SUBLANES, LANES)
        number, place = np.divmod(table, _WORDS)
        if (place == own)[known].all() and (number == number.max())[known].all():
            register: SSAValue = self.registers[int(number.max())]
            return register if self.is_mask else self.state.cast(register, type_)
        result: SSAValue | None = None
        done = np.zeros_like(known)
        for where, value in self._pieces(known, number, place // LANES, place % LANES):
            if result is None:
                result = value
            else:
                mask = self.mask(where, done)
                result = self.state.emit("arith.select", (mask, value, result), word_type())
            done |= where
        assert result is not None
        if self.is_mask:
            return packed(self.state, [result], type_)
        return self.state.cast(result, type_)

    def _pieces(
        self, known: Any, number: Any, from_sublane: Any, from_lane: Any
    ) -> list[tuple[Any, SSAValue]]:
        """Where to take which register."""
        lane = np.arange(LANES)
        pieces: list[tuple[Any, SSAValue]] = []
        # One lane in many: spread to all lanes of its sublane.
        spread = np.full(known.shape, -1)
        for row in range(SUBLANES):
            at = np.flatnonzero(known[row])
            keys = (number[row, at] * SUBLANES + from_sublane[row, at]) * LANES + from_lane[row, at]
            _, index, counts = np.unique(keys, return_inverse=True, return_counts=True)
            many = counts[index] >= _FEW_LANES
            spread[row, at[many]] = from_lane[row, at[many]]
        turn = np.where(spread >= 0, -1 - spread, (lane - from_lane) % LANES)
        keys = np.where(known, number * 1024 + turn + 256, -1)
        for key in np.unique(keys[keys >= 0]).tolist():
            where = keys == key
            number_, amount = key // 1024, key % 1024 - 256
            for rows, pattern in _row_maps(where, from_sublane):
                value = self._lanes(number_, amount)
                pieces.append((where & rows, self._sublanes(number_, amount, value, pattern)))
        # The largest piece needs no mask.
        pieces.sort(key=lambda piece: -int(piece[0].sum()))
        return pieces

    def words(self, number: int) -> SSAValue:
        """A given register as words."""
        if number not in self.seen:
            register = self.registers[number]
            self.seen[number] = (
                unpacked(self.state, register, 0) if self.is_mask else self.state.words(register)
            )
        return self.seen[number]

    def _lanes(self, number: int, amount: int) -> SSAValue:
        """A register turned along lanes; a negative amount is one lane in all of them."""
        if amount == 0:
            return self.words(number)
        key = (number, amount)
        if key not in self.spread:
            state, value = self.state, self.words(number)
            if amount < 0:
                index = state.splat(str(-1 - amount), word_type())
                self.spread[key] = state.emit(
                    "tpu.dynamic_gather",
                    (value, index),
                    word_type(),
                    {"dimensions": attribute("array<i32: 1>")},
                )
            else:
                self.spread[key] = state.turned(value, amount, 1)
        return self.spread[key]

    def _sublanes(
        self, number: int, amount: int, value: SSAValue, pattern: tuple[int, ...]
    ) -> SSAValue:
        """The register with sublanes taken as the pattern says (-1 any)."""
        turns = {(at - row) % SUBLANES for at, row in enumerate(pattern) if row >= 0}
        if turns == {0}:
            return value
        key = (number, amount, sum((row + 1) * 9**at for at, row in enumerate(pattern)))
        if key not in self.turned:
            if len(turns) == 1:
                self.turned[key] = self.state.turned(value, turns.pop(), 0)
            else:
                rows = ", ".join(str(max(row, 0)) for row in pattern)
                self.turned[key] = self.state.emit(
                    "tpu.gather",
                    (value,),
                    word_type(),
                    {
                        "indices": attribute(f"array<i32: {rows}>"),
                        "dimension": attribute("0 : i32"),
                    },
                )
        return self.turned[key]

    def mask(self, wanted: Any, others: Any) -> SSAValue:
        """True where wanted, false where others are; a box where one does."""
        found: SSAValue | None = None
        for rows, lanes in _boxes(wanted, others):
            if (rows, lanes) == ((0, SUBLANES), (0, LANES)):
                box = self.state.splat("true", mask_type())
            else:
                box = self.state.box(rows, lanes)
            found = (
                box if found is None else self.state.emit("arith.ori", (found, box), mask_type())
            )
        assert found is not None
        return found


def _row_maps(where: Any, from_sublane: Any) -> list[tuple[Any, tuple[int, ...]]]:
    """Rows by the sublane that each is taken from; rows that need several appear several times."""
    wanted = [sorted(set(from_sublane[row][where[row]].tolist())) for row in range(SUBLANES)]
    found: list[tuple[Any, tuple[int, ...]]] = []
    for at in range(max((len(rows) for rows in wanted), default=0)):
        pattern = tuple(rows[at] if at < len(rows) else -1 for rows in wanted)
        found.append((from_sublane == np.array(pattern)[:, None], pattern))
    return found


def _boxes(wanted: Any, others: Any) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Boxes over all wanted places and no other ones."""
    rows, lanes = np.flatnonzero(wanted.any(1)), np.flatnonzero(wanted.any(0))
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    left, right = int(lanes[0]), int(lanes[-1]) + 1
    if not others[top:bottom, left:right].any():
        # As wide as it may be: fewer kinds of masks.
        if not others[:, left:right].any():
            top, bottom = 0, SUBLANES
        elif not others[top:bottom].any():
            left, right = 0, LANES
        return [((top, bottom), (left, right))]
    found: list[tuple[tuple[int, int], tuple[int, int]]] = []
    by_run: dict[tuple[int, int], list[int]] = {}
    for row in rows.tolist():
        at = 0
        line, taken = wanted[row], others[row]
        while at < LANES:
            if not line[at]:
                at += 1
                continue
            end = last = at
            while end < LANES and not taken[end]:
                last = end if line[end] else last
                end += 1
            by_run.setdefault((at, last + 1), []).append(row)
            at = last + 1
    for run, members in by_run.items():
        start = members[0]
        for row, following in zip(members, [*members[1:], -1], strict=True):
            if following != row + 1:
                found.append(((start, row + 1), run))
                start = following
    return found
