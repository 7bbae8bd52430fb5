"""How a contraction is cut: tiles for registers, blocks of rows and columns for tasks, of depth for L1.

A task makes one block of the result: block by block of the depth, panel by panel of the columns (a panel
of right factors stays in L1), tile by tile of the rows. All numbers follow from the sizes and the target,
never from the number of threads, so that results do not either.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.lowering.hlo_to_loops.contractions.packing import Depth, runs_along_depth
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction, Factor
from mlirhlo.lowering.hlo_to_loops.contractions.tiles import best_rows
from mlirhlo.lowering.target import Target

_TASK_NS = 40_000
"""A task should take about as long at least."""
_MOST_TASKS = 64
_MANY_PANELS = 16
"""Panels from which on reading them, not the left factors, is what blocks are made for."""
_STREAM_BYTES = 8 << 10
"""Neighbours in memory that a task reads at least: prefetching goes by pages."""


@dataclass(frozen=True)
class Blocking:
    """Sizes of the parts. Everything counts elements, units of the depth, or bytes where it says so."""

    target: Target
    lanes: int
    tile_rows: int
    vectors: int
    block_rows: int
    block_panels: int
    depth: Depth
    outer_step: int
    """Rounds of the outer depth axes in a block of the depth."""
    unit_step: int
    """Units along the inner axis in a block of the depth."""
    lhs_packed: str
    """`rows` or `depth`: a row for each of them; empty: read where it is."""
    rhs_packed: bool
    ns: float
    """Estimated time on one core."""

    @property
    def columns(self) -> int:
        """Of a panel."""
        return self.vectors * self.lanes

    @property
    def depth_blocks(self) -> int:
        """Blocks of the depth."""
        outer = -(-self.depth.outer_count // self.outer_step)
        return max(1, outer * -(-self.depth.inner_units // self.unit_step))

    @property
    def block_units(self) -> int:
        """Units of a block of the depth."""
        return self.outer_step * self.unit_step


def choose_blocking(c: Contraction, target: Target) -> Blocking:
    """The blocking of a contraction that has been oriented and merged."""
    a = c.arithmetic
    depth = Depth.of(c)
    rows, columns, batch = (c.count(axes) for axes in (c.rows, c.columns, c.batch))
    bits = a.total.real.bits
    lanes = target.vector_bytes * 8 // bits
    width = -(-columns // lanes)
    work = 2.0 * batch * rows * columns * depth.units * a.group * a.parts**2
    moved = sum(f.shape.element_count * f.shape.element_type.byte_size for f in c.factors)
    ns = max(work / (400 if a.tiles else 60 if bits == 32 else 30), moved / 10)
    packs_rhs = _packs_rhs(c, rows)
    if a.tiles:
        vectors, height = min(2, width), 32 if rows > 16 else 16
    elif not packs_rhs and rows <= 4:
        vectors = max(1, min(width, 8 // a.parts, (target.registers - 6) // (rows * a.parts)))
        height = rows
    else:
        vectors = (
            1 if width == 1 else 3 if width == 3 and a.parts == 1 and target.registers >= 32 else 2
        )
        vectors = vectors if a.parts == 1 else 1
        height = _height(rows, best_rows(target, vectors, a.parts))
    lhs_packed = _lhs_packing(c, rows)
    if a.tiles and not lhs_packed and rows % 16:
        lhs_packed = "rows"
    streams = not packs_rhs and moved > target.l2_bytes
    if streams:
        # Long stretches of a few rows of memory at a time: that is what prefetching sees through.
        if 4 < rows <= best_rows(target, 3, 1) and width >= 3:
            vectors, height = 3, rows
        outer_step, unit_step = 1, 8 if rows <= 4 else 32
    else:
        row_bytes = vectors * lanes * a.parts * bits // 8
        # A panel of right factors fills L1; where there are few, left ones need some of it.
        share = 1 if width >= _MANY_PANELS * vectors else 2 / 3
        room = int(target.l1_bytes * share)
        outer_step, unit_step = _depth_step(depth, room, row_bytes, a.tiles, lanes)
    panels = -(-width // vectors)
    wanted = max(1, min(_MOST_TASKS, int(ns / _TASK_NS)))
    block_rows, block_panels = _blocks(rows, height, panels, batch, wanted, target)
    if streams:
        block_panels = max(block_panels, min(panels, _STREAM_BYTES * 8 // (vectors * lanes * bits)))
    if lhs_packed == "depth":
        block_rows = -(-block_rows // lanes) * lanes
    return Blocking(
        target,
        lanes,
        height,
        vectors,
        block_rows,
        block_panels,
        depth,
        outer_step,
        unit_step,
        lhs_packed,
        packs_rhs,
        ns,
    )


def _height(rows: int, most: int) -> int:
    """Rows of a tile: few kinds of tiles, and those full."""
    if rows <= most:
        return rows
    usual = min(8, most)
    for height in (8, 12, 10, 14, 9, 7, 6):
        if height <= most and rows % height == 0:
            return height
    return usual


def _packs_rhs(c: Contraction, rows: int) -> bool:
    """Whether right factors are copied: unless they are read in place, row by row, and seldom."""
    if (
        not _is_plain(c.rhs, c)
        or c.arithmetic.group > 1
        or c.arithmetic.parts > 1
        or len(c.depth) > 1
    ):
        return True
    _, strides = c.rhs.strides()
    unit = all(_stride(c, c.rhs, strides, axis) == 1 for axis in c.columns)
    small = c.count(c.depth) * c.count(c.columns) * c.rhs.shape.element_type.byte_size <= 24 << 10
    return not unit or (rows > 32 and not small)


def _lhs_packing(c: Contraction, rows: int) -> str:
    a = c.arithmetic
    along = runs_along_depth(c.lhs, c)
    if _is_plain(c.lhs, c) and len(c.rows) <= 1 and len(c.depth) <= 1:
        _, strides = c.lhs.strides()
        row = _stride(c, c.lhs, strides, c.rows[0]) if c.rows else 0
        step = _stride(c, c.lhs, strides, c.depth[0]) if c.depth else 0
        if a.group == 1:
            # Rows a page apart, or steps of the depth a page apart, fight for the same places in L1.
            far = max(abs(row), abs(step)) * a.total.byte_size
            if far < 2048 or (far % 1024 and far < 8192) or rows <= 4 or c.count(c.columns) <= 64:
                return ""
        elif along and step == 1 and c.count(c.depth) % (a.group * 16) == 0 and row % a.group == 0:
            return ""
    return "rows" if along or a.tiles or a.parts > 1 else "depth"


def _stride(c: Contraction, factor: Factor, strides: dict[int, int], axis: int) -> int:
    return strides.get(c.origins.get(axis, (axis,))[-1], 0)


def _is_plain(factor: Factor, c: Contraction) -> bool:
    """Whether an operand's memory holds what is multiplied."""
    from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import rounding

    wanted = c.arithmetic.lhs if factor is c.lhs else c.arithmetic.rhs
    element = factor.shape.element_type
    same = element is wanted or (
        element.is_integer
        and wanted.is_integer
        and element.bits == wanted.bits
        and wanted.bits >= 32
    )
    return factor.is_linear and same and rounding(element, c.algorithm) is None


