"""How boxes lie in shared memory, so that no warp accesses a bank twice at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlirhlo.lowering.schedule.attributes import element_of
from mlirhlo.lowering.schedule.boxes import Crossing, Run

_BANKS, _WORD = 32, 4
"""Banks, and bytes of a word of one."""
_WARP = 32
_ACCESSES = 32
"""Accesses that are looked at."""
_TRIES = 48
"""Placings that are tried for each order and width."""
_NARROW = 8
"""Fewer threads that share a run touch parts of sectors."""


@dataclass(frozen=True, slots=True)
class Placing:
    """How a box lies in shared memory."""

    waits: int
    """Accesses of some warps that wait for others."""
    width: int
    """Threads that read a run together."""
    pitches: tuple[int, ...]
    """Distances of neighbours along the groups of dimensions, in elements."""


def placing_of(crossing: Crossing, tile: Sequence[int]) -> Placing:
    """The placing of the fewest conflicts among some: as the box lies in what is read, or in the results, padded."""
    sizes = {element_of(v).byte_size for v, _, _ in crossing.reads}
    inner_first = range(len(tile) - 1, -1, -1)
    run = crossing.run_read(tile)
    written = _lanes(tile, crossing.run_written(tile), inner_first, _WARP)
    best: Placing | None = None
    width = min(_WARP, 1 << (run.length - 1).bit_length())
    while best is None or (best.waits and width >= _NARROW):
        ways = (_lanes(tile, run, crossing.order, width), written)
        for order in (crossing.order, inner_first):
            kept = [g for g in order if tile[g] > 1 and crossing.strides[g]]
            for strides in itertools.islice(_candidates(kept, tile, min(sizes)), _TRIES):
                waits = sum(_waits(way, strides, size) for way in ways for size in sizes)
                if best is None or waits < best.waits:
                    pitches = tuple(strides.get(g, 0) for g in range(len(tile)))
                    best = Placing(waits, width, pitches)
                if not waits:
                    return best
        width //= 2
    return best


def _candidates(groups: Sequence[int], tile: Sequence[int], size: int) -> Iterator[dict[int, int]]:
    """Strides of groups, the innermost first: lines at distances of an odd number of words first, then of any."""
    word = max(_WORD // size, 1)
    if len(groups) < 2:
        yield dict.fromkeys(groups, 1)
        return
    first, second, *rest = groups
    least = -(-tile[first] // word)
    pitches = sorted(range(least, least + _BANKS), key=lambda words: words % 2 == 0)
    for pitch in pitches:
        for more in range(_BANKS) if rest else (0,):
            strides = {first: 1, second: pitch * word}
            reach = pitch * word * tile[second] + more * word
            for group in rest:
                strides[group] = reach
                reach *= tile[group]
            yield strides


def _lanes(tile: Sequence[int], run: Run, order: Sequence[int], width: int) -> Mapping[int, Any]:
    """Indices of the box along each group, by access and lane; -1 for lanes that have none."""
    import numpy as np

    groups = [*run.dims, *(g for g in order if g not in run.dims and tile[g] > 1)]
    count = prod(tile[g] for g in groups)
    width = min(width, 1 << (run.length - 1).bit_length())
    slots = -(-run.length // width) * width
    lanes = np.arange(min(count // run.length * slots, _ACCESSES * _WARP)).reshape(-1, width)
    lanes = np.pad(lanes.reshape(-1), (0, -lanes.size % _WARP), constant_values=-1)
    number, place = lanes // slots, lanes % slots
    linear = np.where((place < run.length) & (lanes >= 0), number * run.length + place, -1)
    found: dict[int, Any] = {}
    rest = linear
    for group in groups:
        found[group] = np.where(linear < 0, -1, rest % tile[group])
        rest = rest // tile[group]
    return found


def _waits(way: Mapping[int, Any], strides: Mapping[int, int], size: int) -> int:
    """Accesses of more than a word in a bank."""
    import numpy as np

    lanes = _WARP if size <= _WORD else _WARP * _WORD // size
    index = sum(at * strides.get(group, 0) for group, at in way.items())
    is_there = next(iter(way.values())).reshape(-1, lanes) >= 0
    unit = max(size, _WORD)
    words = np.asarray(index).reshape(-1, lanes) * size // unit
    words = np.sort(np.where(is_there, words, -1), axis=1)
    fresh = (words >= 0) & np.diff(words, axis=1, prepend=-1).astype(bool)
    banks = _BANKS * _WORD // unit
    rows = np.arange(len(words))[:, None] * banks
    met = np.bincount((rows + words % banks)[fresh], minlength=len(words) * banks)
    return int((met.reshape(-1, banks).max(axis=1) - 1).clip(0).sum())
