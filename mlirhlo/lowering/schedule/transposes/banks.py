"""How boxes lie in shared memory, so that no warp accesses a bank twice at once.

Elements of a box lie in lines: those of the dimensions that one of the two walks runs along, then the others. Lines may
be padded, and swizzled: the index of an element is xored with a number that changes from line to line, or every few
lines, so that what lies at the same index of lines one after the other is in different banks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

from mlirhlo.lowering.schedule.attributes import element_of
from mlirhlo.lowering.schedule.transposes.boxes import SECTOR, Crossing, Run
from mlirhlo.lowering.schedule.transposes.lattices import Lattice, lattices_of

_BANKS, _WORD = 32, 4
"""Banks, and bytes of a word of one."""
_WARP = 32
_FEW = 64
"""Accesses that are looked at before all of them."""
_WIDTH = -1
"""The padding of a line to as many elements as threads read of a run at once."""
_PADS = (0, 1, 2, 3, 4, 8, _WIDTH)
"""Words behind a line, tried first."""
_SWIZZLING = 1.3
"""What accesses at swizzled indices cost, against plain ones."""
_TRIES = 160
"""Layouts that are tried for each pair of widths."""
_FIRST_TRIES, _MORE_TRIES = 640, 4000
"""Layouts that are tried for all boxes, before two arrays are, and where those do not help."""
_LATTICES = 64
"""Lattices that are tried for a box."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where elements of a box are in shared memory."""

    pitches: Mapping[int, int]
    """Distances of neighbours along groups of dimensions, in elements."""
    swizzle: tuple[int, ...] = ()
    """As `Schedule.swizzle`."""


@dataclass(frozen=True, slots=True)
class Placing:
    """How a box lies in shared memory, and how threads walk it."""

    waits: int
    """Accesses of some warps that wait for others."""
    widths: tuple[int, int]
    """Threads that read a run together, and that write one."""
    is_across: bool
    """As of `orders_of`."""
    pitches: tuple[int, ...]
    """Distances of neighbours along the groups of dimensions, in elements."""
    swizzle: tuple[int, ...] = ()
    """As `Schedule.swizzle`."""
    lattice: Lattice | None = None
    """Where the box goes through two arrays; the pitches are those of the first one."""


_PLACINGS: dict[object, tuple[tuple[int, ...], Placing]] = {}
"""By all that they depend on: programs repeat transposes, and fusion looks at each many times."""
_MAX_PLACINGS = 1024