def _depth_step(
    depth: Depth, room: int, row_bytes: int, tiles: bool, lanes: int
) -> tuple[int, int]:
    """Blocks of the depth whose panel of right factors fits `room`; tile registers see all of it."""
    if tiles:
        return max(1, depth.outer_count), max(1, depth.inner_units)
    most = max(4 * lanes, room // row_bytes // lanes * lanes)
    inner = depth.inner_units
    if inner > most:
        parts = -(-inner // most)
        step = -(-inner // parts)
        return 1, -(-step // lanes) * lanes
    outer = max(1, min(depth.outer_count, most // max(1, inner)))
    whole = depth.outer_count // (depth.sizes[depth.outer[0]] if depth.outer else 1)
    if outer >= whole:
        # All of the inner axes: loops then need not take numbers apart.
        outer = outer // whole * whole
    parts = -(-depth.outer_count // outer)
    step = -(-depth.outer_count // parts)
    return (-(-step // whole) * whole if outer >= whole else step), max(1, inner)


def _blocks(
    rows: int, height: int, panels: int, batch: int, wanted: int, target: Target
) -> tuple[int, int]:
    """Rows and panels of a task's block, for about as many tasks as are wanted."""
    tiles = -(-rows // height)
    # Each block reads all panels again: large ones where there are enough of them.
    most = max(1, (256 if rows >= 1024 and panels >= _MANY_PANELS else 128) // height)
    block_tiles = min(tiles, most)
    if -(-tiles // block_tiles) * batch < min(wanted, 16):
        each = max(1, min(wanted, 16) // batch)
        block_tiles = max(min(tiles, 4), -(-tiles // each))
        block_tiles = min(block_tiles, most)
    row_blocks = -(-tiles // block_tiles)
    column_blocks = max(1, min(panels, -(-wanted // (row_blocks * batch))))
    if row_blocks * batch >= min(wanted, 16):
        column_blocks = 1
    return block_tiles * height, -(-panels // column_blocks)
