"""Blocks of kind `wgmma`: products by warp groups (sm_90a).

A thread of a warp of its own copies boxes of the factors to shared memory by tensor maps, which fill in zeros outside;
warp groups of four warps multiply them, 64 rows each. Barriers say of each stage when its bytes are there, and when the
groups have read them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.interned import UNIT, integer64, integers64, string
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.gpu.kernel import MapParameter
from mlirhlo.lowering.gpu.kinds.contraction import Block, Neighbours, Writer
from mlirhlo.lowering.gpu.kinds.fragments import COLUMNS, fragment_elements
from mlirhlo.lowering.gpu.launches import LaunchBuilder
from mlirhlo.lowering.gpu.nvvm_warp_groups import PANEL_BYTES, WGMMA
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.matrix_products import MatrixProduct
from mlirhlo.lowering.schedule.tensor_maps import LINE, TERM, MappedDimension, mapped_factor

_ROWS = 64
_WARPS = 4
_MAX_BOX = 256
"""Elements of a box in each dimension."""


class MappedTile:
    """The tiles of a factor that a tensor map describes, a buffer for each stage."""

    def __init__(self, block: WarpGroupBlock, side: int, element: PrimitiveType) -> None:
        factor = mapped_factor(block.product, side)
        size = element.byte_size
        if factor is None or not (factor.across or WGMMA[block.kind].can_transpose):
            raise block.refused(
                "copies by tensor maps do not bring the factors as they are multiplied"
            )
        self.block, self.side, self.factor, self.bytes = block, side, factor, size
        self.panel = PANEL_BYTES // size
        lines = block.sides[side]
        slow, fast = (lines, block.depth) if factor.across else (block.depth, lines)
        self.slow, self.panels = slow, fast // self.panel
        self.buffer = block.shared([block.stages, slow * fast], element)
        self.size_bytes = slow * fast * size
        if (block.depth % self.panel and factor.across) or fast % self.panel or slow > _MAX_BOX:
            raise block.refused("panels of 128 bytes do not fill the tiles")
        b = block.b
        parameter = b.numbers.index(b.plan.numbers[factor.read.source])
        dims = factor.dimensions
        box = [self.panel, *(slow if d.kind in (LINE, TERM) else 1 for d in dims[1:])]
        self.tensor_map = b.tensor_map(
            MapParameter(
                parameter,
                size,
                tuple(d.size for d in dims),
                tuple(d.stride * size for d in dims[1:]),
                tuple(box),
                PANEL_BYTES,
            )
        )

    def copy(self, first_term: Index, stage: Index, full: SSAValue) -> None:
        """Begins the copies of a tile, a box for each panel."""
        b = self.block.b
        first = {LINE: self.block.first[self.side], TERM: first_term}
        mapped = self._batch(first_term)
        for panel in range(self.panels):
            coordinates = [
                self._coordinate(d, first, mapped, panel * self.panel if not at else 0)
                for at, d in enumerate(self.factor.dimensions)
            ]
            target = (self.buffer, (stage, panel * self.panel * self.slow))
            b.copy_box(target, (full, stage), self.tensor_map, coordinates)

    def _coordinate(
        self, dim: MappedDimension, first: dict[str, Index], mapped: Sequence[Index], more: int
    ) -> Index:
        b = self.block.b
        if dim.kind in first:
            return b.sub(b.add(first[dim.kind], more), dim.offset)
        return b.sub(mapped[dim.source_dim], self.factor.read.offsets[dim.source_dim])

    def _batch(self, first_term: Index) -> Sequence[Index]:
        block = self.block
        dims = block.indices((0, 0), first_term)
        return block.b.e.mapped(self.factor.read.map, dims, block.op.space)

    @property
    def strides(self) -> tuple[int, int]:
        """Elements from product to product along the terms, and from panel to panel."""
        step = 32 // self.bytes
        panel = self.panel * self.slow
        return (step, panel) if self.factor.across else (step * self.panel, panel)

    def rows_from(self, first: Index) -> Index:
        """Where lines begin in the tile."""
        b = self.block.b
        if self.factor.across:
            return b.mul(first, self.panel)
        return b.mul(b.div(first, self.panel), self.panel * self.slow)


class WarpGroupBlock(Block):
    """Warp groups with 64 rows each, and a warp that brings the factors."""

    barrier_bytes = 16

    def __init__(self, b: LaunchBuilder, product: MatrixProduct, schedule: Schedule) -> None:
        super().__init__(b, product, schedule)
        element: PrimitiveType = array(yielded(self.op.body)[0]).element_type
        self.kind = schedule.format or element.name
        self.factors = [MappedTile(self, side, element) for side in (0, 1)]
        self.full, self.empty = (b.shared([self.stages], i64) for _ in range(2))
        self.is_reused = self.rounds > self.stages
        """Whether stages are filled more than once."""

    def _check_warps(self) -> None:
        s = self.schedule
        if self.b.plan.device.capability != (9, 0):
            raise self.refused("only sm_90a has warp groups")
        if s.threads != s.rows // _ROWS * _WARPS * 32 + 32 or not 8 <= s.columns <= 256:
            raise self.refused(
                "64 rows have four warps, one more brings factors, columns are 8 to 256"
            )

    def compute(self, write: Writer) -> None:
        """As `Block.compute`."""
        b = self.b
        multiplying = self.threads - 32
        thread = b.index(self.thread)
        with b.if_(b.cmpi("eq", thread, b.index(0))):
            for stage in range(self.stages):
                b.barrier_init(self.full, stage, 1)
                b.barrier_init(self.empty, stage, multiplying // 32)
            b.barrier_fence()
        b.barrier()

        def bring() -> None:
            with b.if_(b.cmpi("eq", thread, b.index(multiplying))), b.e.scope():
                self._copy_all()

        with b.if_(b.cmpi("ult", thread, b.index(multiplying)), bring), b.e.scope():
            super().compute(write)

    def _copy_all(self) -> None:
        b = self.b
        bytes_ = sum(f.size_bytes for f in self.factors)
        initial, nonempty = [b.constant(0, INDEX), b.constant(1, INDEX)], not self.is_ragged
        with b.loop(0, self.count, self.depth, initial, nonempty=nonempty) as loop:
            stage, parity = loop.carried
            if self.is_reused:
                b.barrier_wait(self.empty, stage, parity)
            b.barrier_arrive(self.full, stage, bytes_)
            for factor in self.factors:
                factor.copy(b.add(self.first_term, loop.index), stage, self.full)
            loop.carry(*self._following(stage, parity))

    def _following(self, stage: SSAValue, parity: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The next stage, and the parity of its phase."""
        b = self.b
        if self.stages == 1:
            return stage, b.index(b.xor(parity, 1))
        following = self._next(stage)
        is_first = b.cmpi("eq", following, b.index(0))
        return following, b.select(is_first, b.index(b.xor(parity, 1)), parity)

    def results(self) -> list[Neighbours]:
        """As `Block.results`."""
        b = self.b
        columns = self.sides[1]
        row = WGMMA[self.kind]
        zeros = [b.constant(0, row.element)] * (columns // 2)
        lane, warp = b.rem(self.thread, 32), b.div(self.thread, 32)
        first_row = b.mul(b.div(warp, _WARPS), _ROWS)
        initial, nonempty = [*zeros, b.constant(0, INDEX), b.constant(0, INDEX)], not self.is_ragged
        with b.loop(0, self.count, self.depth, initial, nonempty=nonempty) as loop:
            *sums, stage, parity = loop.carried
            b.barrier_wait(self.full, stage, parity)
            sums = self._multiplied(stage, first_row, sums)
            if self.is_reused:
                with b.if_(b.cmpi("eq", b.index(lane), b.index(0))):
                    b.barrier_arrive(self.empty, stage)
            loop.carry(*sums, *self._following(stage, parity))
        totals = list(loop.results[: columns // 2])
        fragments = [totals[4 * n :][:4] for n in range(columns // COLUMNS)]
        own = b.add(first_row, b.mul(b.rem(warp, _WARPS), 16))
        first = (b.add(self.first[0], own), self.first[1])
        is_narrow = array(self.op.output).element_type.bits <= 16
        return fragment_elements(b, fragments, len(fragments), first, is_narrow)

    def _multiplied(
        self, stage: Index, first_row: Index, sums: Sequence[SSAValue]
    ) -> list[SSAValue]:
        left, right = self.factors
        properties: dict[str, Attribute] = {
            "kind": string(self.kind),
            "count": integer64(self.depth * left.bytes // 32),
            "columns": integer64(self.sides[1]),
            "a_strides": integers64(*left.strides),
            "b_strides": integers64(*right.strides),
        }
        for name, factor in (("transpose_a", left), ("transpose_b", right)):
            if not factor.factor.across:
                properties[name] = UNIT
        places = [
            (left.buffer, (stage, left.rows_from(first_row))),
            (right.buffer, (stage, right.rows_from(0))),
        ]
        return self.b.warp_group_mma(places, sums, properties)