def elements_of(tile: Sequence[int], pitches: Sequence[int], swizzle: Sequence[int]) -> int:
    """Elements of shared memory that a box takes."""
    count = 1 + sum((t - 1) * pitch for t, pitch in zip(tile, pitches, strict=True))
    reach = prod(swizzle[1:])
    return -(-count // reach) * reach


def orders_of(crossing: Crossing, *, is_across: bool) -> tuple[list[int], list[int]]:
    """Groups of dimensions, the innermost first, by which runs that are read, and those that are written, follow each
    other: as in memory, or as in the other memory."""
    inner_first = list(range(len(crossing.sizes) - 1, -1, -1))
    order = crossing.order
    if not is_across:
        return order, inner_first
    others = [g for g in inner_first if g not in order]
    return [g for g in inner_first if g in order], [*order, *others]


def placing_of(
    crossing: Crossing, tiles: Sequence[tuple[int, ...]], limit: int
) -> tuple[tuple[int, ...], Placing]:
    """The first box that can be placed without bank conflicts in so many bytes of shared memory, else the one of the
    fewest conflicts: plain layouts of full warps first, then for each box ways of few accesses, then two arrays."""
    reads = tuple((element_of(v).byte_size, start) for v, _, start in crossing.reads)
    written = tuple(element_of(v).byte_size for v in crossing.outputs)
    key = (crossing.sizes, crossing.strides, reads, written, tuple(tiles), limit)
    if key not in _PLACINGS:
        if len(_PLACINGS) >= _MAX_PLACINGS:
            _PLACINGS.clear()
        found = _search(crossing, tiles, limit, _FIRST_TRIES)
        if found[1].waits:
            latticed = next(_latticed(crossing, tiles, limit), None)
            found = latticed or _search(crossing, tiles, limit, _MORE_TRIES)
        _PLACINGS[key] = found
    return _PLACINGS[key]


def _latticed(
    crossing: Crossing, tiles: Sequence[tuple[int, ...]], limit: int
) -> Iterator[tuple[tuple[int, ...], Placing]]:
    """Boxes that go through two arrays without bank conflicts."""
    orders = orders_of(crossing, is_across=False)
    for tile in tiles:
        way = _Ways(crossing, tile)
        for lattice in itertools.islice(lattices_of(crossing, tile, limit), _LATTICES):
            part = _Ways(crossing, lattice.part(crossing, tile))
            first, second = (Layout(dict(enumerate(p))) for p in (lattice.pitches, lattice.written))
            for widths in way.widths():
                waits = way.waits_of(0, widths[0], first, orders[0])
                if not waits and not part.waits_of(1, widths[1], second, orders[1]):
                    yield tile, Placing(0, widths, False, lattice.pitches, (), lattice)
                    break


def _search(
    crossing: Crossing, tiles: Sequence[tuple[int, ...]], limit: int, left: int
) -> tuple[tuple[int, ...], Placing]:
    element = sum(element_of(v).byte_size for v, _, _ in crossing.reads)
    ways = [_Ways(crossing, tile) for tile in tiles]
    tries: list[tuple[bool, int, float, bool, tuple[int, int]]] = []
    for number, way in enumerate(ways):
        for at, widths in enumerate(way.widths()):
            cost = way.accesses(widths)
            tries.append((at > 0, number, cost, False, widths))
            tries.append((True, number, cost * _SWIZZLING, True, widths))
    best: tuple[tuple[int, ...], Placing] | None = None
    for (_, number, _, is_swizzled, widths), is_across in itertools.product(
        sorted(tries), (False, True)
    ):
        if is_across and widths == (_WARP, _WARP):
            continue
        tile, way = tiles[number], ways[number]
        layouts = _layouts(crossing, tile, widths[0], is_swizzled)
        for layout in itertools.islice(layouts, min(_TRIES, left)):
            left -= 1
            pitches = tuple(layout.pitches.get(g, 0) for g in range(len(tile)))
            if elements_of(tile, pitches, layout.swizzle) * element > limit:
                continue
            enough = 1 << 30 if best is None else best[1].waits
            waits = way.waits(widths, layout, enough, is_across=is_across)
            if waits < enough:
                best = tile, Placing(waits, widths, is_across, pitches, layout.swizzle)
            if not waits:
                break
        if best is not None and (left <= 0 or not best[1].waits):
            break
    assert best is not None
    return best


def _layouts(
    crossing: Crossing, tile: Sequence[int], width: int, is_swizzled: bool
) -> Iterator[Layout]:
    """Layouts, the most promising ones first: of lines that are padded a little, then more; of narrow elements, and of
    a word for each."""
    size = min(element_of(v).byte_size for v, _, _ in crossing.reads)
    word = max(_WORD // size, 1)
    lines = _lines(crossing, tile)
    for pad, scale in itertools.product((*_PADS, *range(_BANKS)), sorted({1, word})):
        unit = word // scale
        for groups, inner in lines:
            least = -(-prod(tile[g] for g in groups[:inner]) // unit)
            pitch = max(least, width // unit) if pad == _WIDTH else least + pad
            pitches = _pitches(groups, inner, tile, scale, pitch * word)
            if is_swizzled:
                yield from _swizzled(pitches, pitch, word)
            else:
                yield Layout(pitches)


def _pitches(
    groups: Sequence[int], inner: int, tile: Sequence[int], element: int, pitch: int
) -> dict[int, int]:
    """Distances of neighbours: of elements in a line, and of lines that the first `inner` groups are."""
    pitches: dict[int, int] = {}
    reach = element
    for number, group in enumerate(groups):
        reach = pitch if number == inner else reach
        pitches[group] = reach
        reach *= tile[group]
    return pitches


def _swizzled(pitches: Mapping[int, int], pitch: int, word: int) -> Iterator[Layout]:
    """Layouts whose lines, at a distance of `pitch` words, are xored where they would start in the same banks again."""
    count = common = gcd(pitch, _BANKS)
    while count > 1:
        swizzle = (pitch * _BANKS // common * word, count, word * common // count)
        yield Layout(pitches, swizzle)
        count //= 2


def _lines(crossing: Crossing, tile: Sequence[int]) -> list[tuple[list[int], int]]:
    """Groups of dimensions from the innermost one, and how many of them are in a line: first those of runs."""
    runs = crossing.run_read(tile).dims, crossing.run_written(tile).dims
    kept = [g for g in crossing.order if tile[g] > 1]
    lines: list[tuple[list[int], int]] = []
    for dims, order in zip(runs, orders_of(crossing, is_across=True), strict=True):
        groups = [g for g in (*dims, *(g for g in order if g not in dims)) if g in kept]
        lines += [(groups, inner) for inner in range(1, max(len(groups), 2))]
    return sorted(lines, key=lambda line: tuple(line[0][: line[1]]) not in runs)


class _Ways:
    """The accesses of shared memory by which a box is read and written."""

    def __init__(self, crossing: Crossing, tile: Sequence[int]) -> None:
        self.crossing, self.tile = crossing, tile
        self._known: dict[object, Any] = {}
        self.sizes = {element_of(v).byte_size for v, _, _ in crossing.reads}

    def widths(self) -> Iterator[tuple[int, int]]:
        """Widths of both walks that are tried."""
        crossing, tile = self.crossing, self.tile
        written = min(element_of(v).byte_size for v in crossing.outputs)
        first = _widths(crossing.run_read(tile), min(self.sizes))
        second = _widths(crossing.run_written(tile), written)
        yield from ((a, b) for a in first for b in second)

    def accesses(self, widths: tuple[int, int]) -> float:
        """Accesses of shared memory, for each that full warps would do."""
        count = 0
        total = prod(self.tile)
        crossing = self.crossing
        runs = crossing.run_read(self.tile), crossing.run_written(self.tile)
        for run, width in zip(runs, widths, strict=True):
            slots = run.length + (0 if run.is_aligned else SECTOR // max(self.sizes) - 1)
            rows = -(-(total // run.length) * width // _WARP)
            count += rows * -(-slots // width)
        return count * _WARP / total

    def waits(
        self, widths: tuple[int, int], layout: Layout, enough: int, *, is_across: bool
    ) -> int:
        """Accesses of more than a word in a bank, of both walks; no more are counted than are enough."""
        orders = orders_of(self.crossing, is_across=is_across)
        total = self.waits_of(0, widths[0], layout, orders[0], enough)
        if total < enough:
            total += self.waits_of(1, widths[1], layout, orders[1], enough - total)
        return total

    def waits_of(
        self, number: int, width: int, layout: Layout, order: Sequence[int], enough: int = 1
    ) -> int:
        """The same of one walk: 0 reads global memory, 1 writes it."""
        total = 0
        for size in self.sizes:
            for indices in self._accesses(number, order, width, size):
                total += _waits(indices, layout, size)
                if total >= enough:
                    return total
        return total

    def _accesses(
        self, walk: int, order: Sequence[int], width: int, size: int
    ) -> Iterator[Mapping[int, Any]]:
        """Indices of the box along each group, by access and lane, -1 for lanes that have none: of a few accesses, then
        of the others, for each of the offsets in sectors that boxes start at."""
        crossing, tile = self.crossing, self.tile
        if walk == 0:
            run, strides = crossing.run_read(tile), crossing.strides
            starts = [start for v, _, start in crossing.reads if element_of(v).byte_size == size]
            sector = SECTOR // size
        else:
            run, strides = crossing.run_written(tile), crossing.steps
            starts, sector = [0], SECTOR // max(element_of(v).byte_size for v in crossing.outputs)
        step = gcd(sector, *(t * n for t, n in zip(tile, strides, strict=True)))
        offsets = {(s + k) % sector for s in starts for k in range(0, sector, step)}
        for offset in sorted(offsets) if not run.is_aligned else (0,):
            key = (walk, tuple(order), width, sector, offset)
            if key not in self._known:
                self._known[key] = _lanes(tile, run, strides, order, width, sector, offset)
            yield self._known[key]


def _widths(run: Run, size: int) -> list[int]:
    """Threads that may share a run; fewer would move parts of sectors."""
    widths = [min(_WARP, 1 << (run.length - 1).bit_length())]
    while widths[-1] * size > SECTOR:
        widths.append(widths[-1] // 2)
    return widths


def _lanes(
    tile: Sequence[int],
    run: Run,
    strides: Sequence[int],
    order: Sequence[int],
    width: int,
    sector: int,
    offset: int,
) -> Mapping[int, Any]:
    import numpy as np

    others = [g for g in order if g not in run.dims and tile[g] > 1]
    count = prod(tile[g] for g in others)
    slots = run.length + (0 if run.is_aligned else sector - 1)
    chunks = -(-slots // width)
    side = _WARP // width
    rows = -(-count // side) * side
    number = np.arange(rows).reshape(-1, 1, side, 1)
    place = np.arange(chunks * width).reshape(1, chunks, 1, width)
    found: dict[int, Any] = {}
    rest, linear = number, np.full_like(number, offset)
    for group in others:
        found[group] = rest % tile[group]
        rest = rest // tile[group]
        linear = linear + found[group] * strides[group]
    if not run.is_aligned:
        place = place - linear % sector
    inside = (number < count) & (place >= 0) & (place < run.length)
    rest = place
    for group in run.dims:
        found[group] = rest % tile[group]
        rest = rest // tile[group]
    return {g: np.where(inside, at, -1).reshape(-1, _WARP) for g, at in found.items()}


def _waits(way: Mapping[int, Any], layout: Layout, size: int) -> int:
    """Accesses of more than a word in a bank."""
    import numpy as np

    total = 0
    whole = next(iter(way.values()))
    for part in (slice(0, _FEW), slice(_FEW, None)):
        index = sum(at[part] * layout.pitches.get(group, 0) for group, at in way.items())
        if layout.swizzle:
            every, times, unit = layout.swizzle
            index = index ^ (index // every % times * unit)
        lanes = _WARP if size <= _WORD else _WARP * _WORD // size
        is_there = whole[part].reshape(-1, lanes) >= 0
        unit = max(size, _WORD)
        words = np.asarray(index).reshape(-1, lanes) * size // unit
        words = np.sort(np.where(is_there, words, -1), axis=1)
        fresh = (words >= 0) & np.diff(words, axis=1, prepend=-1).astype(bool)
        banks = _BANKS * _WORD // unit
        rows = np.arange(len(words))[:, None] * banks
        met = np.bincount((rows + words % banks)[fresh], minlength=len(words) * banks)
        total += int((met.reshape(-1, banks).max(axis=1, initial=0) - 1).clip(0).sum())
        if total:
            break
    return total
