"""Blocks of kind `tiles`: products of any numbers, by the threads themselves.

A warp is 8 threads down by 4 across. Threads read units of 16 bytes of the factors' tiles: of lines beside each other,
or of terms, and then the rows of a thread are as far apart as there are threads, so that a warp reads eight rows that
follow one another.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.kinds.contraction import Block, Neighbours
from mlirhlo.lowering.gpu.kinds.factor_tiles import Point, order_of
from mlirhlo.lowering.gpu.launches import LaunchBuilder
from mlirhlo.lowering.hlo_to_loops.elements import Value, to_register
from mlirhlo.lowering.hlo_to_loops.folds import product_sum, zero_element
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.matrix_products import MatrixProduct

_WARP = (8, 4)
"""Threads down and across."""


class ScalarBlock(Block):
    """Each thread has elements of several rows and columns."""

    def __init__(self, b: LaunchBuilder, product: MatrixProduct, schedule: Schedule) -> None:
        super().__init__(b, product, schedule)
        warps = schedule.threads // 32
        grid = (schedule.warps_down, warps // schedule.warps_down)
        self.grid = tuple(n * m for n, m in zip(_WARP, grid, strict=True))
        """Threads down and across."""
        orders = [
            order_of(self, side, self.element, across=product.is_minor(side, product.terms))
            for side in (0, 1)
        ]
        self.factors = self.tiled(self.element, orders)
        lane, warp = b.rem(self.thread, 32), b.div(self.thread, 32)
        self.position = (
            b.add(b.rem(lane, 8), b.mul(b.rem(warp, grid[0]), 8)),
            b.add(b.div(lane, 8), b.mul(b.div(warp, grid[0]), 4)),
        )
        self.counts = [n // m for n, m in zip(self.sides, self.grid, strict=True)]
        if any(n % f.layout.unit for n, f in zip(self.counts, self.factors, strict=True)):
            raise self.refused("threads have no whole units of rows or columns")

    def _lines(self, side: int) -> list[Point]:
        """The lines of a factor that a thread multiplies."""
        b, factor = self.b, self.factors[side]
        position, threads, unit = self.position[side], self.grid[side], factor.layout.unit
        if factor.across:
            return [(position, n * threads) for n in range(self.counts[side])]
        return [
            (b.mul(position, unit), n // unit * unit * threads + n % unit)
            for n in range(self.counts[side])
        ]

    def _elements(self, side: int, stage: Index, first: int) -> list[list[Value]]:
        """Elements of a unit of terms from the first on, a list a term."""
        b, factor = self.b, self.factors[side]
        unit = factor.layout.unit
        lines = self._lines(side)

        def loaded(slow: Point, fast: Point) -> list[Value]:
            buffer, (at, index) = factor.load(stage, slow, fast)
            values = [b.load(buffer, (at, b.add(index, lane))) for lane in range(unit)]
            return [(to_register(b, v, self.element),) for v in values]

        if factor.across:
            rows = [loaded(line, (0, first)) for line in lines]
            return [[row[term] for row in rows] for term in range(unit)]
        return [
            [v for line in lines[::unit] for v in loaded((0, first + term), line)]
            for term in range(unit)
        ]

    def multiply(self, stage: Index, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """As `Block.multiply`."""
        e, across = self.b.e, self.counts[1]
        for first in range(0, self.depth, self.factors[0].layout.unit):
            terms = zip(*(self._elements(side, stage, first) for side in (0, 1)), strict=True)
            for left, right in terms:
                sums = [
                    product_sum(
                        e.elements(), (total,), left[n // across], right[n % across], self.element
                    )[0]
                    for n, total in enumerate(sums)
                ]
        return list(sums)

    def results(self) -> list[Neighbours]:
        """As `Block.results`."""
        b = self.b
        (zero,) = zero_element(b.e.elements(), self.element)
        down, across = self.counts
        sums = self.summed(self.factors, [zero] * (down * across))
        columns = self._lines(1)
        unit = 1 if self.factors[1].across else self.factors[1].layout.unit
        neighbours: list[Neighbours] = []
        for number, row in enumerate(self._lines(0)):
            for first in range(0, across, unit):
                at = [
                    b.add(f, b.add(*p))
                    for f, p in zip(self.first, (row, columns[first]), strict=True)
                ]
                values = sums[number * across + first :][:unit]
                neighbours.append(((at[0], at[1]), [(v,) for v in values]))
        return neighbours
