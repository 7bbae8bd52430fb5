"""Blocks of kind `mma`: products of 16-bit floats on the matrix units (`mma.sync`), summed in f32.

Each of four warps has 32 x 32 elements of the 64 x 64 of a block: 2 x 4 fragments of 16 x 8. Tiles of the factors, 32
terms deep, stand in shared memory as they do in memory; `ldmatrix` transposes what lies across. Rows are padded by 16
bytes, so that the eight rows of a matrix come from different banks.
"""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.lowering.builder import Index, vector_of
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.gpu.kinds.contraction import TILE, Block
from mlirhlo.lowering.gpu.launches import LaunchBuilder
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory
from mlirhlo.lowering.schedule.contractions import Problem

_PADDING = 8
_ROWS, _COLUMNS, _TERMS = 16, 8, 16
"""Of a fragment of the result, and of the factors."""
_WARP_TILE = TILE // 2
_WIDTH = 8
"""Numbers in 16 bytes."""
_LINE = 8
"""Threads that store 16 bytes each at once."""


class MatrixBlock(Block):
    """Four warps with 32 x 32 elements each."""

    depth = 32
    threads = 128

    def __init__(self, b: LaunchBuilder, problem: Problem) -> None:
        super().__init__(b, problem)
        self.factor: PrimitiveType = array(yielded(self.op.body)[0]).element_type
        self.is_across = [problem.is_minor(side, problem.terms) for side in (0, 1)]
        type_ = memory_type(self.factor)
        self.tiles = [
            b.shared(
                [TILE, self.depth + _PADDING] if across else [self.depth, TILE + _PADDING], type_
            )
            for across in self.is_across
        ]
        self.lane, warp = b.rem(self.thread, 32), b.div(self.thread, 32)
        self.row = b.mul(b.div(warp, 2), _WARP_TILE)
        self.column = b.mul(b.rem(warp, 2), _WARP_TILE)

    def share(self, number: Index, along: int) -> tuple[Index, Index]:
        """As `Block.share`: eight neighbouring threads, which store at once, have as many rows."""
        b = self.b
        if along >= _LINE:
            return super().share(number, along)
        part = b.rem(b.div(number, _LINE), along)
        row = b.add(b.mul(b.div(number, _LINE * along), _LINE), b.rem(number, _LINE))
        return part, row

    def keep(
        self, side: int, place: tuple[Index, Index], value: Value, element: PrimitiveType
    ) -> None:
        """As `Block.keep`: in the order of memory."""
        term, line = place
        indices = (line, term) if self.is_across[side] else (term, line)
        self.b.store(to_memory(self.b, value[0], element), self.tiles[side], indices)

    def _matrices(self, side: int, first_line: Index, first_term: int) -> SSAValue:
        """Four matrices, 16 lines by 16 terms: a fragment of the first factor, or two of the second one."""
        b = self.b
        in_matrix = b.rem(self.lane, 8)
        second, fourth = b.rem(b.div(self.lane, 8), 2), b.div(self.lane, 16)
        # Of the first factor lines change first from matrix to matrix, of the second one terms.
        lines, terms = (second, fourth) if side == 0 else (fourth, second)
        line, term = b.mul(lines, 8), b.mul(terms, 8)
        if self.is_across[side]:
            line = b.add(line, in_matrix)
        else:
            term = b.add(term, in_matrix)
        line, term = b.add(first_line, line), b.add(term, first_term)
        across = self.is_across[side]
        indices = (line, term) if across else (term, line)
        return b.ldmatrix(self.tiles[side], indices, transpose=not across)

    def results(self) -> list[tuple[tuple[Index, Index], Value]]:
        """As `Block.results`."""
        b = self.b
        type_ = vector_of(f32, 4)
        down, across = _WARP_TILE // _ROWS, _WARP_TILE // _COLUMNS
        zeros = [b.constant(0.0, type_)] * (down * across)
        with b.loop(0, self.terms, self.depth, zeros, nonempty=True) as loop, b.e.scope():
            for side in (0, 1):
                self.load(side, loop.index, _WIDTH, self.factor)
            b.barrier()
            sums = list(loop.carried)
            for term in range(0, self.depth, _TERMS):
                firsts = [self._matrices(0, b.add(self.row, n * _ROWS), term) for n in range(down)]
                seconds = [
                    part
                    for n in range(across // 2)
                    for both in [self._matrices(1, b.add(self.column, n * 2 * _COLUMNS), term)]
                    for part in (b.shuffle(both, both, [0, 1]), b.shuffle(both, both, [2, 3]))
                ]
                sums = [
                    b.mma(self.factor.name, firsts[n // across], seconds[n % across], total)
                    for n, total in enumerate(sums)
                ]
            b.barrier()
            loop.carry(*sums)
        fragments = [[b.extract(total, part) for part in range(4)] for total in loop.results]
        found: list[tuple[tuple[Index, Index], Value]] = []
        first_row, first_column = (
            b.add(self.first_row, self.row),
            b.add(self.first_column, self.column),
        )
        row = b.add(first_row, b.div(self.lane, 4))
        for n in range(0, len(fragments), 2):
            column = b.add(first_column, n % across * _COLUMNS)
            for half in (0, 1):
                pairs = [fragment[2 * half :][:2] for fragment in fragments[n : n + 2]]
                at = b.add(row, n // across * _ROWS + half * 8)
                found += [((at, b.add(column, c)), (v,)) for c, v in self._neighbours(*pairs)]
        return found

    def _neighbours(
        self, first: list[SSAValue], second: list[SSAValue]
    ) -> list[tuple[Index, SSAValue]]:
        """A thread's elements of a row of two fragments beside each other, as columns and numbers.

        Of 16-bit results, which a fragment has half a sector of, threads exchange pairs: each gets four neighbours.
        """
        b = self.b
        pair = b.rem(self.lane, 4)
        if array(self.op.output).element_type.bits > 16:
            start = b.mul(pair, 2)
            starts = (start, b.add(start, _COLUMNS))
            return [
                (b.add(at, n), v)
                for at, values in zip(starts, (first, second), strict=True)
                for n, v in enumerate(values)
            ]
        parity = b.rem(self.lane, 2)
        is_odd = b.cmpi("eq", b.index(parity), b.index(1))
        sent = [b.select(is_odd, v, w) for v, w in zip(first, second, strict=True)]
        got = [b.warp_shuffle("xor", v, 1) for v in sent]
        values = [
            b.select(is_odd, v, w) for v, w in zip([*got, *second], [*first, *got], strict=True)
        ]
        start = b.mul(b.add(b.div(pair, 2), b.mul(parity, 2)), 4)
        return [(b.add(start, n), v) for n, v in enumerate(values)]
