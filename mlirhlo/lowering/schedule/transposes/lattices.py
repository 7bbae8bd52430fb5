"""Boxes that go through two arrays of shared memory: one in the order they are read, one in the order they are written.

Threads of a warp take neighbours of a run where they read and write global memory, wherever a line of the box ends.
With one array, lanes before and after such an end may meet in a bank, whatever its padding. With two, both walks
access neighbours, and in between the lanes of a warp take a lattice of elements that meet in no bank: between lanes are
as many elements as fill a word, so that every access is of the same banks but for a rotation.

    s8[100,300] transposed:  lanes (8, 4): 8 words of a line that is read, and 4 of one that is written
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

from mlirhlo.lowering.schedule.attributes import element_of
from mlirhlo.lowering.schedule.transposes.boxes import SECTOR, Crossing

_BANKS, _WORD = 32, 4
_WARP = 32
_MANY = 64
"""Sectors that the writes of a part are, where it need not be whole sectors."""
_MAX_PAD = 16
"""Words behind a line; what a warp reads of elements that are smaller than a word is in fewer banks."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """How a box goes through two arrays."""

    pitches: tuple[int, ...]
    """Distances of neighbours along the groups of dimensions in the array that is read into, in elements."""
    written: tuple[int, ...]
    """The same in the array that results are written from."""
    lanes: tuple[int, ...]
    """Lanes of a warp along each group; their product is a warp."""
    lines: int
    """Indices of the outermost group that is read that are in the second array at once."""

    def part(self, crossing: Crossing, tile: Sequence[int]) -> tuple[int, ...]:
        """The part of a box that is in the second array at once."""
        outer = inner_groups(crossing, tile)[1][-1]
        return (*tile[:outer], self.lines, *tile[outer + 1 :])


def steps_of(crossing: Crossing, tile: Sequence[int]) -> tuple[int, ...]:
    """Elements between lanes along each group: a word along those that neighbours in memory follow."""
    word = max(_WORD // min(element_of(v).byte_size for v, _, _ in crossing.reads), 1)
    ends = [groups[0] for groups in inner_groups(crossing, tile) if groups]
    return tuple(word if g in ends else 1 for g in range(len(tile)))


def inner_groups(crossing: Crossing, tile: Sequence[int]) -> tuple[list[int], list[int]]:
    """Groups that a box has several elements along, the innermost one first: as they are read, and as written."""
    read = [g for g in crossing.order if tile[g] > 1]
    return read, sorted(read, reverse=True)


def lattices_of(crossing: Crossing, tile: Sequence[int], limit: int) -> Iterator[Lattice]:
    """Lattices without bank conflicts, those of the fewest idle lanes first; arrays take `limit` bytes at the most."""
    sizes = {element_of(v).byte_size for v, _, _ in crossing.reads}
    read, written = inner_groups(crossing, tile)
    word = max(_WORD // min(sizes), 1)
    if not read:
        return
    steps = steps_of(crossing, tile)
    pads = range(_MAX_PAD)
    ways = sorted(_lanes(tile, read), key=lambda way: _work(tile, way, steps))
    total = sum(element_of(v).byte_size for v, _, _ in crossing.reads)
    for lanes, (pad, other) in itertools.product(
        ways, sorted(itertools.product(pads, pads), key=sum)
    ):
        first = _pitches(tile, read, word, pad)
        second = _pitches(tile, written, word, other)
        if not all(
            _is_free(pitches, lanes, steps, size) for pitches in (first, second) for size in sizes
        ):
            continue
        lines = _lines(crossing, tile, written, second, limit // total - _count(tile, first))
        if lines:
            yield Lattice(first, second, lanes, lines)


def _lanes(tile: Sequence[int], groups: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Ways to divide the lanes of a warp among groups."""
    powers = [1 << n for n in range(_WARP.bit_length())]
    for counts in itertools.product(powers, repeat=len(groups)):
        if prod(counts) == _WARP:
            chosen = dict(zip(groups, counts, strict=True))
            yield tuple(chosen.get(g, 1) for g in range(len(tile)))


def _work(tile: Sequence[int], lanes: Sequence[int], steps: Sequence[int]) -> int:
    """Elements that lanes pass, with those that are outside."""
    return prod(-(-t // (n * s)) * n * s for t, n, s in zip(tile, lanes, steps, strict=True))


def _pitches(tile: Sequence[int], groups: Sequence[int], word: int, pad: int) -> tuple[int, ...]:
    """Of lines along the first group that are whole words, with so many words behind them."""
    pitches = [0] * len(tile)
    reach = 1
    for number, group in enumerate(groups):
        pitches[group] = reach
        reach *= tile[group]
        if number == 0:
            reach = (-(-reach // word) + pad) * word
    return tuple(pitches)


def _count(tile: Sequence[int], pitches: Sequence[int]) -> int:
    return 1 + sum((t - 1) * pitch for t, pitch in zip(tile, pitches, strict=True))


def _is_free(pitches: Sequence[int], lanes: Sequence[int], steps: Sequence[int], size: int) -> bool:
    """Whether lanes of a lattice are in different banks: each is at whole words from the first, wherever that is."""
    unit = max(size, _WORD)
    offsets = [0]
    for pitch, count, step in zip(pitches, lanes, steps, strict=True):
        distance = pitch * step * size
        if count > 1 and distance % unit:
            return False
        offsets = [n * distance // unit + offset for n in range(count) for offset in offsets]
    together = _WARP * _WORD // unit
    return all(
        len({n % together for n in offsets[start : start + together]}) == together
        for start in range(0, _WARP, together)
    )


def _lines(
    crossing: Crossing,
    tile: Sequence[int],
    written: Sequence[int],
    pitches: Sequence[int],
    limit: int,
) -> int:
    """Indices of the outermost group, all or as many as make whole sectors, that the second array holds."""
    if _count(tile, pitches) <= limit:
        return tile[written[-1]]
    outer = written[-1]
    bytes_ = crossing.steps[outer] * max(element_of(v).byte_size for v in crossing.outputs)
    inner = _count([1 if g == outer else t for g, t in enumerate(tile)], pitches)
    lines = (limit - inner) // pitches[outer] + 1 if limit >= inner else 0
    # Sectors at the ends of parts are written twice: there are none, or many others.
    multiple = 1 if lines * bytes_ >= _MANY * SECTOR else SECTOR // gcd(SECTOR, bytes_)
    lines -= lines % multiple
    is_whole = tile[outer] == crossing.sizes[outer]
    while lines > 0 and not is_whole and tile[outer] % lines:
        lines -= multiple
    return lines
