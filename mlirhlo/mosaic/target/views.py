"""Layouts of references, followed through views: what a slice, a squeeze, a reshape or a bitcast keeps.

The layout of an argument or an allocation is the compiler's choice (`layout_for`), rows of single
registers where an array of words is no wider than one. Views have their source's tiles.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import BlockArgument, Operation

from mlirhlo.dialects.tpu.attributes import TiledLayoutAttr
from mlirhlo.dialects.tpu.values import LANES, TiledLayout
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.target.tiling import (
    dense_strides,
    element_name,
    is_memref,
    is_semaphore,
    layout_for,
    rows_of_tile,
    shape_in,
    width_in_bits,
)

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue


def layout_of(value: SSAValue) -> TiledLayout | None:
    """The layout that the compiler gives a reference; None where nothing is known of it."""
    stated = cast("MemRefType[Any]", value.type).layout if is_memref(value.type) else None
    if isinstance(stated, TiledLayoutAttr):
        return stated.data
    shape = shape_in(value.type)
    if not is_memref(value.type) or is_semaphore(value.type) or any(size < 0 for size in shape):
        return None
    owner = value.owner
    if isinstance(owner, Operation) and owner.operands:
        source = layout_of(owner.operands[0])
        return None if source is None else layout_through(owner, source)
    if is_one_tile_wide(value.type):
        return rows_of(value.type, is_argument=isinstance(value, BlockArgument))
    return layout_for(shape, width_in_bits(element_name(value.type)))


def is_one_tile_wide(type_: Attribute) -> bool:
    """Whether an array of words is seen as single rows of a register's lanes."""
    shape = shape_in(type_)
    if len(shape) < 2 or is_semaphore(type_):
        return False
    return width_in_bits(element_name(type_)) == 32 and shape[-1] <= LANES


def rows_of(type_: Attribute, *, is_argument: bool) -> TiledLayout:
    """The layout of an array of words one register wide, seen as rows.

    An argument comes in tiles of several rows: what they add at the end lies between its arrays. An
    allocation has no gaps.
    """
    shape = shape_in(type_)
    if is_argument:
        tile = rows_of_tile(shape[-2], 32)
        shape = (*shape[:-2], -(-shape[-2] // tile) * tile, shape[-1])
    tiles = ((1, LANES),)
    return TiledLayout(tiles, dense_strides(shape, tiles))


def layout_through(view: Operation, layout: TiledLayout) -> TiledLayout | None:
    """The layout of a view of a reference that has `layout`; None for views that do not keep tiles."""
    name = name_of(view)
    before, after = shape_in(view.operands[0].type), shape_in(view.results[0].type)
    if name in ("tpu.memref_slice", "memref.cast", "tpu.erase_memref_layout"):
        return layout
    if name == "tpu.memref_squeeze":
        return _squeezed(layout, before, after)
    if name == "tpu.memref_reshape":
        return _reshaped(layout, before, after)
    if name == "tpu.memref_bitcast":
        return _recast(layout, view.operands[0].type, view.results[0].type)
    return None


def has_gaps(layout: TiledLayout, shape: tuple[int, ...]) -> bool:
    """Whether there is memory between the tiles of an array that is not its own."""
    dense = dense_strides(shape, layout.tiles)
    return any(
        size > 1 and stride != wanted
        for size, stride, wanted in zip(shape, layout.strides, dense, strict=True)
    )


def _reshaped(
    layout: TiledLayout, before: tuple[int, ...], after: tuple[int, ...]
) -> TiledLayout | None:
    """Only arrays without gaps are reshaped in place."""
    if not layout.tiles or any(size < 0 for size in after) or prod(before) != prod(after):
        return None
    tiles = None if has_gaps(layout, before) else _tiles_after(layout.tiles, before, after)
    return None if tiles is None else TiledLayout(tiles, dense_strides(after, tiles))


def _tiles_after(
    tiles: tuple[tuple[int, ...], ...], before: tuple[int, ...], after: tuple[int, ...]
) -> tuple[tuple[int, ...], ...] | None:
    """Tiles of an array reshaped: the same where lanes stay and rows move by whole tiles; of words,
    lanes are cut into registers, and single rows are one line."""
    *rows, lanes = tiles[0]
    if not before or not after:
        return None
    old, new = before[-1], after[-1]
    if len(rows) == 1 and len(after) > 1 and old == new:
        if before[-2] == after[-2] or before[-2] % rows[0] == after[-2] % rows[0] == 0:
            return tiles
    if len(tiles) > 1 or not (old == new or old % lanes == new % lanes == 0):
        return None
    if all(size == 1 for size in rows):
        return ((*rows, lanes)[-len(after) :],)
    if len(after) == len(before) + 1 and after[: len(before) - 1] == before[:-1]:
        return ((*rows, 1, lanes),)
    return None


def _recast(layout: TiledLayout, before: Attribute, after: Attribute) -> TiledLayout | None:
    """Tiles of the same words: `(4,128)(2,1)` of bf16 is `(2,128)` of i32."""
    old, new = (width_in_bits(element_name(type_)) for type_ in (before, after))
    packing = 32 // old
    inner = ((packing, 1),) if packing > 1 else ()
    first = layout.tiles[0] if layout.tiles else ()
    if len(first) != 2 or layout.tiles[1:] != inner or first[0] * old % new:
        return None
    packing = 32 // new
    rows = (first[0] * old // new, first[1])
    return replace(layout, tiles=(rows, (packing, 1)) if packing > 1 else (rows,))


def _squeezed(
    layout: TiledLayout, before: tuple[int, ...], after: tuple[int, ...]
) -> TiledLayout | None:
    """Without dimensions of size one: those in front take their places in the tile, as rows."""
    gone = squeezed_dimensions(before, after)
    first = layout.tiles[0] if layout.tiles else ()
    plain = len(before) - len(first)
    if gone is None or any(dim >= plain and first[dim - plain] != 1 for dim in gone):
        return None
    strides = tuple(s for dim, s in enumerate(layout.strides) if dim not in gone)
    kept = tuple(t for at, t in enumerate(first) if at + plain not in gone)
    kept = (1,) * (min(len(first), len(after)) - len(kept)) + kept
    if len(kept) != len(first) and len(layout.tiles) > 1:
        return None
    return TiledLayout((kept, *layout.tiles[1:]) if kept else (), strides)


def squeezed_dimensions(before: tuple[int, ...], after: tuple[int, ...]) -> list[int] | None:
    """Which dimensions of size one a squeeze takes away, matched from the minor end."""
    gone: list[int] = []
    at = len(after) - 1
    for dim in range(len(before) - 1, -1, -1):
        if at >= 0 and before[dim] == after[at]:
            at -= 1
        elif before[dim] == 1:
            gone.append(dim)
        else:
            return None
    return gone
