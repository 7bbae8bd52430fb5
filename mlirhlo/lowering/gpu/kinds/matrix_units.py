"""Blocks of kind `mma`: products on the matrix units (`mma.sync`).

Warps have tiles of fragments, 16 x 8 sums each. `ldmatrix` reads fragments of the factors from shared memory, 32 bytes
of terms at a time, and transposes numbers of 16 bits whose lines stand beside each other; wider ones are read one by
one. Doubles are multiplied 8 x 8 sums and four terms at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f64, i32
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.lowering.builder import Index, vector_of
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.gpu.kinds.contraction import Block, Neighbours
from mlirhlo.lowering.gpu.kinds.factor_tiles import FOURS, PAIRS, UNITS, Order, Point, order_of
from mlirhlo.lowering.gpu.kinds.fragments import COLUMNS as _COLUMNS
from mlirhlo.lowering.gpu.kinds.fragments import ROWS as _ROWS
from mlirhlo.lowering.gpu.kinds.fragments import fragment_elements
from mlirhlo.lowering.gpu.launches import LaunchBuilder
from mlirhlo.lowering.gpu.nvvm_matrices import MMA
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.matrix_products import MatrixProduct

_STEP_BYTES = 32
"""Of terms that are multiplied at once."""


class MatrixBlock(Block):
    """Warps with several fragments each."""

    def __init__(self, b: LaunchBuilder, product: MatrixProduct, schedule: Schedule) -> None:
        super().__init__(b, product, schedule)
        factor: PrimitiveType = array(yielded(self.op.body)[0]).element_type
        self.kind = schedule.format or factor.name
        self.is_double = factor.bits == 64
        warps = (schedule.warps_down, schedule.threads // 32 // schedule.warps_down)
        self.warp_tile = (self.sides[0] // warps[0], self.sides[1] // warps[1])
        self.fragments = (self.warp_tile[0] // _ROWS, self.warp_tile[1] // _COLUMNS)
        self.step = _STEP_BYTES // factor.byte_size
        if not all(self.fragments) or self.fragments[1] % 2 or self.depth % self.step:
            raise self.refused("warps have no whole fragments")
        self.factors = self.tiled(factor, [self._order(side, factor) for side in (0, 1)])
        self.lane, warp = b.rem(self.thread, 32), b.div(self.thread, 32)
        self.warp = (
            b.mul(b.div(warp, warps[1]), self.warp_tile[0]),
            b.mul(b.rem(warp, warps[1]), self.warp_tile[1]),
        )
        """First row and column of the warp in the tile."""
        self.is_narrow = array(self.op.output).element_type.bits <= 16

    def _order(self, side: int, element: PrimitiveType) -> Order:
        across, swizzle = self.product.is_minor(side, self.product.terms), UNITS
        if not across and element.bits == 8:
            across, swizzle = True, FOURS
        elif element.bits == 64 or (not across and element.bits == 32):
            swizzle = PAIRS
        return order_of(self, side, element, across=across, swizzle=swizzle)

    def _matrices(self, side: int, stage: Index, line: int, term: int) -> SSAValue:
        """Four registers of 16 lines: a fragment of the first factor, or two of the second one, one after the other."""
        b, factor = self.b, self.factors[side]
        if factor.layout.swizzle == PAIRS:
            return self._gathered(side, stage, line, term)
        in_matrix = b.rem(self.lane, 8)
        second, fourth = b.rem(b.div(self.lane, 8), 2), b.div(self.lane, 16)
        # Of the first factor lines change first from matrix to matrix, of the second one terms.
        lines, terms = (second, fourth) if side == 0 else (fourth, second)
        own_line, own_term = b.mul(lines, 8), b.mul(terms, factor.layout.unit)
        if factor.across:
            own_line = b.add(own_line, in_matrix)
        else:
            own_term = b.add(own_term, in_matrix)
        buffer, indices = self._loaded(side, stage, (own_line, line), (own_term, term))
        return b.ldmatrix(buffer, indices, transpose=not factor.across)

    def _loaded(
        self, side: int, stage: Index, line: Point, term: Point
    ) -> tuple[SSAValue, Sequence[Index]]:
        """Where an element is, counted from the warp's first line."""
        factor = self.factors[side]
        line = (self.b.add(self.warp[side], line[0]), line[1])
        return factor.load(stage, *((line, term) if factor.across else (term, line)))

    def _gathered(self, side: int, stage: Index, line: int, term: int) -> SSAValue:
        """As `_matrices`, of numbers of 32 bits whose lines stand beside each other."""
        b = self.b
        group, member = b.div(self.lane, 4), b.rem(self.lane, 4)
        steps = [(n, m) for m in (0, 4) for n in (0, 8)]
        four = b.constant(0, vector_of(i32, 4))
        for register, (lines, terms) in enumerate(sorted(steps) if side else steps):
            buffer, indices = self._loaded(
                side, stage, (group, line + lines), (member, term + terms)
            )
            four = b.insert(b.bitcast(b.load(buffer, indices), i32), four, register)
        return four

    def _doubles(self, side: int, stage: Index, line: int, term: int) -> SSAValue:
        """A double of 8 lines and four terms."""
        b = self.b
        own = b.div(self.lane, 4), b.rem(self.lane, 4)
        buffer, indices = self._loaded(side, stage, (own[0], line), (own[1], term))
        one = b.constant(0.0, vector_of(f64, 1))
        return b.insert(b.load(buffer, indices), one, 0)

    def _multiply_doubles(self, stage: Index, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """Each fragment is two halves of eight rows, one after the other."""
        b, (down, across) = self.b, self.fragments
        for term in range(0, self.depth, self.step):
            firsts = [self._doubles(0, stage, n * 8, term) for n in range(2 * down)]
            seconds = [self._doubles(1, stage, n * _COLUMNS, term) for n in range(across)]
            sums = [
                b.mma(self.kind, firsts[n // 2 // across * 2 + n % 2], seconds[n // 2 % across], s)
                for n, s in enumerate(sums)
            ]
        return list(sums)

    def multiply(self, stage: Index, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """As `Block.multiply`."""
        if self.is_double:
            return self._multiply_doubles(stage, sums)
        b, (down, across) = self.b, self.fragments
        for term in range(0, self.depth, self.step):
            firsts = [self._matrices(0, stage, n * _ROWS, term) for n in range(down)]
            seconds = [
                b.shuffle(four, four, half)
                for n in range(across // 2)
                for four in [self._matrices(1, stage, n * 2 * _COLUMNS, term)]
                for half in ([0, 1], [2, 3])
            ]
            sums = [
                b.mma(self.kind, firsts[n // across], seconds[n % across], total)
                for n, total in enumerate(sums)
            ]
        return list(sums)

    def results(self) -> list[Neighbours]:
        """As `Block.results`."""
        b = self.b
        down, across = self.fragments
        halves = 1 + self.is_double
        zero = b.constant(0, vector_of(MMA[self.kind].element, 4 // halves))
        sums = self.summed(self.factors, [zero] * (down * across * halves))
        flat = [b.extract(total, part) for total in sums for part in range(4 // halves)]
        parts = [flat[n : n + 4] for n in range(0, len(flat), 4)]
        first = [b.add(self.first[side], self.warp[side]) for side in (0, 1)]
        return fragment_elements(b, parts, across, (first[0], first[1]), self.is_narrow)
