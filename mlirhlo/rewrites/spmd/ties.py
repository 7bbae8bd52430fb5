"""Nodes and ties of the propagation: arrays, and which of their dimensions belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlirhlo.rewrites.spmd.factors import Dims, Factors
from mlirhlo.rewrites.spmd.grid import Axes, Placement

KEEPS_ELEMENTS, ALL, CONFLICTS = 0, 1, 2
"""Levels of sweeps."""


@dataclass(slots=True, eq=False)
class Node:
    """One array of the module."""

    sizes: tuple[int, ...]
    placement: Placement | None = None
    """None: nothing known, as good as whole."""
    open: tuple[bool, ...] = ()
    """Dimensions that may be cut further."""

    def axes(self, dim: int) -> Axes:
        """Axes of a dimension."""
        return () if self.placement is None else self.placement.dims[dim]

    @property
    def elements(self) -> int:
        """Size, to weigh proposals."""
        count = 1
        for n in self.sizes:
            count *= n
        return count


@dataclass(slots=True, eq=False)
class Tie:
    """Nodes whose dimensions belong together."""

    nodes: list[Node]
    dims: list[Dims]
    factors: Factors
    level: int
    is_border: bool = False
    """Of a manual region: what is manual inside is not outside."""
    source: int | None = None
    """Number of the only node that others follow; None: each follows all."""


def same(a: Node, b: Node) -> Tie:
    """Two nodes of one size, dimension by dimension."""
    factors = Factors()
    dims: Dims = tuple((factors.new(n),) for n in a.sizes)
    return Tie([a, b], [dims, dims], factors, KEEPS_ELEMENTS)


def where_equal(a: Node, b: Node) -> Tie:
    """The dimensions of the same size: in and out of a manual region, those it leaves alone."""
    factors = Factors()
    left: list[tuple[int, ...]] = []
    right: list[tuple[int, ...]] = []
    for n, m in zip(a.sizes, b.sizes, strict=True):
        left.append((factors.new(n, None if n == m else factors.whole),))
        right.append(left[-1] if n == m else (factors.new(m, factors.whole),))
    return Tie([a, b], [tuple(left), tuple(right)], factors, KEEPS_ELEMENTS, is_border=True)


def manual_of(tie: Tie) -> frozenset[int]:
    """Axes that are manual in any node, and so in all."""
    if tie.is_border:
        return frozenset()
    sets = [node.placement.manual for node in tie.nodes if node.placement is not None]
    return frozenset[int]().union(*sets)


def pairs(left: Sequence[Node | None], right: Sequence[Node | None]) -> Iterator[Tie]:
    """Ties of the arrays of two values, one by one."""
    for a, b in zip(left, right, strict=True):
        if a is not None and b is not None and sizes_match(a, b):
            yield same(a, b)


def sizes_match(a: Node, b: Node) -> bool:
    """Whether two nodes are arrays of the same sizes."""
    return a.sizes == b.sizes
