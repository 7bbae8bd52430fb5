"""Layouts with which an instruction that moves elements does not have to: it is a bitcast.

A layout is a tuple of dimensions, the most minor one first, as in HLO text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Order: TypeAlias = tuple[int, ...]
"""Dimensions, minor to major."""


def descending(rank: int) -> Order:
    """The layout of who has no wish: the last dimension is the most minor."""
    return tuple(range(rank - 1, -1, -1))


def permuted(order: Order, dimensions: Sequence[int]) -> Order:
    """Operand layout of a transpose, given that of its result; result dimension i is `dimensions[i]`."""
    return tuple(dimensions[dim] for dim in order)


def unpermuted(order: Order, dimensions: Sequence[int]) -> Order:
    """Result layout of a transpose, given that of its operand."""
    inverse = {dim: at for at, dim in enumerate(dimensions)}
    return tuple(inverse[dim] for dim in order)


def kept(order: Order, dimensions: Sequence[int]) -> Order:
    """Layout of the dimensions listed, in the order that they have in a larger array."""
    number = {dim: at for at, dim in enumerate(dimensions)}
    return tuple(number[dim] for dim in order if dim in number)


def reshaped(order: Order, sizes: Sequence[int], target: Sequence[int]) -> Order | None:
    """Layout of `target` with which a reshape from `sizes` in `order` moves nothing; None if there is none.

    Dimensions of one element go where they keep the rest descending.
    """
    groups = _groups(sizes, target)
    if groups is None:
        return None
    group_of = {dim: at for at, (before, _) in enumerate(groups) for dim in before}
    seen: list[int] = []
    laid = [dim for dim in order if sizes[dim] != 1]
    place = 0
    while place < len(laid):
        at = group_of[laid[place]]
        before, after = groups[at]
        # Merged or split dimensions have to lie side by side, the last one the most minor.
        if tuple(laid[place : place + len(before)]) != tuple(reversed(before)):
            return None
        seen += reversed(after)
        place += len(before)
    return _with_ones(seen, target)


def _groups(
    sizes: Sequence[int], target: Sequence[int]
) -> list[tuple[list[int], list[int]]] | None:
    """The smallest runs of dimensions, but for those of one element, with equally many elements."""
    if 0 in sizes or 0 in target:
        return None
    source = [dim for dim, size in enumerate(sizes) if size != 1]
    result = [dim for dim, size in enumerate(target) if size != 1]
    groups: list[tuple[list[int], list[int]]] = []
    while source or result:
        if not source or not result:
            return None
        before, after = [source.pop(0)], [result.pop(0)]
        have, want = sizes[before[0]], target[after[0]]
        while have != want:
            if have < want:
                if not source:
                    return None
                before.append(source.pop(0))
                have *= sizes[before[-1]]
            else:
                if not result:
                    return None
                after.append(result.pop(0))
                want *= target[after[-1]]
        groups.append((before, after))
    return groups


def _with_ones(order: Sequence[int], sizes: Sequence[int]) -> Order:
    """Adds the dimensions of one element: each just inside of the one before it."""
    major = list(reversed(order))
    for dim, size in enumerate(sizes):
        if size == 1:
            major.insert(major.index(dim - 1) + 1 if dim else 0, dim)
    return tuple(reversed(major))
