"""Halo exchange: what a device needs of a cut dimension beyond its own tile.

Slices, pads, windows, concatenations and reversals ask for a range of elements that begins elsewhere than
the tile. The range is put together from the tiles it touches: each neighbour sends the part that is needed
by a collective-permute; where that would be most of all tiles, they are gathered.
Source: reference of the passes, "SPMD partitioner", halo exchange.
"""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.rewrites.spmd.emit import Estimate, Value, array_of, dense
from mlirhlo.rewrites.spmd.part import Part


def fetch(
    part: Part, dim: int, first: int, step: int, size: int, fill: Value | None, emit: Estimate
) -> Value:
    """The `size` elements from `first + step * tile` of a dimension, for the device of each tile: its own
    and what its neighbours have. What lies outside of the array is `fill`, or anything when that is None.
    Other dimensions stay as they are.
    """
    grid, axes = part.placement.grid, part.placement.dims[dim]
    count, n = part.placement.tiles(dim), part.shape.dimensions[dim]
    tile = array_of(part.value).dimensions[dim]
    starts = [first + step * k for k in range(count)]
    pieces, nearest = _pieces(starts, size, tile, n)
    numbers = grid.coordinates(axes)
    rest = grid.coordinates(grid.rest(axes))
    by_place = {(rest[d], numbers[d]): d for d in range(grid.count)}
    values: list[Value] = []
    if len(pieces) > max(3, count // 2 + 1):
        # So many neighbours that all of them together are no more.
        values.append(emit.all_gather(part.value, grid, axes, dim))
        offsets = list(starts)
    else:
        for distance, (low, high, takers) in sorted(pieces.items()):
            value = emit.slice(part.value, dim, low, high)
            if distance:
                pairs = [
                    (by_place[rest[d], numbers[d] + distance], d)
                    for d in range(grid.count)
                    if numbers[d] in takers
                ]
                value = emit.permute(value, pairs)
            values.append(value)
        begin = nearest * tile + pieces[nearest][0]
        offsets = [starts[k] - (k * tile + begin) for k in range(count)]
    return _assembled(part, dim, values, offsets, starts, size, fill, emit)


def _pieces(
    starts: list[int], size: int, tile: int, n: int
) -> tuple[dict[int, tuple[int, int, set[int]]], int]:
    """By distance of tiles: the part of the tile that is needed, and the tiles that need it; the parts
    together are without gaps. And the least distance.
    """
    needs: dict[int, tuple[int, int, set[int]]] = {}
    for k, s in enumerate(starts):
        begin, end = max(s, 0), min(s + size, n)
        if begin >= end:
            continue
        for j in range(begin // tile, (end - 1) // tile + 1):
            low, high = max(begin - j * tile, 0), min(end - j * tile, tile)
            a, b, takers = needs.get(j - k, (tile, 0, set[int]()))
            needs[j - k] = (min(a, low), max(b, high), takers | {k})
    if not needs:
        return {0: (0, tile, set())}, 0
    first, last = min(needs), max(needs)
    filled: dict[int, tuple[int, int, set[int]]] = {}
    for distance in range(first, last + 1):
        a, b, takers = needs.get(distance, (0, tile, set[int]()))
        filled[distance] = (a if distance == first else 0, b if distance == last else tile, takers)
    return filled, first


def _assembled(
    part: Part,
    dim: int,
    values: list[Value],
    offsets: list[int],
    starts: list[int],
    size: int,
    fill: Value | None,
    emit: Estimate,
) -> Value:
    shape = array_of(part.value)
    grid, axes = part.placement.grid, part.placement.dims[dim]
    value = values[0]
    if len(values) > 1:
        sizes = list(shape.dimensions)
        sizes[dim] = sum(array_of(v).dimensions[dim] for v in values)
        joined = dense(shape.element_type, sizes)
        value = emit.make("concatenate", values, joined, {"dimensions": integers((dim,))})
    have = array_of(value).dimensions[dim]
    low = max(0, -min(offsets))
    high = max(0, max(offsets) + size - have)
    value = emit.pad(value, dim, low, high, None)
    numbers = grid.coordinates(axes)
    if len(set(offsets)) == 1:
        value = emit.slice(value, dim, offsets[0] + low, offsets[0] + low + size)
    else:
        start = emit.table([offsets[c] + low for c in numbers])
        value = emit.dynamic_slice(value, dim, start, size)
    n = part.shape.dimensions[dim]
    if fill is None or all(s >= 0 and s + size <= n for s in starts):
        return value
    here = emit.iota(array_of(value).dimensions, dim, emit.table([starts[c] for c in numbers]))
    s32 = array_of(here)
    inside = emit.compare(here, emit.broadcast(emit.constant(n, s32.element_type), s32), "LT")
    if min(starts) < 0:
        zero = emit.broadcast(emit.constant(0, s32.element_type), s32)
        inside = emit.binary("and", inside, emit.compare(here, zero, "GE"))
    return emit.select(inside, value, fill)
