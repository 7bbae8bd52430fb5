"""Micro-kernels: a tile of the result in vector registers, over a stretch of the depth.

    for k in depth:  total[row, :] += lhs[row, k] * rhs[k, :]

A call makes any number of tiles that stand at even distances: one under the other, or side by side. Left
factors are read one by one and spread over the lanes, right ones as vectors. A tile is one private
function for all contractions of a module that have its arithmetic, its rows and vectors, and the strides
of its left factors; its name says all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.lowering.builder import (
    INDEX,
    FunctionBuilder,
    Index,
    Loop,
    memref_of,
    part_of,
    vector_of,
)
from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import Arithmetic
from mlirhlo.lowering.hlo_to_loops.contractions.operands import MOVED_ZEROS
from mlirhlo.lowering.hlo_to_loops.elements import register_type
from mlirhlo.lowering.target import Target

_AHEAD = 64
"""Rows of right factors that are asked for before they are read: a panel may stand in L2, a next one in L3."""


def flat(element: Attribute) -> MemRefType[Any]:
    """Any number of elements."""
    return memref_of(element, DYNAMIC_INDEX)


def from_anywhere(element: Attribute) -> MemRefType[Any]:
    """The same, as `FunctionBuilder.moved` gives it."""
    return part_of(element)


def unit_type(arithmetic: Arithmetic) -> Attribute:
    """What a unit of factors is read as: the element, or the bits of a group."""
    element = arithmetic.lhs.real
    if arithmetic.group == 1:
        return register_type(element)
    return IntegerType(element.bits * arithmetic.group)


@dataclass(frozen=True, slots=True)
class Tile:
    """A micro-kernel. Strides and sizes count units."""

    arithmetic: Arithmetic
    rows: int
    vectors: int
    lanes: int
    row_stride: int
    """From a row of the left factors to the next."""
    depth_stride: int
    """From a unit of the depth to the next, in the left factors."""
    masked: bool = False
    """Whether only the first columns count: it then takes their number too."""
    outer_stride: int = 0
    """From a round of the outer depth to the next, in the left factors; 0: there is one round. Else it
    takes the number of rounds too."""
    left_ahead: int = 0
    """Units of the left factors of the next rows that are asked for with each unit of the depth."""
    adds: bool = False
    """Whether its sums may come on top of what is there: it then takes whether they do."""

    @property
    def name(self) -> str:
        """Name of its function."""
        return (
            f"tile_{self.arithmetic.name}_{self.rows}x{self.vectors * self.lanes}"
            f"_{self.row_stride}_{self.depth_stride}{'_masked' if self.masked else ''}"
            f"{f'_{self.outer_stride}' if self.outer_stride else ''}{'_adds' if self.adds else ''}"
            f"{f'_ahead{self.left_ahead}' if self.left_ahead else ''}"
        )

    @property
    def columns(self) -> int:
        """Its width."""
        return self.vectors * self.lanes

    def call(
        self,
        b: FunctionBuilder,
        lhs: tuple[SSAValue, Index],
        rhs: tuple[SSAValue, Index],
        rhs_stride: Index,
        totals: tuple[SSAValue, Index],
        totals_stride: Index,
        depth: Index,
        add: SSAValue | None = None,
        columns: Index | None = None,
        outer: Index = 1,
        count: Index = 1,
        steps: tuple[Index, Index, Index] = (0, 0, 0),
    ) -> None:
        """Emits a call: memrefs with the place of their first element; `add`: i1, to what is there.

        `count` tiles; `steps`: from one to the next in `lhs`, `rhs` and `totals`. The depth is one unit at
        least.
        """
        operands = [b.moved(*lhs), b.moved(*rhs), b.index(rhs_stride), b.moved(*totals)]
        operands += [b.index(totals_stride), b.index(depth)]
        operands += [b.index(count), *map(b.index, steps)]
        if self.adds:
            assert add is not None
            operands.append(add)
        if self.masked:
            assert columns is not None
            operands.append(b.index(columns))
        if self.outer_stride:
            operands.append(b.index(outer))
        b.call(self.name, operands)

    def function(self) -> FuncOp:
        """The function."""
        return _Builder(self).function()


def best_rows(target: Target, vectors: int, arithmetic: Arithmetic) -> int:
    """Most rows of a tile whose sums, and what is read, fit the registers."""
    parts, moved = arithmetic.parts, arithmetic.moved
    spare = vectors * parts + (2 if target.registers >= 32 else 1) * parts + moved
    return max(1, (target.registers - spare) // (vectors * parts) - moved)


class _Builder:
    def __init__(self, tile: Tile) -> None:
        from xdsl.dialects.builtin import i1

        self.tile = tile
        arithmetic = tile.arithmetic
        self.unit = unit_type(arithmetic)
        self.total = register_type(arithmetic.total)
        units, totals = from_anywhere(self.unit), from_anywhere(self.total)
        types: list[Attribute] = [units, units, INDEX, totals, INDEX, INDEX, *[INDEX] * 4]
        types += [i1] * tile.adds
        types += [INDEX] * (tile.masked + (tile.outer_stride > 0))
        self.b = FunctionBuilder(tile.name, types, public=False)
        self.rhs_stride, self.totals_stride, self.depth = (self.b.arguments[at] for at in (2, 4, 5))

    def function(self) -> FuncOp:
        b, arguments = self.b, self.b.arguments
        count, *steps = arguments[6:10]
        masks = self._masks()
        with b.loop(0, count, 1, [arguments[at] for at in (0, 1, 3)]) as loop:
            lhs, rhs, totals = loop.carried
            self._ask_for(totals)
            self._store(self._sums(lhs, rhs, masks), totals, masks)
            loop.carry(*(b.moved(m, s) for m, s in zip(loop.carried, steps, strict=True)))
        return b.finish()

    def _sums(
        self, lhs: SSAValue, rhs: SSAValue, masks: Sequence[SSAValue | None]
    ) -> Sequence[SSAValue]:
        """Of one tile."""
        b, tile = self.b, self.tile
        zero = b.constant(0, vector_of(self.total, tile.lanes))
        rows = tile.rows + tile.arithmetic.moved
        sums: Sequence[SSAValue] = [zero] * (rows * tile.vectors * tile.arithmetic.parts)
        if not tile.outer_stride:
            return self._unmoved(self._depth(lhs, rhs, sums, masks))
        step = b.mul(self.depth, self.rhs_stride)
        with b.loop(0, b.arguments[-1], 1, [lhs, rhs, *sums], nonempty=True) as outer:
            lhs, rhs, *sums = outer.carried
            sums = self._depth(lhs, rhs, sums, masks)
            outer.carry(b.moved(lhs, tile.outer_stride), b.moved(rhs, step), *sums)
        results: Sequence[SSAValue] = outer.results
        return self._unmoved(results[2:])

    def _unmoved(self, sums: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Without what the highest bits on the left added, which the last row has."""
        b, tile = self.b, self.tile
        if not tile.arithmetic.moved:
            return sums
        whole = tile.rows * tile.vectors
        added = sums[whole:]
        return [b.subi(s, added[at % tile.vectors]) for at, s in enumerate(sums[:whole])]

    def _depth(
        self,
        lhs: SSAValue,
        rhs: SSAValue,
        sums: Sequence[SSAValue],
        masks: Sequence[SSAValue | None],
    ) -> Sequence[SSAValue]:
        """The sums after a stretch of the depth."""
        b, tile = self.b, self.tile
        parts = tile.arithmetic.parts
        ahead = b.mul(self.rhs_stride, _AHEAD)
        next_ = [b.moved(lhs, tile.rows * tile.row_stride)] * (tile.left_ahead > 0)
        # What loops carry is an address: every access then is a constant away from it.
        count = len(sums)
        with b.loop(0, self.depth, 1, [lhs, rhs, *sums, *next_], nonempty=True) as loop:
            lhs, rhs, *before = loop.carried
            before, next_ = before[:count], before[count:]
            for place in next_:
                b.prefetch(place, [0])
            for v in range(tile.vectors * parts):
                b.prefetch(rhs, [b.add(ahead, v * tile.lanes)])
            right = [
                b.vector_load(rhs, [v * tile.lanes], tile.lanes, masks[v % tile.vectors])
                for v in range(tile.vectors * parts)
            ]
            following: list[SSAValue] = []
            for row in range(tile.rows + tile.arithmetic.moved):
                left = [self._left(lhs, row, part) for part in range(parts)]
                base = row * tile.vectors * parts
                own = before[base : base + tile.vectors * parts]
                following += self._row(left, right, own)
            following += [b.moved(place, tile.left_ahead) for place in next_]
            loop.carry(b.moved(lhs, tile.depth_stride), b.moved(rhs, self.rhs_stride), *following)
        return cast(Loop, loop).results[2 : 2 + count]

    def _left(self, lhs: SSAValue, row: int, part: int) -> SSAValue:
        """A left factor in all lanes; behind the last row, what zero is moved to."""
        b, tile = self.b, self.tile
        if row == tile.rows:
            return b.constant(MOVED_ZEROS, vector_of(self.unit, tile.lanes))
        return b.broadcast(b.load(lhs, [row * tile.row_stride + part]), tile.lanes)

    def _row(
        self, left: Sequence[SSAValue], right: Sequence[SSAValue], sums: Sequence[SSAValue]
    ) -> list[SSAValue]:
        b, vectors = self.b, self.tile.vectors
        if len(left) == 1:
            return [self._product_sum(left[0], r, s) for r, s in zip(right, sums, strict=True)]
        (x, y), real, imag = left, right[:vectors], right[vectors:]
        minus = b.negf(y)
        return [
            *(b.fma(minus, v, b.fma(x, u, s)) for u, v, s in zip(real, imag, sums, strict=False)),
            *(
                b.fma(y, u, b.fma(x, v, s))
                for u, v, s in zip(real, imag, sums[vectors:], strict=True)
            ),
        ]

    def _product_sum(self, x: SSAValue, y: SSAValue, total: SSAValue) -> SSAValue:
        b, arithmetic = self.b, self.tile.arithmetic
        if arithmetic.group == 4:
            left = arithmetic.lhs.is_signed != arithmetic.moved
            return b.dot_bytes(total, x, y, left, arithmetic.rhs.is_signed)
        if arithmetic.group == 2 and not arithmetic.total.is_float:
            return b.addi(total, b.dot_words(x, y))
        if arithmetic.group == 2:
            return b.dot_bf16(total, x, y)
        if arithmetic.total.is_float:
            return b.fma(x, y, total)
        return b.addi(total, b.muli(x, y))

    def _masks(self) -> list[SSAValue | None]:
        """Of each vector of a row."""
        b, tile = self.b, self.tile
        if not tile.masked:
            return [None] * tile.vectors
        columns = b.arguments[10 + tile.adds]
        return [
            b.mask(b.index(b.sub(columns, v * tile.lanes)), tile.lanes) for v in range(tile.vectors)
        ]

    def _ask_for(self, totals: SSAValue) -> None:
        """What is added to at the end, or written."""
        b, tile = self.b, self.tile
        with b.loop(0, tile.rows, 1, [totals]) as loop:
            (row,) = loop.carried
            for v in range(tile.vectors * tile.arithmetic.parts):
                b.prefetch(row, [v * tile.lanes])
            loop.carry(b.moved(row, self.totals_stride))

    def _places(self, masks: Sequence[SSAValue | None]) -> Iterator[tuple[Index, SSAValue | None]]:
        """Where the vectors of the sums are kept."""
        b, tile = self.b, self.tile
        for row in range(tile.rows):
            start = b.mul(self.totals_stride, row)
            for v in range(tile.vectors * tile.arithmetic.parts):
                yield b.add(start, v * tile.lanes), masks[v % tile.vectors]

    def _store(
        self, sums: Sequence[SSAValue], totals: SSAValue, masks: Sequence[SSAValue | None]
    ) -> None:
        """Adds what is there, where it counts: a masked load for both cases keeps the code short."""
        b, lanes = self.b, self.tile.lanes
        if not self.tile.adds:
            for (place, mask), value in zip(self._places(masks), sums, strict=True):
                b.vector_store(value, totals, [place], mask)
            return
        all_ = b.broadcast(b.arguments[10], lanes)
        counted = {m: all_ if m is None else b.andi(m, all_) for m in dict.fromkeys(masks)}
        plus = b.addf if self.tile.arithmetic.total.real.is_float else b.addi
        for (place, mask), value in zip(self._places(masks), sums, strict=True):
            before = b.vector_load(totals, [place], lanes, counted[mask])
            b.vector_store(plus(value, before), totals, [place], mask)
