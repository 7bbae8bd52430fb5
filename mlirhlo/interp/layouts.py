"""Where elements lie in memory under a layout, for bitcasts that look at memory.

A layout orders the dimensions from minor to major; tiles then cut the most minor dimensions into
blocks, padding them to whole ones; further tiles cut the blocks. Only orders matter, not sizes of
elements.
"""

from __future__ import annotations

import math

import numpy as np

from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape
from mlirhlo.interp.registry import Array


def major_to_minor(shape: ArrayShape) -> tuple[int, ...]:
    """Dimensions as they nest in memory, the slowest first."""
    if shape.layout is None:
        return tuple(range(shape.rank))
    return tuple(reversed(shape.layout.minor_to_major))


def tiles_of(shape: ArrayShape) -> tuple[tuple[int, ...], ...]:
    """The tiles of a shape's layout."""
    return () if shape.layout is None else shape.layout.tiles


def physical_places(shape: ArrayShape) -> tuple[Array, int]:
    """Place in memory, counted in elements, of every element in row-major order; and the room.

    Tiles with `*` (which combine dimensions) are left out: they keep the order of elements.
    """
    order = major_to_minor(shape)
    sizes = [shape.dimensions[dim] for dim in order]
    numbers = np.arange(math.prod(sizes), dtype=np.int64).reshape(shape.dimensions)
    block = numbers.transpose(order) if order else numbers
    for tile in tiles_of(shape):
        if UNBOUNDED not in tile:
            block = _tiled(block, tile)
    flat = block.reshape(-1)
    places = np.empty(numbers.size, dtype=np.int64)
    filled = np.flatnonzero(flat >= 0)
    places[flat[filled]] = filled
    return places, flat.size


def _tiled(block: Array, tile: tuple[int, ...]) -> Array:
    """The last dimensions cut into tiles: counts of tiles first, then places within a tile."""
    missing = len(tile) - block.ndim
    if missing > 0:
        block = block.reshape((1,) * missing + block.shape)
    outer = block.ndim - len(tile)
    padding = [(0, 0)] * outer + [
        (0, -size % width) for size, width in zip(block.shape[outer:], tile, strict=True)
    ]
    block = np.pad(block, padding, constant_values=-1)
    cut: list[int] = list(block.shape[:outer])
    for size, width in zip(block.shape[outer:], tile, strict=True):
        cut += [size // width, width]
    counts = [outer + 2 * i for i in range(len(tile))]
    within = [outer + 2 * i + 1 for i in range(len(tile))]
    return block.reshape(cut).transpose((*range(outer), *counts, *within))


def same_memory(operand: ArrayShape, result: ArrayShape) -> Array | None:
    """For every element of `result` the row-major number of the operand's element at its place.

    -1 where the operand has padding. None when both nest their elements alike, or when the two
    take different room, so that only the order of elements can be meant.
    """
    if not (tiles_of(operand) or tiles_of(result)):
        return None
    alike = operand.element_count == result.element_count
    if alike and (tiles_of(operand) == tiles_of(result) or operand.element_count > 1 << 24):
        return None
    places, room = physical_places(operand)
    wanted, wanted_room = physical_places(result)
    if room != wanted_room:
        return None
    numbers = np.full(room, -1, dtype=np.int64)
    numbers[places] = np.arange(places.size)
    found = numbers[wanted]
    return None if alike and bool(np.any(found < 0)) else found
