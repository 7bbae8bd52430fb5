"""Batches of matrices in graphs: masks, diagonals, identities."""

from __future__ import annotations

from collections.abc import Sequence

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.rewrites.legalize.indexed_loops import S32
from mlirhlo.rewrites.linear_algebra.client import Graph, Value


def triangle(value: Value, direction: str) -> Value:
    """Where the row stands in `direction` (GE: lower triangle, GT: without diagonal …) of the column."""
    graph, rank = value.graph, value.rank
    rows = graph.iota(S32, value.sizes, rank - 2)
    return rows.compare(direction, graph.iota(S32, value.sizes, rank - 1))


def identity(graph: Graph, type_: PrimitiveType, sizes: Sequence[int]) -> Value:
    """Ones on the diagonal, of matrices of `sizes` with leading batch dimensions."""
    rank = len(sizes)
    rows = graph.iota(S32, sizes, rank - 2)
    return rows.compare("EQ", graph.iota(S32, sizes, rank - 1)).convert(type_)


def diagonal(value: Value) -> Value:
    """The diagonals of square matrices."""
    zeros = value.graph.full(value.type, value.sizes)
    return triangle(value, "EQ").select(value, zeros).reduce("add", (value.rank - 1,))


def with_diagonal(value: Value, numbers: Value) -> Value:
    """Square matrices with other diagonals."""
    rank = value.rank
    spread = numbers.broadcast_in_dim(value.sizes, range(rank - 1))
    return triangle(value, "EQ").select(spread, value)


def over_batch(value: Value, sizes: Sequence[int]) -> Value:
    """A number a batch element, at every place of arrays of `sizes`."""
    return value.broadcast_in_dim(sizes, range(value.rank))
