"""How a vector lies in registers as its loads and stores find it in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.registers import register_grid
from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.pipeline.building import tiled_layout_of
from mlirhlo.mosaic.target.divisible import constant_of, is_divisible
from mlirhlo.mosaic.target.tiling import element_name, shape_in, width_in_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, SSAValue


def memory_layout(
    reference: Attribute, vector: Attribute, indices: Sequence[SSAValue]
) -> VectorLayout | None:
    """The layout of a vector of `reference` at `indices`; None where it starts at no known place.

    Tiles of the reference are the tiles of the layout. Rows of words one register wide lie one after
    another, as in whole tiles; a single row may start in any sublane.
    """
    layout, shape = tiled_layout_of(reference), shape_in(vector)
    if layout is None or not layout.tiles or not shape or len(shape) != len(indices):
        return None
    bits = width_in_bits(element_name(vector))
    packing = 32 // bits
    if len(shape) == 1:
        return _of_row(layout.tiles, vector, indices[0], bits)
    if len(layout.tiles[0]) != 2 or layout.tiles[1:] != (((packing, 1),) if packing > 1 else ()):
        return None
    rows = layout.tiles[0][0]
    free = rows == 1 and packing == 1
    if free and shape_in(reference)[-1] <= LANES:
        rows = SUBLANES
    top, left = constant_of(indices[-2]), constant_of(indices[-1])
    if free or (top is None and is_divisible(indices[-2], rows)):
        top = 0
    if top is None and shape[-2] == 1 and packing == 1:
        # One row: a register of one sublane, wherever that is.
        rows, top = SUBLANES, 0
    if left is None and is_divisible(indices[-1], LANES):
        left = 0
    if top is None or left is None:
        return None
    found = VectorLayout(bits, (top % rows, left % LANES), (rows, LANES))
    return found if register_grid(found, shape) is not None else None


def _of_row(
    tiles: tuple[tuple[int, ...], ...], vector: Attribute, index: SSAValue, bits: int
) -> VectorLayout | None:
    """A row: registers of one row after another; narrow ones share words as rows of tiles do."""
    packing = 32 // bits
    wanted = ((LANES * packing,), *(((LANES,), (packing, 1)) if packing > 1 else ()))
    left = constant_of(index)
    if left is None and is_divisible(index, LANES * packing):
        left = 0
    if left is None or tiles != wanted:
        return None
    found = VectorLayout(bits, (0, left % (LANES * packing)), (1, LANES * packing), (-2,))
    return found if register_grid(found, shape_in(vector)) is not None else None


def is_repeated_row(reference: Attribute, layout: VectorLayout, vector: Attribute) -> bool:
    """Whether a vector is one row of words, and rows one register wide follow each other.

    Such a row is loaded to all sublanes at once, with a stride of none.
    """
    tiles, shape = tiled_layout_of(reference), shape_in(vector)
    return (
        tiles is not None
        and tiles.tiles[:1] == ((1, LANES),)
        and layout.bits == 32
        and layout.tiling == (SUBLANES, LANES)
        and shape[-2:-1] == (1,)
    )


def stored_layout(
    reference: Attribute,
    vector: Attribute,
    indices: Sequence[SSAValue],
    have: VectorLayout,
) -> VectorLayout | None:
    """The layout a vector that lies in `have` is stored from.

    Where rows lie one after another in memory any sublane may be the first, so that the vector's stays.
    """
    found = memory_layout(reference, vector, indices)
    if found is None or not lies_in_rows(reference) or found.tiling != (SUBLANES, LANES):
        return found
    moved = replace(found, offsets=((have.offsets[0] or 0) % SUBLANES, found.offsets[1]))
    return moved if register_grid(moved, shape_in(vector)) is not None else found


def lies_in_rows(reference: Attribute) -> bool:
    """Whether rows of words, one register wide, follow each other in memory."""
    layout = tiled_layout_of(reference)
    return (
        layout is not None
        and layout.tiles == ((1, LANES),)
        and shape_in(reference)[-1] <= LANES
        and width_in_bits(element_name(reference)) == 32
    )
