"""Which dimensions of an instruction's operands and results belong together: its factors.

A factor is an extent of the iteration space of an instruction. A dimension is made of one factor, or of
several (a reshape's), major first. Cut a factor along some axes in every operand and result, and each
device can do its part by the same opcode on its tiles. One table serves propagation and partitioning.
Source: reference of the passes, "Partitioning"; Shardy's operation sharding rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.rewrites.spmd.grid import Axes, Grid

Dims = tuple[tuple[int, ...], ...]
"""For each dimension of an array its factors, major first."""


@dataclass(slots=True)
class Factors:
    """The factors of one instruction."""

    operands: list[Dims] = field(default_factory=list[Dims])
    """`()` for scalars and what is no array."""
    results: list[Dims] = field(default_factory=list[Dims])
    """For each leaf of the result."""
    sizes: list[int] = field(default_factory=list[int])
    """Of the factors; of shifted ones, in the result."""
    reduced: set[int] = field(default_factory=set[int])
    """Summed (or folded) over: results are partial along their axes."""
    whole: set[int] = field(default_factory=set[int])
    """Every device needs all of it."""
    shifted: set[int] = field(default_factory=set[int])
    """Elements stay near their places but not on them (slice, pad, windows): cut only by a strategy that
    fetches what neighbours have; sizes of operand and result differ."""

    def new(self, size: int, kind: set[int] | None = None) -> int:
        """Another factor."""
        self.sizes.append(size)
        if kind is not None:
            kind.add(len(self.sizes) - 1)
        return len(self.sizes) - 1

    @property
    def is_elementwise(self) -> bool:
        """Whether every array has the same factors in the same order."""
        every = [d for d in (*self.operands, *self.results) if d]
        return all(d == every[0] for d in every) and not (
            self.reduced or self.whole or self.shifted
        )


def leaves(shape: Shape) -> tuple[Shape, ...]:
    """The arrays and tokens of a shape, in order."""
    if isinstance(shape, TupleShape):
        return tuple(leaf for element in shape.elements for leaf in leaves(element))
    return (shape,)


def rank_of(shape: Shape) -> int:
    """Dimensions; 0 for what is no array."""
    return shape.rank if isinstance(shape, ArrayShape) else 0


def sizes_of(shape: Shape) -> tuple[int, ...]:
    """Sizes; `()` for what is no array."""
    return shape.dimensions if isinstance(shape, ArrayShape) else ()


# ---------------------------------------------------------------- axes of dimensions and of factors


def spread(axes: Axes, factors: Sequence[int], sizes: Sequence[int], grid: Grid) -> dict[int, Axes]:
    """Axes of a dimension handed on to its factors, as many as fall into whole parts."""
    if len(factors) == 1:
        return {factors[0]: axes}
    found: dict[int, Axes] = {}
    left = list(axes)
    for factor in factors:
        taken: list[int] = []
        while left and sizes[factor] % grid.product((*taken, left[0])) == 0:
            taken.append(left.pop(0))
        found[factor] = tuple(taken)
        if grid.product(taken) != sizes[factor]:
            break  # minor factors are not cut before all of this one is
    return found


def gathered(
    factors: Sequence[int], cuts: dict[int, Axes], sizes: Sequence[int], grid: Grid
) -> Axes:
    """Axes of a dimension from those of its factors."""
    if len(factors) == 1:
        return cuts.get(factors[0], ())
    found: list[int] = []
    for factor in factors:
        taken: list[int] = []
        for axis in cuts.get(factor, ()):
            if sizes[factor] % grid.product((*taken, axis)):
                break
            taken.append(axis)
        found += taken
        if grid.product(taken) != sizes[factor]:
            break
    return tuple(found)
