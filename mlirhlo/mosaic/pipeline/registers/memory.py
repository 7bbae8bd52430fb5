"""Loads and stores: registers as tiles lie in memory, with masks at ragged edges.

A load starts at a tile (or, where a tile is one row of words, at any row) and takes eight sublanes that
follow each other in memory. What begins inside a tile has that place as the offsets of its layout, and
is moved afterwards like any other vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType

from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import flag_of, integers_of, name_of
from mlirhlo.mosaic.pipeline.building import (
    attribute,
    build,
    constant,
    element_of,
    insert,
    tiled_layout_of,
    vector_type,
)
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.memory_layout import is_repeated_row, memory_layout
from mlirhlo.mosaic.pipeline.registers.moving import Part, moved, relaid
from mlirhlo.mosaic.pipeline.registers.shapes import numbered, part_of
from mlirhlo.mosaic.pipeline.registers.state import (
    Registers,
    flat,
    grid_of,
    indices_of,
    layout_out,
    mask_type,
    packing_of,
    register_type,
)
from mlirhlo.mosaic.target.divisible import constant_of
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation, SSAValue

    Made = Sequence[Sequence[SSAValue]]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one register lies in memory, and what of it is the vector's."""

    at: Sequence[SSAValue]
    sublanes: tuple[bool, ...]
    rows: tuple[int, int]
    """The rows of the register's tile that are the vector's; all tiles side by side have the same."""
    lanes: tuple[int, int]
    """The lanes, through all tiles side by side."""


