"""Halo exchange: what a device needs of a cut dimension beyond its own tile.

Slices, pads, windows, concatenations and reversals ask for a range of elements that begins elsewhere than
the tile. The range is put together from the tiles it touches: each neighbour sends the part that is needed
by a collective-permute; where that would be most of all tiles, they are gathered.
Source: reference of the passes, "SPMD partitioner", halo exchange.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.rewrites.spmd.emit import Estimate, Value, array_of, dense
from mlirhlo.rewrites.spmd.part import Part


def fetch(
    part: Part, dim: int, first: int, step: int, size: int, fill: Value | None, emit: Estimate
) -> Value:
    """The `size` elements from `first + step * tile` of a dimension, for the device of each tile: its own
    and what its neighbours have. What lies outside of the array is `fill`, or anything when that is None.
    Other dimensions stay as they are. A `size` below zero is zero: of tiles of nothing.
    """
    size = max(size, 0)
    grid, axes = part.placement.grid, part.placement.dims[dim]
    count, n = part.placement.tiles(dim), part.shape.dimensions[dim]
    tile = array_of(part.value).dimensions[dim]
    starts = [first + step * k for k in range(count)]
    plans = [_by_distance(starts, size, tile, n), _by_turn(starts, size, tile, n)]
    plan = min((p for p in plans if p is not None), key=lambda p: p.moved)
    if plan.moved > (count - 1) * count * tile:
        gathered = emit.all_gather(part.value, grid, axes, dim)
        return _assembled(part, dim, [gathered], starts, starts, size, fill, emit)
    numbers = grid.coordinates(axes)
    rest = grid.coordinates(grid.rest(axes))
    by_place = {(rest[d], numbers[d]): d for d in range(grid.count)}
    values: list[Value] = []
    for piece in plan.pieces:
        value = emit.slice(part.value, dim, piece.low, piece.high)
        if any(a != b for b, a in piece.sources.items()):
            takers = [d for d in range(grid.count) if numbers[d] in piece.sources]
            pairs = [(by_place[rest[d], piece.sources[numbers[d]]], d) for d in takers]
            value = emit.permute(value, pairs)
        values.append(value)
    return _assembled(part, dim, values, plan.offsets, starts, size, fill, emit)


@dataclass(slots=True)
class _Piece:
    """The part of a tile that is sent, and from which tile each one takes it."""

    low: int
    high: int
    sources: dict[int, int]


@dataclass(slots=True)
class _Plan:
    """Pieces that one after the other hold what every tile needs."""

    pieces: list[_Piece]
    offsets: list[int]
    """Where in the pieces that begins, by tile."""

    @property
    def moved(self) -> int:
        """Elements that go to another device, along the dimension."""
        return sum(
            (p.high - p.low) * sum(a != b for b, a in p.sources.items()) for p in self.pieces
        )


def _needs(starts: list[int], size: int, tile: int, n: int) -> Iterator[tuple[int, int, int, int]]:
    """Tiles with the tiles they take something from, and what of those: low and high."""
    for k, s in enumerate(starts):
        begin, end = max(s, 0), min(s + size, n)
        if begin >= end:
            continue  # nothing, perhaps of an empty array
        for j in range(begin // tile, -(-end // tile)):
            yield k, j, max(begin - j * tile, 0), min(end - j * tile, tile)


def _closed(found: dict[int, _Piece], tile: int) -> tuple[list[_Piece], int]:
    """The pieces without gaps between the first and the last, and the first one's number."""
    if not found:
        return [_Piece(0, tile, {})], 0
    first, last = min(found), max(found)
    pieces: list[_Piece] = []
    for number in range(first, last + 1):
        piece = found.get(number, _Piece(0, tile, {}))
        low = piece.low if number == first else 0
        high = piece.high if number == last else tile
        pieces.append(_Piece(low, high, piece.sources))
    return pieces, first


def _by_distance(starts: list[int], size: int, tile: int, n: int) -> _Plan:
    """Each piece comes from the tile so many places on."""
    found: dict[int, _Piece] = {}
    for k, j, low, high in _needs(starts, size, tile, n):
        piece = found.setdefault(j - k, _Piece(tile, 0, {}))
        piece.low, piece.high = min(piece.low, low), max(piece.high, high)
        piece.sources[k] = j
    pieces, first = _closed(found, tile)
    begin = first * tile + pieces[0].low
    return _Plan(pieces, [s - (k * tile + begin) for k, s in enumerate(starts)])


def _by_turn(starts: list[int], size: int, tile: int, n: int) -> _Plan | None:
    """Each piece comes from the first tile that is needed, the second, and so on; None where one tile
    would have to send the same piece to several.
    """
    found: dict[int, _Piece] = {}
    nearest: dict[int, int] = {}
    for k, j, low, high in _needs(starts, size, tile, n):
        turn = j - nearest.setdefault(k, j)
        piece = found.setdefault(turn, _Piece(tile, 0, {}))
        piece.low, piece.high = min(piece.low, low), max(piece.high, high)
        piece.sources[k] = j
    if any(len(set(p.sources.values())) != len(p.sources) for p in found.values()):
        return None
    pieces, _ = _closed(found, tile)
    low = pieces[0].low
    offsets = [s - (nearest[k] * tile + low) if k in nearest else 0 for k, s in enumerate(starts)]
    return _Plan(pieces, offsets)


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
