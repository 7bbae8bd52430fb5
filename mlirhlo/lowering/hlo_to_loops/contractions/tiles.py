"""Micro-kernels: a tile of the result in vector registers, over a stretch of the depth.

    for k in depth:  total[row, :] += lhs[row, k] * rhs[k, :]

Left factors are read one by one and spread over the lanes, right ones as vectors. A tile is one private
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

from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index, Loop, vector_of
from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import Arithmetic
from mlirhlo.lowering.hlo_to_loops.elements import register_type
from mlirhlo.lowering.target import Target

_AHEAD = 8
"""Rows of right factors that are asked for before they are read: a panel may stand in L2."""


def flat(element: Attribute) -> MemRefType[Any]:
    """Any number of elements."""
    return MemRefType(element, [DYNAMIC_INDEX])


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

    @property
    def name(self) -> str:
        """Name of its function."""
        return (
            f"tile_{self.arithmetic.name}_{self.rows}x{self.vectors * self.lanes}"
            f"_{self.row_stride}_{self.depth_stride}{'_masked' if self.masked else ''}"
            f"{f'_{self.outer_stride}' if self.outer_stride else ''}"
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
        add: SSAValue,
        columns: Index | None = None,
        outer: Index = 1,
    ) -> None:
        """Emits a call: memrefs with the place of their first element; `add`: i1, to what is there."""
        operands = [lhs[0], b.index(lhs[1]), rhs[0], b.index(rhs[1]), b.index(rhs_stride)]
        operands += [totals[0], b.index(totals[1]), b.index(totals_stride), b.index(depth), add]
        if self.masked:
            assert columns is not None
            operands.append(b.index(columns))
        if self.outer_stride:
            operands.append(b.index(outer))
        b.call(self.name, operands)

    def function(self) -> FuncOp:
        """The function."""
        return _Builder(self).function()


def best_rows(target: Target, vectors: int, parts: int) -> int:
    """Most rows of a tile whose sums, and what is read, fit the registers."""
    spare = vectors * parts + (2 if target.registers >= 32 else 1) * parts
    return max(1, (target.registers - spare) // (vectors * parts))


class _Builder:
    def __init__(self, tile: Tile) -> None:
        from xdsl.dialects.builtin import i1

        self.tile = tile
        arithmetic = tile.arithmetic
        self.unit = unit_type(arithmetic)
        self.total = register_type(arithmetic.total)
        units, totals = flat(self.unit), flat(self.total)
        types: list[Attribute] = [units, INDEX, units, INDEX, INDEX, totals, INDEX, INDEX, INDEX]
        types += [i1, *([INDEX] if tile.masked else []), *([INDEX] if tile.outer_stride else [])]
        self.b = FunctionBuilder(tile.name, types, public=False)

    def function(self) -> FuncOp:
        b, tile = self.b, self.tile
        lhs_at, rhs_at, rhs_stride, depth = (b.arguments[at] for at in (1, 3, 4, 8))
        masks = self._masks()
        zero = b.constant(0, vector_of(self.total, tile.lanes))
        sums: Sequence[SSAValue] = [zero] * (tile.rows * tile.vectors * tile.arithmetic.parts)
        for place, _ in self._places(masks):
            b.prefetch(b.arguments[5], [place])
        if tile.outer_stride:
            step = b.mul(depth, rhs_stride)
            with b.loop(0, b.arguments[-1], 1, sums) as outer:
                left = b.add(lhs_at, b.mul(outer.index, tile.outer_stride))
                right = b.add(rhs_at, b.mul(outer.index, step))
                outer.carry(*self._depth(left, right, outer.carried, masks))
            sums = outer.results
        else:
            sums = self._depth(lhs_at, rhs_at, sums, masks)
        self._add_and_store(sums, b.arguments[9], masks)
        return b.finish()

    def _depth(
        self,
        lhs_at: Index,
        rhs_at: Index,
        sums: Sequence[SSAValue],
        masks: Sequence[SSAValue | None],
    ) -> Sequence[SSAValue]:
        """The sums after a stretch of the depth."""
        b, tile = self.b, self.tile
        lhs, rhs, rhs_stride, depth = (b.arguments[at] for at in (0, 2, 4, 8))
        parts = tile.arithmetic.parts
        ahead = b.mul(rhs_stride, _AHEAD)
        with b.loop(0, depth, 1, sums) as loop:
            k = loop.index
            at = b.add(rhs_at, b.mul(k, rhs_stride))
            for v in range(tile.vectors * parts):
                b.prefetch(rhs, [b.add(b.add(at, ahead), v * tile.lanes)])
            right = [
                b.vector_load(rhs, [b.add(at, v * tile.lanes)], tile.lanes, masks[v % tile.vectors])
                for v in range(tile.vectors * parts)
            ]
            start = b.add(lhs_at, b.mul(k, tile.depth_stride))
            following: list[SSAValue] = []
            for row in range(tile.rows):
                left = [
                    b.broadcast(b.load(lhs, [b.add(start, row * tile.row_stride + p)]), tile.lanes)
                    for p in range(parts)
                ]
                base = row * tile.vectors * parts
                own = loop.carried[base : base + tile.vectors * parts]
                following += self._row(left, right, own)
            loop.carry(*following)
        return cast(Loop, loop).results

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
        columns = b.arguments[10]
        return [
            b.mask(b.index(b.sub(columns, v * tile.lanes)), tile.lanes) for v in range(tile.vectors)
        ]

    def _places(self, masks: Sequence[SSAValue | None]) -> Iterator[tuple[Index, SSAValue | None]]:
        """Where the vectors of the sums are kept."""
        b, tile = self.b, self.tile
        _, at, stride = b.arguments[5:8]
        for row in range(tile.rows):
            start = b.add(at, b.mul(stride, row))
            for v in range(tile.vectors * tile.arithmetic.parts):
                yield b.add(start, v * tile.lanes), masks[v % tile.vectors]

    def _add_and_store(
        self, sums: Sequence[SSAValue], add: SSAValue, masks: Sequence[SSAValue | None]
    ) -> None:
        """Adds what is there, where it counts: a masked load for both cases keeps the code short."""
        b, lanes = self.b, self.tile.lanes
        all_ = b.broadcast(add, lanes)
        counted = {m: all_ if m is None else b.andi(m, all_) for m in dict.fromkeys(masks)}
        totals = b.arguments[5]
        plus = b.addf if self.tile.arithmetic.total.real.is_float else b.addi
        for (place, mask), value in zip(self._places(masks), sums, strict=True):
            before = b.vector_load(totals, [place], lanes, counted[mask])
            b.vector_store(plus(value, before), totals, [place], mask)
