"""One task of a contraction's kernel: a block of the result."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xdsl.dialects import arith as xarith
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.hlo_to_loops.contractions.finish import LINE_BYTES
from mlirhlo.lowering.hlo_to_loops.contractions.operands import places_of
from mlirhlo.lowering.hlo_to_loops.contractions.packing import Packer, Span, runs_along_depth
from mlirhlo.lowering.hlo_to_loops.contractions.problem import window_step
from mlirhlo.lowering.hlo_to_loops.contractions.tile_registers import UNITS, RegisterTile
from mlirhlo.lowering.hlo_to_loops.contractions.tiles import Tile

if TYPE_CHECKING:
    from mlirhlo.lowering.hlo_to_loops.contractions.blocked import BlockedKernel


class Block:
    """Emits the loops over blocks of the depth, panels and tiles."""

    def __init__(
        self,
        kernel: BlockedKernel,
        places: Mapping[int, Index],
        room: Index,
        first_row: Index,
        rows: Index,
        first_panel: Index,
        panels: Index,
    ) -> None:
        self.k, self.b, self.q, self.c = kernel, kernel.b, kernel.blocking, kernel.c
        self.places, self.room = places, room
        self.first_row, self.rows = first_row, rows
        self.first_panel, self.panels = first_panel, panels

    def emit(self) -> None:
        """All of it."""
        k, b, q, c = self.k, self.b, self.q, self.c
        self.lhs_reader = k.reader(c.lhs).at(self.places)
        self._right()
        self._left()
        self._totals()
        blocks = q.depth_blocks
        if blocks == 1:
            self._depth_block(Span.whole(q.depth), 0, None)
        else:
            with b.loop(0, blocks) as at:
                self._depth_block(*self._span(at))
        if k.keeps_block:
            columns = b.mul(self.first_panel, q.columns)
            width = b.integer(
                xarith.MinSIOp,
                b.index(b.mul(self.panels, q.columns)),
                b.index(b.sub(k.columns, columns)),
            )
            k.finisher.finish(
                self.places,
                self.first_row,
                self.rows,
                columns,
                width,
                self.totals,
                0,
                k.block_width,
            )

    def _span(self, at: Index) -> tuple[Span, Index, SSAValue]:
        """A block of the depth, the units before it, and whether there are some."""
        b, q = self.b, self.q
        more = b.cmpi("ne", b.index(at), b.index(0))
        depth = q.depth
        if q.unit_step < depth.inner_units:
            chunks = -(-depth.inner_units // q.unit_step)
            outer, part = self.k.split(at, depth.outer_count, chunks)
            unit = b.mul(part, q.unit_step)
            count = self.k.least(
                q.unit_step, b.sub(depth.inner_units, unit), depth.inner_units % q.unit_step == 0
            )
            before = b.add(b.mul(outer, depth.inner_units), unit)
            return Span(outer, 1, unit, count), before, more
        outer = b.mul(at, q.outer_step)
        count = self.k.least(
            q.outer_step, b.sub(depth.outer_count, outer), depth.outer_count % q.outer_step == 0
        )
        inside = depth.outer_count // (depth.sizes[depth.outer[0]] if depth.outer else 1)
        span = Span(outer, count, 0, depth.inner_units, q.outer_step % inside == 0)
        return span, b.mul(outer, depth.inner_units), more

    # Operands

    def _right(self) -> None:
        """Where right factors are read."""
        k, b, q, c = self.k, self.b, self.q, self.c
        if k.shares_rhs:
            self.rhs = k.view(0, k.unit)
            batch: Index = 0
            for axis in k.rhs_axes:
                batch = b.add(b.mul(batch, c.sizes[axis]), self.places[axis])
            self.rhs_at = b.mul(b.mul(batch, k.panels), k.panel_size)
            self.rhs_at = b.add(self.rhs_at, b.mul(self.first_panel, k.panel_size))
            self.rhs_stride: int = q.columns * k.parts
        elif q.rhs_packed:
            self.rhs = k.view(b.add(self.room, k.own_at), k.unit)
            self.rhs_at, self.rhs_stride = 0, q.columns * k.parts
            reader = k.reader(c.rhs).at(self.places)
            if k.rhs_along():
                with b.loop(0, self.panels) as panel:
                    whole = Span.whole(q.depth)
                    k.panel(reader, self.rhs, 0, self.first_panel, panel, whole, 0)
            else:
                with b.loop(0, k.chunks) as piece:
                    k.chunk(reader, self.rhs, 0, self.first_panel, self.panels, piece)
        else:
            reader = k.reader(c.rhs).at(self.places)
            assert reader.strides is not None
            self.rhs = k.memory[c.rhs.value].units(k.unit)
            self.rhs_at = b.add(reader.base, b.mul(self.first_panel, q.columns))
            self.rhs_stride = reader.strides.get(c.depth[0], 0) if c.depth else 0

    def _left(self) -> None:
        k, b, q, c = self.k, self.b, self.q, self.c
        if q.lhs_packed:
            self.lhs = k.view(b.add(self.room, k.lhs_at), k.unit)
            self.lhs_at: Index = 0
            if q.lhs_packed == "window":
                self.row_stride, self.depth_stride = window_step(c), 1
            elif q.lhs_packed == "rows":
                self.row_stride, self.depth_stride = k.lhs_stride * k.parts, k.parts
            else:
                self.row_stride, self.depth_stride = 1, k.lhs_stride * k.parts
            return
        reader = self.lhs_reader
        assert reader.strides is not None
        group = c.arithmetic.group
        self.lhs = k.memory[c.lhs.value].units(k.unit)
        self.row_stride = reader.strides.get(c.rows[0], 0) * k.parts if c.rows else 0
        self.depth_stride = reader.strides.get(c.depth[0], 0) * k.parts if c.depth else 0
        at = b.add(b.mul(reader.base, k.parts), b.mul(self.first_row, self.row_stride))
        if group > 1:
            at, self.row_stride, self.depth_stride = b.div(at, group), self.row_stride // group, 1
        self.lhs_at = at

    def _pack_left(self, span: Span) -> None:
        k, b, q, c = self.k, self.b, self.q, self.c
        along = runs_along_depth(c.lhs, c)
        packer = Packer(b, self.lhs_reader, q.depth, q.lanes, along_depth=along)
        if q.lhs_packed == "window":
            length = b.add(b.mul(b.sub(self.rows, 1), self.row_stride), q.depth.inner_units)
            packer.window(self.lhs, {c.rows[0]: self.first_row}, length, k.lhs_stride)
            return
        if q.lhs_packed == "depth":
            packer.by_depth(
                self.lhs,
                0,
                c.rows[0] if c.rows else None,
                self.first_row,
                b.sub(k.rows, self.first_row),
                -(-q.block_rows // q.lanes),
                k.lhs_stride,
                span,
                edge=k.rows % q.block_rows != 0 or q.block_rows % q.lanes != 0,
            )
            return
        if along or not c.arithmetic.tiles:
            packer.by_rows(
                self.lhs,
                lambda row: places_of(b, c, c.rows, row),
                self.first_row,
                self.rows,
                k.lhs_stride,
                span,
            )
        else:
            packer.by_rows_turned(
                self.lhs,
                c.rows[0] if c.rows else None,
                self.first_row,
                self.rows,
                k.rows,
                k.lhs_stride,
                span,
                k.view(b.add(self.room, k.turned_at), k.unit),
            )
        if c.arithmetic.tiles and q.depth.units % 16:
            self._clear_left(span)

    def _clear_left(self, span: Span) -> None:
        """Zeros up to a whole number of tile registers along the depth."""
        k, b, q = self.k, self.b, self.q
        high = -(-q.depth.units // 16) * 16
        with b.loop(0, self.rows) as row:
            start = b.mul(row, k.lhs_stride)
            with b.loop(q.depth.units, high) as u:
                b.store(b.constant(0, k.unit), self.lhs, [b.add(start, u)])
        del span

    # Tiles

    def _totals(self) -> None:
        k, b = self.k, self.b
        if k.direct:
            self.totals, self.totals_at, self.totals_stride = k.finisher.place(
                self.places, self.first_row, b.mul(self.first_panel, self.q.columns)
            )
        else:
            self.totals = k.view(b.add(self.room, k.totals_at), k.total)
            self.totals_at, self.totals_stride = 0, k.block_width * k.parts

    def _depth_block(self, span: Span, before: Index, more: SSAValue | None) -> None:
        """A block of the depth; `more`: whether its sums are added to those before, None for the first."""
        k, b, q = self.k, self.b, self.q
        lhs_at = self.lhs_at
        if q.lhs_packed:
            self._pack_left(span)
        else:
            lhs_at = b.add(lhs_at, b.mul(before, self.depth_stride))
        windows = q.lhs_packed == "window"
        units = span.unit_count if windows else b.mul(span.outer_count, span.unit_count)

        def right(panel: Index) -> Index:
            step = k.panel_size if q.rhs_packed else q.columns
            return b.add(b.add(self.rhs_at, b.mul(panel, step)), b.mul(before, self.rhs_stride))

        if self.c.arithmetic.tiles and k.direct:
            self._registers(0, right(0), lhs_at, units, self.panels)
        elif self.c.arithmetic.tiles:
            with b.loop(0, self.panels) as panel:
                self._registers(panel, right(panel), lhs_at, units, 1)
        elif q.goes_by_rows:
            across = (0, k.panel_size if q.rhs_packed else q.columns, q.columns * k.parts)
            for rows, first, end in self._heights():
                with b.loop(first, end) as tile, self._each(0, self.panels, not self._masked) as at:
                    self._tile(rows, at[0], tile, right(at[0]), lhs_at, units, more, at[1], across)
        else:
            down = (b.mul(self.row_stride, q.tile_rows), 0, self.totals_stride * q.tile_rows)
            with b.loop(0, self.panels) as panel:
                rhs_at = right(panel)
                for rows, first, end in self._heights():
                    with self._each(first, end) as at:
                        self._tile(rows, panel, at[0], rhs_at, lhs_at, units, more, at[1], down)

    @contextmanager
    def _each(
        self, first: Index, end: Index, are_equal: bool = True
    ) -> Generator[tuple[Index, Index]]:
        """Tiles for a call: all of them at once, or one in each round of a loop; the first, their number.

        Sums that are finished while they are in L1 are made one tile at a time.
        """
        b, k = self.b, self.k
        if are_equal and (k.direct or k.keeps_block) and k.finisher.choice is None:
            yield first, b.sub(end, first)
        else:
            with b.loop(first, end) as at:
                yield at, 1

    @contextmanager
    def _where_wanted(self, first_row: Index, rows: int, first_column: Index) -> Generator[None]:
        """Only if a sum of the tile that is made here counts."""
        finisher = self.k.finisher
        if finisher.choice is None:
            yield
            return
        wanted = finisher.takes_any(self.places, first_row, rows, first_column, self.q.vectors)
        with self.b.if_(wanted):
            yield

    @property
    def _masked(self) -> bool:
        """Whether the last panel of right factors, read in place, is not full."""
        return not self.q.rhs_packed and self.k.columns % self.q.columns != 0

    def _heights(self) -> Iterator[tuple[int, Index, Index]]:
        """Rows of tiles, their first and last number: full ones, and what remains of the rows."""
        k, b, q = self.k, self.b, self.q
        full = b.div(self.rows, q.tile_rows)
        yield q.tile_rows, 0, full
        rest = k.rows % q.block_rows % q.tile_rows
        if rest:
            yield rest, full, b.div(b.add(self.rows, q.tile_rows - 1), q.tile_rows)

    def _left_ahead(self, rows: int) -> int:
        """Units of the next tile's left factors to ask for with each unit of the depth: where they come
        from memory, once or for as long as L1 holds them, and rows follow each other there, so that all
        are asked for."""
        q, factor = self.q, self.c.lhs
        if q.lhs_packed or q.depth_blocks > 1 or self.depth_stride != 1:
            return 0
        step = -(-rows * self.row_stride // q.depth.units)
        unit = factor.shape.element_type.byte_size * q.depth.group
        if not q.goes_by_rows and 2 * q.block_rows * self.row_stride * unit > q.target.l1_bytes:
            return 0
        size = factor.shape.element_count * factor.shape.element_type.byte_size
        return step if step * unit <= LINE_BYTES and size > q.target.l2_bytes else 0

    def _registers(
        self, panel: Index, rhs_at: Index, lhs_at: Index, units: Index, panels: Index
    ) -> None:
        """All tiles of a panel, or of several from it on, in tile registers."""
        k, b, q = self.k, self.b, self.q
        height = q.tile_rows
        totals_at = self.totals_at
        steps = (k.panel_size if q.rhs_packed else q.columns, q.columns)
        full = b.div(self.rows, height)
        rest = -(-(k.rows % q.block_rows % height) // UNITS)

        def call(registers: int, first: Index, count: Index) -> None:
            tile = RegisterTile(self.c.arithmetic, registers, q.vectors)
            k.tiles[tile.name] = tile.function
            tile.call(
                b,
                (self.lhs, b.add(lhs_at, b.mul(first, self.row_stride))),
                self.row_stride,
                (self.rhs, rhs_at),
                self.rhs_stride,
                (self.totals, b.add(totals_at, b.mul(first, self.totals_stride))),
                self.totals_stride,
                units,
                count,
                panels,
                steps,
            )

        call(height // UNITS, 0, full)
        if rest:
            with b.if_(b.cmpi("ne", b.index(b.rem(self.rows, height)), b.index(0))):
                call(rest, b.mul(full, height), 1)
        if not k.direct:
            first, width = self._columns(panel)
            k.finisher.finish(
                self.places, self.first_row, self.rows, first, width, self.totals, 0, k.block_width
            )

    def _columns(self, panel: Index) -> tuple[Index, Index]:
        """The first column of a panel, and how many it has."""
        k, b, q = self.k, self.b, self.q
        first = b.add(b.mul(self.first_panel, q.columns), b.mul(panel, q.columns))
        left = b.sub(k.columns, first)
        return first, k.least(q.columns, left, k.columns % q.columns == 0)

    def _tile(
        self,
        rows: int,
        panel: Index,
        number: Index,
        rhs_at: Index,
        lhs_at: Index,
        units: Index,
        more: SSAValue | None,
        count: Index,
        steps: tuple[Index, Index, Index],
    ) -> None:
        """Tile `number` of a panel, and `count - 1` more that are `steps` apart."""
        k, b, q = self.k, self.b, self.q
        row = b.mul(number, q.tile_rows)
        column = b.mul(panel, q.columns)
        masked = self._masked
        outer = q.depth.outer_count if q.lhs_packed == "window" else 1
        tile = Tile(
            self.c.arithmetic,
            rows,
            q.vectors,
            q.lanes,
            self.row_stride,
            self.depth_stride,
            masked,
            k.lhs_stride if outer > 1 else 0,
            self._left_ahead(rows),
            more is not None,
        )
        k.tiles[tile.name] = tile.function
        totals_at = self.totals_at
        if k.direct or k.keeps_block:
            totals_at = b.add(
                totals_at, b.add(b.mul(row, self.totals_stride), b.mul(column, k.parts))
            )
        first, width = self._columns(panel)
        with self._where_wanted(b.add(self.first_row, row), rows, first):
            tile.call(
                b,
                (self.lhs, b.add(lhs_at, b.mul(row, self.row_stride))),
                (self.rhs, rhs_at),
                self.rhs_stride,
                (self.totals, totals_at),
                self.totals_stride,
                units,
                more,
                width if masked else None,
                outer,
                count,
                steps,
            )
        if not k.direct and not k.keeps_block:
            k.finisher.finish(
                self.places,
                b.add(self.first_row, row),
                rows,
                first,
                width,
                self.totals,
                totals_at,
                k.block_width,
                # Of the tile below: a tile alone may take less time than memory.
                (rows, q.columns),
            )
