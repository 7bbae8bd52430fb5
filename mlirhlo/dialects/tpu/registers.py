"""Where the elements of a vector lie in registers, and those of a memref in tiled memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias, TypeVar

import numpy as np

from mlirhlo.dialects.tpu.values import LANES, SUBLANES, TiledLayout, VectorLayout

Places: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
T = TypeVar("T")


def places_of(layout: TiledLayout, indices: Any) -> Places:
    """`TiledLayout.offset` of many indices: an array of shape (rank, n) to one of n offsets."""
    rank = len(indices)
    first = layout.tiles[0] if layout.tiles else ()
    plain = rank - len(first)
    outer = [indices[dim] for dim in range(plain)]
    inner: list[tuple[Any, int]] = []
    for dim, size in enumerate(first):
        outer.append(indices[plain + dim] // size)
        inner.append((indices[plain + dim] % size, size))
    for tile in layout.tiles[1:]:
        at = len(inner) - len(tile)
        pairs = list(zip(inner[at:], tile, strict=True))
        inner[at:] = [(i // t, s // t) for (i, s), t in pairs]
        inner += [(i % t, t) for (i, _), t in pairs]
    within: Any = np.zeros(indices.shape[1], np.int64)
    for index, size in inner:
        within = within * size + index
    start = sum(
        (index * stride for index, stride in zip(outer, layout.strides, strict=True)),
        np.zeros(indices.shape[1], np.int64),
    )
    return np.asarray(start * prod(first) + within, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class RegisterGrid:
    """The registers of a vector."""

    shape: tuple[int, ...]
    """How many registers along each dimension; leading dimensions have one an index."""
    places: Places
    """For each element of the vector: register number times elements a register, plus the place."""
    replicated: tuple[bool, bool]
    """Whether all sublanes of a tile, all lanes of all tiles hold the same."""
    tiles: int = 1
    """How many tiles of whole sublanes a register has, one below the other."""

    @property
    def count(self) -> int:
        """How many registers there are."""
        return prod(self.shape)

    def spread(self, registers: Sequence[Any]) -> tuple[Any, ...]:
        """Registers whose first sublane or lane is known, with it everywhere it is replicated to."""
        found: list[Any] = []
        for register in registers:
            packing = register.shape[2:] or (1,)
            value = register.reshape(1, SUBLANES, LANES, *packing)
            found.append(np.array(self.repeated(value).reshape(register.shape)))
        return tuple(found)

    def repeated(self, places: Any) -> Any:
        """An array of shape (registers, 8, 128, elements a word) with the first sublane of each tile, or
        the first lane of the first one, wherever they are replicated to."""
        split = (len(places), self.tiles, SUBLANES // self.tiles, *places.shape[2:])
        found = places.reshape(split)
        if self.replicated[0]:
            found = np.broadcast_to(found[:, :, :1, :, :1], split)
        if self.replicated[1]:
            found = np.broadcast_to(found[:, :1, :, :1], split)
        return found.reshape(places.shape)


def explicit_shape(layout: VectorLayout, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape with the implicit dimensions put back; None where the layout cannot be of it."""
    if layout.implicit == (-2, -1):
        full = (*shape, 1, 1)
    elif layout.implicit == (-1,):
        full = (*shape, 1)
    elif layout.implicit == (-2,):
        full = (*shape[:-1], 1, shape[-1]) if shape else ()
    else:
        full = shape
    return full if len(full) >= 2 else None


@lru_cache(maxsize=512)
def register_grid(layout: VectorLayout, shape: tuple[int, ...]) -> RegisterGrid | None:
    """The registers of a vector of `shape` in `layout`; None where the layout cannot be of it.

    A register holds tiles side by side along the minor dimension; within a tile elements go row by
    row, `32 / bits` rows to a sublane.
    """
    full = explicit_shape(layout, shape)
    if full is None:
        return None
    rows, columns = layout.tiling
    packing = 32 // layout.bits
    side = layout.tiles_a_register
    if rows == 1 and columns in (LANES, LANES * packing):
        # Single rows go from sublane to sublane, however long their tiles.
        side, columns = layout.lanes_a_register // LANES, LANES
    if columns != LANES or side == 0:
        return None
    starts = tuple(0 if offset is None else offset for offset in layout.offsets)
    high = 1 if layout.offsets[0] is None else -(-(starts[0] + full[-2]) // rows)
    wide = 1 if layout.offsets[1] is None else -(-(starts[1] + full[-1]) // (columns * side))
    grid = (*full[:-2], high, wide)
    index = np.indices(full)
    row = np.zeros(full, np.int64) if layout.offsets[0] is None else index[-2] + starts[0]
    column = np.zeros(full, np.int64) if layout.offsets[1] is None else index[-1] + starts[1]
    number = np.zeros(full, np.int64)
    for dim in range(len(full) - 2):
        number = number * full[dim] + index[dim]
    tile = column // columns
    number = (number * high + row // rows) * wide + tile // side
    flat_row = tile % side * rows + row % rows
    place = (flat_row // packing * LANES + column % columns) * packing + flat_row % packing
    size = SUBLANES * LANES * packing
    places = (number * size + place).reshape(shape)
    replicated = (layout.offsets[0] is None, layout.offsets[1] is None)
    tiles = side if rows >= packing and 0 < side <= SUBLANES else 1
    return RegisterGrid(grid, places, replicated, tiles)
