"""Loads and stores: registers as tiles lie in memory, with masks at ragged edges.

A load starts at a tile (or, where a tile is one row of words, at any row) and takes eight sublanes that
follow each other in memory. What begins inside a tile has that place as the offsets of its layout, and
is moved afterwards like any other vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i32

from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import flag_of, integers_of, name_of
from mlirhlo.mosaic.pipeline.building import (
    attribute,
    element_of,
    tiled_layout_of,
    vector_type,
    with_shape,
)
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.memory_layout import (
    is_repeated_row,
    memory_layout,
    stored_layout,
)
from mlirhlo.mosaic.pipeline.registers.bounds import Bounds, bounds_of
from mlirhlo.mosaic.pipeline.registers.moving import moved, relaid
from mlirhlo.mosaic.pipeline.registers.shapes import numbered, part_of
from mlirhlo.mosaic.pipeline.registers.state import (
    Part,
    Registers,
    flat,
    grid_of,
    indices_of,
    layout_out,
    register_type,
)
from mlirhlo.mosaic.target.divisible import constant_of, is_divisible
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation, SSAValue

    Made = Sequence[Sequence[SSAValue]]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one register lies in memory, and what of it is the vector's."""

    at: Sequence[SSAValue]
    bounds: Bounds


def _tiles_taken(
    base: SSAValue, indices: Sequence[SSAValue], shape: Sequence[int], state: Registers
) -> tuple[SSAValue, list[int] | None]:
    """A view of the tiles that a vector at `indices` takes part in, and its indices there; None for
    those that were.

    Dimensions are sliced off up to the vector's last tile, from a dynamic index on, so that the indices
    of registers are constants; where the row is not known to begin a tile, the reference stays.
    """
    layout, rank = tiled_layout_of(base.type), len(shape)
    assert layout is not None
    tile = ((1,) + layout.tiles[0])[-min(rank, 2) :]
    if rank > 1 and constant_of(indices[-2]) is None and not is_divisible(indices[-2], tile[0]):
        return base, None
    plain = rank - len(tile)
    starts = [state.emit("arith.index_cast", (index,), i32) for index in indices[:plain]]
    within = [0] * plain
    zero: SSAValue | None = None
    for index in indices[plain:]:
        known = constant_of(index)
        within.append(known or 0)
        if known is None:
            starts.append(state.emit("arith.index_cast", (index,), i32))
            continue
        zero = state.number(0) if zero is None else zero
        starts.append(zero)
    steps = (*(1,) * plain, *tile)
    ends = [at + size for at, size in zip(within, shape, strict=True)]
    padded = [-(-end // step) * step for end, step in zip(ends, steps, strict=True)]
    sizes = {"operandSegmentSizes": attribute(f"array<i32: 1, {rank}, 0>")}
    view = state.emit("tpu.memref_slice", (base, *starts), with_shape(base.type, padded), sizes)
    return view, within


def _place(
    indices: Sequence[SSAValue],
    type_: Attribute,
    layout: VectorLayout,
    at: tuple[int, ...],
    state: Registers,
    *,
    lane_first: bool,
) -> _Place:
    """The place in memory of the register at an index of the grid of a vector."""
    assert state.op is not None
    rank = len(indices)
    steps = [*at[:-2], at[-2] * layout.tiling[0] - (layout.offsets[0] or 0)]
    steps.append(at[-1] * layout.lanes_a_register - (layout.offsets[1] or 0))
    if rank == 1:
        steps = steps[-1:]
    order = list(range(rank))
    if lane_first and rank > 1:
        order[-2:] = [rank - 1, rank - 2]
    made = {dim: moved_index(indices[dim], steps[dim], state) for dim in order}
    return _Place([made[dim] for dim in range(rank)], bounds_of(layout, type_, at, state.op))


def moved_index(index: SSAValue, by: int, state: Registers) -> SSAValue:
    """`index + by`, as a constant where the index is one."""
    known = constant_of(index)
    if known is not None:
        return state.index(known + by)
    return state.emit("arith.addi", (index, state.index(by)), index.type)


def _flags(sublanes: Sequence[bool]) -> Attribute:
    return attribute(f"array<i1: {', '.join(str(one).lower() for one in sublanes)}>")


_ALL = (True,) * SUBLANES
_EVERYWHERE = {"sublane_mask": _flags(_ALL), "sublane_stride": attribute("0 : i32")}
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
    view, within = _tiles_taken(base, indices, shape_in(type_), state)
    indices = indices if within is None else [state.index(at) for at in within]
    registers: list[SSAValue] = []
    for at in indices_of(grid_of(layout, type_, op).shape):
        place = _place(indices, type_, layout, at, state, lane_first=True)
        sublanes = place.bounds.sublanes() if place.bounds.varies_by_sublane else _ALL
        flags = _EVERYWHERE if repeats else {"sublane_mask": _flags(sublanes)}
        register = register_type(layout, type_)
        registers.append(state.emit("tpu.load", (view, *place.at), register, flags))
    if repeats:
        layout = VectorLayout(layout.bits, (None, layout.offsets[1]), layout.tiling)
    return Part(registers, layout, type_)


def store(op: Operation, state: Registers) -> Made:
    """The registers as they lie in memory; what is none of the vector's is masked off.

    Where elements that share a word are not all the vector's, the rest is loaded and written back.
    """
    base, indices, mask = _operands(op)
    part = part_of(op, state, 0)
    layout = stored_layout(base.type, part.type, indices, part.layout)
    if layout is None:
        raise cannot(op, f"to {base.type} at these indices", "store whole tiles")
    registers = relaid(state, part, layout)
    masks: Sequence[SSAValue | None] = [None] * len(registers)
    if mask is not None:
        masks = relaid(state, part_of(op, state, len(op.operands) - 1), layout)
    view, within = _tiles_taken(base, indices, shape_in(part.type), state)
    indices = indices if within is None else [state.index(at) for at in within]
    grid = indices_of(grid_of(layout, part.type, op).shape)
    for at, register, wanted in zip(grid, registers, masks, strict=True):
        place = _place(indices, part.type, layout, at, state, lane_first=False)
        bounds = place.bounds
        flags = {"sublane_mask": _flags(bounds.sublanes())}
        value, given = register, wanted
        if bounds.varies_by_element and not flag_of(op, "add"):
            there = state.emit("tpu.load", (view, *place.at), register.type, flags)
            edge = bounds.mask(state)
            value = state.emit("arith.select", (edge, register, there), register.type)
        elif bounds.varies_by_lane or bounds.varies_by_element:
            edge = bounds.mask(state)
            given = edge if wanted is None else state.both(wanted, edge)
        segments = f"1, 1, {len(place.at)}, {int(given is not None)}"
        flags["operandSegmentSizes"] = attribute(f"array<i32: {segments}>")
        if flag_of(op, "add"):
            flags["add"] = attribute("true")
        more = () if given is None else (given,)
        state.effect("tpu.store", (value, view, *place.at, *more), flags)
    return []


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
    spans = [size * step for size, step in zip(shape, steps, strict=True)]
    view, within = _tiles_taken(base, indices, spans, state)
    stride = {"sublane_stride": attribute(f"{steps[-2]} : i32")}
    for at in indices_of(grid):
        *lead, high, _ = at
        by = [
            *(i * step for i, step in zip(lead, steps, strict=False)),
            high * SUBLANES * steps[-2],
            0,
        ]
        if within is None:
            where = [moved_index(i, b, state) for i, b in zip(indices, by, strict=True)]
        else:
            where = [state.index(i + b) for i, b in zip(within, by, strict=True)]
        rows = min(shape[-2] - high * SUBLANES, SUBLANES)
        flags = {"sublane_mask": _flags([row < rows for row in range(SUBLANES)]), **stride}
        if is_store:
            flags["operandSegmentSizes"] = attribute(f"array<i32: 1, 1, {len(where)}, 0>")
            state.effect("tpu.store", (registers[flat(at, grid)], view, *where), flags)
        else:
            made = state.emit("tpu.load", (view, *where), register_type(words, type_), flags)
            registers.append(made)
    if is_store:
        return []
    return [relaid(state, Part(registers, words, type_), layout_out(op))]
