"""Micro-kernels on tile registers: 32x32 sums of bytes or bf16 in four of them.

As `tiles`, with units of 32 bits in both operands; the depth is a multiple of 16 units, rows and columns
are multiples of 16, which packing fills up.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import UnitAttr, bf16, f32, i8, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.amx import TileMulFOp, TileMulIOp, TileType, TileZeroOp
from mlirhlo.dialects.hlo.element_types import BF16
from mlirhlo.dialects.x86 import TileLoadOp, TileStoreOp
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index
from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import Arithmetic
from mlirhlo.lowering.hlo_to_loops.contractions.tiles import flat

UNITS = 16
"""Units along the depth, rows and columns of a register."""


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """A micro-kernel of `rows` times `columns` registers of sums, of two each at most."""

    arithmetic: Arithmetic
    rows: int
    columns: int

    @property
    def name(self) -> str:
        """Name of its function."""
        return f"tile_{self.arithmetic.name}_{self.rows * UNITS}x{self.columns * UNITS}"

    def call(
        self,
        b: FunctionBuilder,
        lhs: tuple[SSAValue, Index],
        lhs_stride: Index,
        rhs: tuple[SSAValue, Index],
        rhs_stride: Index,
        totals: tuple[SSAValue, Index],
        totals_stride: Index,
        depth: Index,
        count: Index,
        panels: Index = 1,
        steps: tuple[Index, Index] = (0, 0),
    ) -> None:
        """Emits a call for `count` tiles, one below the other, of each of `panels`: as of `Tile`, with the
        distance of rows of left factors; `steps`: from a panel to the next in `rhs` and `totals`.
        Registers are set up once a call, which takes as long as a tile."""
        blocks = b.div(b.add(depth, UNITS - 1), UNITS)
        operands = [lhs[0], b.index(lhs[1]), b.index(lhs_stride), rhs[0], b.index(rhs[1])]
        operands += [b.index(rhs_stride), totals[0], b.index(totals[1]), b.index(totals_stride)]
        operands += map(b.index, (blocks, count, panels, *steps))
        b.call(self.name, operands)

    def function(self) -> FuncOp:
        """The function."""
        is_float = self.arithmetic.lhs is BF16
        units, total = flat(i32), flat(f32 if is_float else i32)
        types: list[Attribute] = [units, INDEX, INDEX, units, INDEX, INDEX, total, INDEX, INDEX]
        b = FunctionBuilder(self.name, [*types, *[INDEX] * 5], public=False)
        lhs, lhs_at, lhs_stride, rhs, rhs_at, rhs_stride, sums, at, stride, *rest = b.arguments
        steps, count, panels, rhs_step, sums_step = rest
        sum_type = TileType.of(UNITS, UNITS, total.element_type)
        factor_type = TileType.of(UNITS, 32 if is_float else 64, bf16 if is_float else i8)
        left_bytes, right_bytes, sums_bytes = (
            b.index(b.mul(s, 4)) for s in (lhs_stride, rhs_stride, stride)
        )

        def load(source: SSAValue, place: Index, step: SSAValue) -> SSAValue:
            return b.emit(TileLoadOp, (source, b.index(place), step), factor_type)

        with b.loop(0, panels) as panel:
            right_at = b.add(rhs_at, b.mul(panel, rhs_step))
            total_at = b.add(at, b.mul(panel, sums_step))
            with b.loop(0, count) as tile:
                first = b.mul(tile, self.rows * UNITS)
                lhs_start = b.add(lhs_at, b.mul(first, lhs_stride))
                start = b.add(total_at, b.mul(first, stride))
                zeros = [b.emit(TileZeroOp, (), sum_type) for _ in range(self.rows * self.columns)]
                with b.loop(0, steps, 1, zeros) as loop:
                    depth = b.mul(loop.index, UNITS)
                    place = b.add(lhs_start, depth)
                    left = [
                        load(lhs, b.add(place, b.mul(lhs_stride, row * UNITS)), left_bytes)
                        for row in range(self.rows)
                    ]
                    place = b.add(right_at, b.mul(depth, rhs_stride))
                    right = [
                        load(rhs, b.add(place, column * UNITS), right_bytes)
                        for column in range(self.columns)
                    ]
                    products = [(x, y) for x in left for y in right]
                    following = [
                        self._product(b, x, y, old)
                        for (x, y), old in zip(products, loop.carried, strict=True)
                    ]
                    loop.carry(*following)
                for number, value in enumerate(loop.results):
                    row, column = divmod(number, self.columns)
                    place = b.add(b.add(start, b.mul(stride, row * UNITS)), column * UNITS)
                    b.effect(TileStoreOp, [sums, b.index(place), sums_bytes, value])
        return b.finish()

    def _product(self, b: FunctionBuilder, x: SSAValue, y: SSAValue, total: SSAValue) -> SSAValue:
        a = self.arithmetic
        if a.lhs is BF16:
            return b.emit(TileMulFOp, (x, y, total), total.type)
        properties: dict[str, Attribute] = {}
        if not a.lhs.is_signed:
            properties["isZextLhs"] = UnitAttr()
        if not a.rhs.is_signed:
            properties["isZextRhs"] = UnitAttr()
        return b.emit(TileMulIOp, (x, y, total), total.type, properties)
