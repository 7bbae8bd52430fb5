"""Sets of lanes: a slice where they are neighbours, else a sorted array of indices.

A register is an array with one element a lane; `register[lanes]` reads and `register[lanes] = values`
writes the elements of a set in either form, and a slice copies nothing.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Lanes: TypeAlias = slice | NDArray[np.intp]

WARP = 32
"""Lanes of a warp."""


def span(start: int, stop: int) -> slice:
    """The lanes from `start` up to, but not including, `stop`."""
    return slice(start, stop)


def size(lanes: Lanes) -> int:
    """Number of lanes in the set."""
    return lanes.stop - lanes.start if isinstance(lanes, slice) else len(lanes)


def indices(lanes: Lanes) -> NDArray[np.intp]:
    """The lanes as a sorted array."""
    if isinstance(lanes, slice):
        return np.arange(int(lanes.start), int(lanes.stop), dtype=np.intp)
    return lanes


def compact(numbers: NDArray[np.intp]) -> Lanes:
    """The set of the sorted `numbers`, as a slice if they are neighbours. They must not be empty."""
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if last - first + 1 == len(numbers) else numbers


def narrow(lanes: Lanes, keep: NDArray[np.bool_]) -> Lanes | None:
    """The lanes whose element of `keep` is true; None when there is none."""
    count = int(np.count_nonzero(keep))
    if count == len(keep):
        return lanes
    if not count:
        return None
    chosen = np.flatnonzero(keep)
    return compact(chosen + lanes.start if isinstance(lanes, slice) else lanes[chosen])


def union(one: Lanes, other: Lanes) -> Lanes:
    """The lanes of two disjoint sets."""
    if isinstance(one, slice) and isinstance(other, slice):
        if one.stop == other.start:
            return slice(one.start, other.stop)
        if other.stop == one.start:
            return slice(other.start, one.stop)
    return compact(np.sort(np.concatenate((indices(one), indices(other)))))


def split(lanes: Lanes, keys: NDArray[Any]) -> list[tuple[Any, Lanes]]:
    """Splits a set by the key of each lane, in ascending order of the keys."""
    if not len(keys):
        return []
    if (keys == keys[0]).all():
        return [(keys[0], lanes)]
    numbers = indices(lanes)
    return [(key, compact(numbers[keys == key])) for key in np.unique(keys)]
