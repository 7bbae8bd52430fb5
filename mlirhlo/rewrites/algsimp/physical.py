"""What reshapes and transposes do to bytes: which of them are bitcasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlirhlo.dialects.hlo.shapes import ArrayShape, Layout, default_layout


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
    if not (is_plain(source) and is_plain(result) and same_memory(source, result)):
        return False
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
    """Whether a reshape leaves every byte where it is."""
    if not (is_plain(source) and is_plain(result) and same_memory(source, result)):
        return False
    if (parts := groups(source.dimensions, result.dimensions)) is None:
        return False
    before = _blocks(source, [a for a, _ in parts])
    return before is not None and before == _blocks(result, [b for _, b in parts])


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