def _places(
    base: SSAValue,
    indices: Sequence[SSAValue],
    type_: Attribute,
    layout: VectorLayout,
    op: Operation,
) -> list[_Place]:
    """The places of the registers of a vector in memory, in the order of its grid."""
    shape = shape_in(type_)
    rank = len(shape)
    grid = grid_of(layout, type_, op)
    height, side, packing = layout.tiling[0], layout.tiles_a_register, packing_of(layout)
    top, left = layout.offsets[0] or 0, layout.offsets[1] or 0
    rows = 1 if rank == 1 else shape[-2]
    found: list[_Place] = []
    for index in indices_of(grid.shape):
        *lead, high, wide = index
        start = wide * LANES * side
        steps = [*lead, high * height - top, start - left]
        if rank == 1:
            steps = [start - left]
        first = (max(top - high * height, 0), min(top + rows - high * height, height))
        lanes = (max(left - start, 0), min(left + shape[-1] - start, LANES * side))
        sublanes: list[bool] = []
        for sublane in range(SUBLANES):
            tile, inside = divmod(sublane * packing, height)
            is_row = inside < first[1] and inside + packing > first[0]
            after = tile + max(1, packing // height)
            is_lane = tile * LANES < lanes[1] and after * LANES > lanes[0]
            sublanes.append(is_row and is_lane)
        at = [moved_index(i, by, op) for i, by in zip(indices, steps[-rank:], strict=True)]
        found.append(_Place(at, tuple(sublanes), first, lanes))
    return found


def moved_index(index: SSAValue, by: int, op: Operation) -> SSAValue:
    """`index + by`, as a constant where the index is one."""
    if by == 0:
        return index
    known = constant_of(index)
    if known is not None:
        return insert(constant(known + by, IndexType()), op).results[0]
    step = insert(constant(by, IndexType()), op).results[0]
    return insert(build("arith.addi", (index, step), (index.type,)), op).results[0]


def _flags(sublanes: Sequence[bool]) -> Attribute:
    return attribute(f"array<i1: {', '.join(str(one).lower() for one in sublanes)}>")


_EVERYWHERE = {
    "sublane_mask": _flags((True,) * SUBLANES),
    "sublane_stride": attribute("0 : i32"),
}
"""One row in all sublanes."""


def _operands(op: Operation) -> tuple[SSAValue, list[SSAValue], SSAValue | None]:
    """Reference, indices and mask."""
    first = int(name_of(op).endswith("store"))
    base = op.operands[first]
    rank = len(shape_in(base.type))
    sizes = integers_of(op, "operandSegmentSizes") or ()
    mask = op.operands[-1] if len(sizes) > 2 + first and sizes[2 + first] else None
    return base, list(op.operands[first + 1 : first + 1 + rank]), mask


def load(op: Operation, state: Registers) -> Made:
    """A vector of a reference; off a mask nothing is known of it, so that all is loaded."""
    part = _loaded(op, state, op.results[0].type)
    return [relaid(state, part, layout_out(op))]


def _loaded(op: Operation, state: Registers, type_: Attribute) -> Part:
    """The vector of `type_` that begins at the operation's indices, as it lies in memory."""
    base, indices, _ = _operands(op)
    layout = memory_layout(base.type, type_, indices)
    if layout is None:
        raise cannot(op, f"from {base.type} at these indices", "load whole tiles, and slice them")
    repeats = is_repeated_row(base.type, layout, type_)
    registers = [
        state.emit(
            "tpu.load",
            (base, *place.at),
            register_type(layout, type_),
            _EVERYWHERE if repeats else {"sublane_mask": _flags(place.sublanes)},
        )
        for place in _places(base, indices, type_, layout, op)
    ]
    if repeats:
        layout = VectorLayout(layout.bits, (None, layout.offsets[1]), layout.tiling)
    return Part(registers, layout, type_)


def store(op: Operation, state: Registers) -> Made:
    """The registers as they lie in memory; what is none of the vector's is masked off."""
    base, indices, mask = _operands(op)
    part = part_of(op, state, 0)
    layout = memory_layout(base.type, part.type, indices)
    if layout is None:
        raise cannot(op, f"to {base.type} at these indices", "store whole tiles")
    registers = relaid(state, part, layout)
    masks: Sequence[SSAValue | None] = [None] * len(registers)
    if mask is not None:
        masks = relaid(state, part_of(op, state, len(op.operands) - 1), layout)
    places = _places(base, indices, part.type, layout, op)
    for register, place, wanted in zip(registers, places, masks, strict=True):
        edge = _edge(state, place, layout, shape_in(part.type), shape_in(base.type), indices)
        given = state.both(wanted, edge)
        segments = f"1, 1, {len(place.at)}, {int(given is not None)}"
        attributes = {
            "sublane_mask": _flags(place.sublanes),
            "operandSegmentSizes": attribute(f"array<i32: {segments}>"),
        }
        if flag_of(op, "add"):
            attributes["add"] = attribute("true")
        more = () if given is None else (given,)
        state.effect("tpu.store", (register, base, *place.at, *more), attributes)
    return []


def _edge(
    state: Registers,
    place: _Place,
    layout: VectorLayout,
    shape: Sequence[int],
    memory: Sequence[int],
    indices: Sequence[SSAValue],
) -> SSAValue | None:
    """What of a register is the vector's, where sublanes do not say it and memory has more there."""
    packing, side, height = packing_of(layout), layout.tiles_a_register, layout.tiling[0]
    mask: SSAValue | None = None
    low, high = place.rows
    is_row = len(shape) == 1
    at = 0 if is_row else constant_of(indices[-2])
    is_last = is_row or (at is not None and at + shape[-2] == memory[-2])
    if height >= packing and (low % packing or (high % packing and not is_last)):
        for tile in range(side):
            one = _rows(state, tile * height + low, tile * height + high, packing)
            mask = one if mask is None else state.emit("arith.ori", (mask, one), one.type)
    left, right = place.lanes
    column = constant_of(indices[-1])
    is_end = column is not None and column + shape[-1] == memory[-1]
    if height >= packing and left % LANES == 0 and (right % LANES == 0 or (is_end and left == 0)):
        return mask
    if side == 1:
        return state.both(mask, state.box((0, SUBLANES), (left, right), packing))
    return state.both(mask, _tiles(state, left, right, height, packing))


def _rows(state: Registers, low: int, high: int, packing: int) -> SSAValue:
    """A mask of rows of a register, of which a sublane has `packing`."""
    whole = state.box((low // packing, high // packing), (0, LANES), packing)
    if whole is not None and low % packing == high % packing == 0:
        return whole
    ends = {"from": attribute(f"{low} : i32"), "to": attribute(f"{high} : i32")}
    return state.emit("tpu.create_subelement_mask", (), mask_type(packing), ends)


def _tiles(state: Registers, left: int, right: int, height: int, packing: int) -> SSAValue | None:
    """A mask of lanes through tiles side by side: parts of the first and last ones, all of others."""
    first, last = left // LANES, -(-right // LANES)
    if first == 0 and left == 0 and right == last * LANES and last * height == SUBLANES * packing:
        return None
    spans: list[tuple[int, int, int, int]] = []
    if last - first == 1:
        spans.append((first, last, left - first * LANES, right - first * LANES))
    else:
        inner = (first + (left % LANES > 0), last - (right % LANES > 0))
        if left % LANES:
            spans.append((first, first + 1, left % LANES, LANES))
        if inner[0] < inner[1]:
            spans.append((*inner, 0, LANES))
        if right % LANES:
            spans.append((last - 1, last, 0, right % LANES))
    mask: SSAValue | None = None
    for begin, end, low, high in spans:
        rows = _rows(state, begin * height, end * height, packing)
        one = state.both(rows, state.box((0, SUBLANES), (low, high), packing))
        assert one is not None
        mask = one if mask is None else state.emit("arith.ori", (mask, one), one.type)
    return mask


def strided(op: Operation, state: Registers) -> Made:
    """Rows at a distance: eight a register, `sublane_stride` apart."""
    base, indices, _ = _operands(op)
    is_store = name_of(op).endswith("store")
    type_ = op.operands[0].type if is_store else op.results[0].type
    shape = shape_in(type_)
    steps = integers_of(op, "strides") or (1,) * len(shape)
    tiles = tiled_layout_of(base.type)
    words = VectorLayout(32, (0, 0), (SUBLANES, LANES))
    if len(shape) < 2 or shape_in(base.type)[-1] > LANES or tiles is None or len(tiles.tiles) != 1:
        if not is_store and 0 not in steps:
            # All rows between them, of which some are kept.
            sizes = [(n - 1) * step + 1 for n, step in zip(shape, steps, strict=True)]
            part = _loaded(op, state, vector_type(sizes, element_of(type_)))
            kept = numbered(part.type)[tuple(slice(None, None, step) for step in steps)]
            return [moved(state, [part], kept, type_, layout_out(op))]
        raise cannot(op, f"of {base.type}", "use references of 32-bit rows of 128 lanes")
    registers: list[SSAValue] = []
    if is_store:
        registers = relaid(state, part_of(op, state, 0), words)
    grid = grid_of(words, type_, op).shape
    stride = {"sublane_stride": attribute(f"{steps[-2]} : i32")}
    for at in indices_of(grid):
        *lead, high, _ = at
        by = [
            *(i * step for i, step in zip(lead, steps, strict=False)),
            high * SUBLANES * steps[-2],
            0,
        ]
        where = [moved_index(i, b, op) for i, b in zip(indices, by, strict=True)]
        rows = min(shape[-2] - high * SUBLANES, SUBLANES)
        flags = {"sublane_mask": _flags([row < rows for row in range(SUBLANES)]), **stride}
        if is_store:
            flags["operandSegmentSizes"] = attribute(f"array<i32: 1, 1, {len(where)}, 0>")
            state.effect("tpu.store", (registers[flat(at, grid)], base, *where), flags)
        else:
            made = state.emit("tpu.load", (base, *where), register_type(words, type_), flags)
            registers.append(made)
    if is_store:
        return []
    return [relaid(state, Part(registers, words, type_), layout_out(op))]
