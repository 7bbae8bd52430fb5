"""What reshapes and transposes do to bytes: which of them are bitcasts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, Layout, default_layout


def is_plain(shape: ArrayShape) -> bool:
    """Whether nothing but an order of dimensions says where the elements are."""
    layout = shape.layout
    if layout is None:
        return not shape.is_dynamic
    plain = Layout(layout.minor_to_major, memory_space=layout.memory_space)
    return layout == plain and not shape.is_dynamic


def order_of(shape: ArrayShape) -> tuple[int, ...]:
    """Dimensions from the most major to the most minor one."""
    layout = shape.layout or default_layout(shape.rank)
    return layout.minor_to_major[::-1]


def with_order(shape: ArrayShape, sizes: Sequence[int], order: Sequence[int]) -> ArrayShape:
    """An array of other sizes, its dimensions ordered from major to minor, in the same memory."""
    layout = replace(shape.layout or default_layout(0), minor_to_major=tuple(order)[::-1])
    return ArrayShape(shape.element_type, tuple(sizes), (), layout)


def same_memory(a: ArrayShape, b: ArrayShape) -> bool:
    """Whether both are in the same memory space."""
    spaces = [0 if s.layout is None else s.layout.memory_space for s in (a, b)]
    return spaces[0] == spaces[1]


def transpose_is_bitcast(source: ArrayShape, result: ArrayShape, dims: Sequence[int]) -> bool:
    """Whether a transpose leaves every byte where it is."""
    if not same_memory(source, result) or source.element_type is not result.element_type:
        return False
    if not (is_plain(source) and is_plain(result)):
        strides = strides_of(result)
        return same_tiles(
            _tiles(source, [strides[dims.index(d)] for d in range(source.rank)]), result
        )
    before = [d for d in order_of(source) if source.dimensions[d] != 1]
    after = [dims[d] for d in order_of(result) if result.dimensions[d] != 1]
    return before == after


def groups(a: Sequence[int], b: Sequence[int]) -> list[tuple[list[int], list[int]]] | None:
    """Dimensions that a reshape makes of dimensions, in the smallest groups; ones are left out.

    None for an empty array.
    """
    if 0 in a or 0 in b:
        return None
    found: list[tuple[list[int], list[int]]] = []
    left, right = ([d for d, n in enumerate(sizes) if n != 1] for sizes in (a, b))
    i = j = 0
    while i < len(left):
        x, y, first, second = a[left[i]], b[right[j]], i, j
        while x != y:
            if x < y:
                i += 1
                x *= a[left[i]]
            else:
                j += 1
                y *= b[right[j]]
        i, j = i + 1, j + 1
        found.append((left[first:i], right[second:j]))
    return found


def _blocks(shape: ArrayShape, parts: Sequence[Sequence[int]]) -> list[int] | None:
    """Order of groups of dimensions in memory; None if one is not row-major and in one piece."""
    order = [d for d in order_of(shape) if shape.dimensions[d] != 1]
    if len(order) != sum(map(len, parts)):
        return None
    group_of = {dims[0]: number for number, dims in enumerate(parts)}
    found: list[int] = []
    place = 0
    while place < len(order):
        number = group_of.get(order[place])
        if number is None:
            return None
        dims = list(parts[number])
        if order[place : place + len(dims)] != dims:
            return None
        found.append(number)
        place += len(dims)
    return found


def reshape_is_bitcast(source: ArrayShape, result: ArrayShape) -> bool:
    """Whether a reshape leaves every byte where it is; one of mixed precision does not."""
    if not same_memory(source, result) or source.element_type is not result.element_type:
        return False
    if not (is_plain(source) and is_plain(result)):
        return same_tiles(_tiles(source, strides_of(source)), result)
    if (parts := groups(source.dimensions, result.dimensions)) is None:
        return False
    before = _blocks(source, [a for a, _ in parts])
    return before is not None and before == _blocks(result, [b for _, b in parts])


def strides_of(shape: ArrayShape) -> list[int]:
    """Distances of neighbours in each dimension, in row-major order of the elements."""
    return [math.prod(shape.dimensions[d + 1 :]) for d in range(shape.rank)]


_Level: TypeAlias = tuple[int, Fraction, int]
"""A dimension of memory: distance of neighbours in row-major order, how many there are, room for how many.

The last tile of a dimension may be full in part: the number of tiles is no whole number then.
"""


def _tiles(shape: ArrayShape, strides: Sequence[int]) -> list[_Level] | None:
    """Dimensions of memory, the most major one first; None where more than tiles says where elements are."""
    layout = shape.layout or default_layout(shape.rank)
    if not is_plain(replace_layout(shape, replace(layout, tiles=()))):
        return None
    levels: list[_Level] = [
        (strides[d], Fraction(shape.dimensions[d]), shape.dimensions[d]) for d in order_of(shape)
    ]
    for tile in layout.tiles:
        if UNBOUNDED in tile:
            return None
        # A tile of more dimensions than there are takes those that are missing for ones.
        levels = [(0, Fraction(1), 1)] * (len(tile) - len(levels)) + levels
        first = len(levels) - len(tile)
        outer: list[_Level] = []
        inner: list[_Level] = []
        for (stride, count, room), size in zip(levels[first:], tile, strict=True):
            outer.append((stride * size, max(count / size, Fraction(1)), -(-room // size)))
            inner.append((stride, min(count, Fraction(size)), size))
        levels = [*levels[:first], *outer, *inner]
    return _merged(levels)


def _merged(levels: Sequence[_Level]) -> list[_Level]:
    """The same places in as few dimensions as will do."""
    found: list[_Level] = []
    for stride, count, room in levels:
        if room == 1:
            continue
        stride = 0 if count == 1 else stride
        if found and count == room and found[-1][0] == stride * room:
            _, more, space = found.pop()
            count, room = count * more, room * space
        found.append((stride, count, room))
    return found


def same_tiles(levels: list[_Level] | None, result: ArrayShape) -> bool:
    """Whether the elements lie as in the result."""
    return levels is not None and levels == _tiles(result, strides_of(result))


def replace_layout(shape: ArrayShape, layout: Layout) -> ArrayShape:
    """The array in another layout."""
    return ArrayShape(shape.element_type, shape.dimensions, shape.dynamic, layout)


def reshaped_in_place(source: ArrayShape, sizes: Sequence[int]) -> ArrayShape | None:
    """The array of these sizes, with the layout that makes a reshape to it a bitcast; None = none."""
    if not is_plain(source) or (parts := groups(source.dimensions, sizes)) is None:
        return None
    if (blocks := _blocks(source, [a for a, _ in parts])) is None:
        return None
    ones = [d for d, n in enumerate(sizes) if n == 1]
    return with_order(source, sizes, [*ones, *(d for k in blocks for d in parts[k][1])])


def transposition(source: ArrayShape, result: ArrayShape) -> tuple[int, ...] | None:
    """Dimensions of a transpose that is the bitcast from `source` to `result`; None = there is none."""
    if not (is_plain(source) and is_plain(result) and source.rank == result.rank):
        return None
    pairs = list(zip(order_of(source), order_of(result), strict=True))
    if any(source.dimensions[s] != result.dimensions[r] for s, r in pairs):
        return None
    place = {r: s for s, r in pairs}
    return tuple(place[d] for d in range(result.rank))
