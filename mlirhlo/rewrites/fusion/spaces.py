"""How elements of arrays stand to each other: rows, columns, and what is walked alike.

Everything goes by the order of dimensions in memory, most major first, dimensions of size 1 left
out: `f32[4,1,8]` with the default layout is 4 rows of 8.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import Enum, auto
from math import prod
from typing import cast

from mlirhlo.dialects.hlo.ops import BroadcastOp, ReduceOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of


def major_to_minor(shape: ArrayShape) -> tuple[int, ...]:
    """Logical dimensions in the order of memory, most major first."""
    if shape.layout is None:
        return tuple(range(shape.rank))
    return shape.layout.minor_to_major[::-1]


@functools.lru_cache(maxsize=1 << 14)
def same_elements(before: ArrayShape, after: ArrayShape) -> bool:
    """Whether two shapes differ by dimensions of size 1 only."""
    if before.element_type is not after.element_type:
        return False

    def sizes(shape: ArrayShape) -> list[int]:
        return [n for d in major_to_minor(shape) if (n := shape.dimensions[d]) != 1]

    return sizes(before) == sizes(after) and _in_order(before) and _in_order(after)


def _in_order(shape: ArrayShape) -> bool:
    """Whether memory has the dimensions in their logical order."""
    order = [d for d in major_to_minor(shape) if shape.dimensions[d] != 1]
    return order == sorted(order)


@dataclass(frozen=True, slots=True)
class Rows:
    """An array cut into rows along its most minor dimensions."""

    space: tuple[object, ...]
    """Dimensions of the array and their order."""
    count: int
    columns: int
    """Elements of a row."""
    row_bytes: int


class FoldKind(Enum):
    """Which dimensions a reduce folds."""

    ROWS = auto()
    """The most minor ones: a number for each row."""
    COLUMNS = auto()
    """The most major ones."""
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Fold:
    """What a reduce does to its operands."""

    kind: FoldKind
    space: tuple[object, ...]
    """Of the operands."""
    elements: int
    dimensions: tuple[int, ...]
    rows: Rows | None
    """For `ROWS`."""


def reduce_fold(op: ReduceOp) -> Fold | None:
    """How a reduce folds; None when its operands are not walked alike."""
    count = len(op.inputs) // 2
    shapes = [cast(ArrayShape, shape_of(v.type)) for v in op.inputs[:count]]
    first = shapes[0]
    order = major_to_minor(first)
    if any(s.dimensions != first.dimensions or major_to_minor(s) != order for s in shapes):
        return None
    results = shape_of(op.output.type)
    result = results if isinstance(results, ArrayShape) else None
    if result is not None and not _keeps_order(first, op.dimensions, result):
        return Fold(FoldKind.OTHER, (first.dimensions, order), first.element_count, (), None)
    folded = set(op.dimensions)
    real = [d for d in order if first.dimensions[d] != 1]
    flags = [d in folded for d in real]
    space = (first.dimensions, order)
    dimensions = tuple(sorted(folded))
    n = first.element_count
    columns = prod(first.dimensions[d] for d in folded)
    if columns > 1 and flags == sorted(flags):
        size = max(s.element_type.byte_size for s in shapes)
        rows = Rows(space, n // columns, columns, columns * size)
        return Fold(FoldKind.ROWS, space, n, dimensions, rows)
    kind = FoldKind.COLUMNS if flags == sorted(flags, reverse=True) else FoldKind.OTHER
    return Fold(kind, space, n, dimensions, None)


def _keeps_order(operand: ArrayShape, folded: tuple[int, ...], result: ArrayShape) -> bool:
    """Whether what is left of the dimensions stands in memory as before."""
    kept = [d for d in range(operand.rank) if d not in folded]
    place = {d: i for i, d in enumerate(kept)}
    left = [place[d] for d in major_to_minor(operand) if d in place and operand.dimensions[d] != 1]
    order = [d for d in major_to_minor(result) if result.dimensions[d] != 1]
    return left == order


class SpreadKind(Enum):
    """Where a broadcast puts its operand."""

    SCALAR = auto()
    ROWS = auto()
    """Each element along a row."""
    COLUMNS = auto()
    """The whole in every row."""
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Spread:
    """What a broadcast does."""

    kind: SpreadKind
    key: tuple[object, ...]
    """Equal for broadcasts that read equal places."""


def broadcast_spread(op: BroadcastOp) -> Spread:
    """Where a broadcast puts its operand's elements."""
    operand = cast(ArrayShape, shape_of(op.operand.type))
    result = cast(ArrayShape, shape_of(op.output.type))
    key = ("broadcast", op.dimensions, operand.dimensions)
    if operand.element_count == 1:
        return Spread(SpreadKind.SCALAR, key)
    used = [op.dimensions[d] for d in major_to_minor(operand) if operand.dimensions[d] != 1]
    order = [d for d in major_to_minor(result) if result.dimensions[d] != 1]
    if used == order[: len(used)]:
        return Spread(SpreadKind.ROWS, key)
    if used == order[len(order) - len(used) :]:
        return Spread(SpreadKind.COLUMNS, key)
    return Spread(SpreadKind.OTHER, key)
