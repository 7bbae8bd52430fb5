"""How a contraction is cut: tiles for registers, blocks of rows and columns for tasks, of depth for L2.

A task makes one block of the result: block by block of the depth, panel by panel of the columns (a panel
of right factors stays in L1), tile by tile of the rows. All numbers follow from the sizes and the target,
never from the number of threads, so that results do not either.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, lcm

from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import Arithmetic, rounding
from mlirhlo.lowering.hlo_to_loops.contractions.packing import Depth, runs_along_depth
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction, Factor, window_step
from mlirhlo.lowering.hlo_to_loops.contractions.tiles import best_rows
from mlirhlo.lowering.target import PAGE, Target

_TASK_NS = 40_000
"""A task should take about as long at least."""
_TASKS = 16
_LONG_TASK_NS = 2_000_000
"""There are more than so many tasks only if each takes as long."""
_MOST_TASKS = 64
_LEAST_TILES = 4
"""Tiles of a block of rows, where there are as many."""
_LEAST_ROWS = 128
_ROWS_A_PANEL = 16
"""A block of rows has no more for each of the panels that it meets: few use what is packed soon."""
_PANEL_SHARE = 0.5
"""Of L2, that a block of the depth of a panel may take: what L1 does not hold is asked for ahead, and sums
are written seldom."""
_SMALL_SHARE = 2
"""Panels of so many times L1 are read for each tile of rows: results then come in the order of memory."""
_RHS_SHARE = 0.4
"""Of L2, that right factors may take which are read for every line of a window's places, or for every
tile of rows where arrays like the result are read too: in the order of memory they come sooner."""
_SMALL_RHS = 24 << 10
"""Bytes of right factors that are read where they are, however many rows there are."""
_LHS_SHARE = 0.5
"""Of L2, that a block of left factors may take."""
_WAYS_SHARE = 2 / 3
"""Of the ways of L1, that left factors may take which are read where they are."""
_PANEL_COLUMNS = 32
"""Of matrices that were laid out in panels before a loop."""
_STREAM_BYTES = 8 << 10
"""Neighbours in memory that a task reads at least: prefetching goes by pages."""


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Of the operands, for each time that they are read."""

    lhs: int
    rhs: int


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
    """`rows` or `depth`: a row for each of them; `window`: lines of memory that windows move along;
    empty: read where it is."""
    rhs_packed: bool
    goes_by_rows: bool
    """Whether all panels are met by a tile's rows before the next tile's, else the other way round."""
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


def choose_blocking(c: Contraction, target: Target, *, reads_beside: bool) -> Blocking:
    """The blocking of a contraction that has been oriented and merged.

    `reads_beside`: whether what comes after the sums reads arrays like the result.
    """
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
    vectors, height = _tile(a, target, rows, width, packs_rhs=packs_rhs)
    windows = window_step(c) > 0 and reads_windows(c, target)
    if windows:
        most = best_rows(target, vectors, a)
        height = -(-rows // -(-rows // most))
    lhs_packed = "window" if windows else _lhs_packing(c, rows, height, target)
    if a.tiles and not lhs_packed and rows % 16:
        lhs_packed = "rows"
    streams = not packs_rhs and moved > target.l2_bytes and not _is_small(c)
    streams = streams and not _is_in_panels(c)
    if windows:
        outer_step, unit_step = depth.outer_count, depth.inner_units
    elif streams:
        # Long stretches of a few rows of memory at a time: that is what prefetching sees through.
        if 4 < rows <= best_rows(target, 3, a) and width >= 3:
            vectors, height = 3, rows
        outer_step, unit_step = 1, 8 if rows <= 4 else 32
    else:
        row_bytes = vectors * lanes * a.parts * bits // 8
        room = int(target.l2_bytes * _PANEL_SHARE)
        outer_step, unit_step = _depth_step(depth, room, row_bytes, a.tiles, lanes)
    panels = -(-width // vectors)
    wanted = max(1, min(_TASKS, int(ns / _TASK_NS)), min(_MOST_TASKS, int(ns / _LONG_TASK_NS)))
    unit_bytes = a.lhs.real.byte_size * a.group * a.parts
    most_rows = int(target.l2_bytes * _LHS_SHARE) // (outer_step * unit_step * unit_bytes)
    most_rows = min(most_rows, max(_LEAST_ROWS, _ROWS_A_PANEL * panels))
    bytes_of = _Bytes(
        rows * depth.units * unit_bytes * (2 if lhs_packed else 1),
        width * lanes * depth.units * unit_bytes,
    )
    block_rows, block_panels = _blocks(rows, height, panels, batch, wanted, most_rows, bytes_of)
    if streams:
        block_panels = max(block_panels, min(panels, _STREAM_BYTES * 8 // (vectors * lanes * bits)))
    block_bytes = block_panels * vectors * lanes * depth.units * unit_bytes
    in_blocks = outer_step < depth.outer_count or unit_step < depth.inner_units
    in_order = reads_beside and not in_blocks
    small = _RHS_SHARE * target.l2_bytes if in_order else _SMALL_SHARE * target.l1_bytes
    if lhs_packed == "depth":
        # Whole vectors are packed, and all blocks but the last are whole tiles.
        unit = lanes if block_rows >= rows else lcm(lanes, height)
        block_rows = -(-block_rows // unit) * unit
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
        packs_rhs and block_bytes <= small,
        ns,
    )


def _tile(
    a: Arithmetic, target: Target, rows: int, width: int, *, packs_rhs: bool
) -> tuple[int, int]:
    """Vectors and rows of a micro-kernel's tile; `width` counts vectors of a row of the result."""
    if a.tiles:
        return min(2, width), 32 if rows > 16 else 16
    if not packs_rhs and rows <= 4:
        vectors = min(width, 8 // a.parts, (target.registers - 6) // (rows * a.parts))
        return max(1, vectors), rows
    is_wide = width == 3 and target.registers >= 32
    vectors = 1 if width == 1 or a.parts > 1 else 3 if is_wide else 2
    return vectors, _height(rows, best_rows(target, vectors, a))


def reads_windows(c: Contraction, target: Target) -> bool:
    """Whether left factors are copied window by window, overlaps once, not row by row.

    All of the right ones then are read for a line of rows: they have to stay in L2.
    """
    a = c.arithmetic
    size = c.count(c.depth) * c.count(c.columns) * a.rhs.real.byte_size
    return not a.tiles and a.group == 1 and a.parts == 1 and size <= _RHS_SHARE * target.l2_bytes


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
    if c.rhs_in_units:
        return False
    if (
        not _is_plain(c.rhs, c)
        or c.arithmetic.group > 1
        or c.arithmetic.parts > 1
        or len(c.depth) > 1
    ):
        return True
    _, strides = c.rhs.strides()
    unit = all(_stride(c, c.rhs, strides, axis) == 1 for axis in c.columns)
    return not unit or (rows > 32 and not _is_small(c) and not _is_in_panels(c))


def _is_small(c: Contraction) -> bool:
    """Whether L1 holds the right factors of one place of the batch."""
    return c.count(c.depth) * c.count(c.columns) * c.rhs.shape.element_type.byte_size <= _SMALL_RHS


def _is_in_panels(c: Contraction) -> bool:
    """Whether right factors stand in memory as packing would put them: row after row of few columns."""
    if c.rhs_in_units:
        return True
    if not c.rhs.is_linear or len(c.depth) != 1:
        return False
    _, strides = c.rhs.strides()
    return _stride(c, c.rhs, strides, c.depth[0]) == c.count(c.columns) <= _PANEL_COLUMNS


def _lhs_packing(c: Contraction, rows: int, height: int, target: Target) -> str:
    a = c.arithmetic
    along = runs_along_depth(c.lhs, c)
    if _is_plain(c.lhs, c) and len(c.rows) <= 1 and len(c.depth) <= 1:
        _, strides = c.lhs.strides()
        row = _stride(c, c.lhs, strides, c.rows[0]) if c.rows else 0
        step = _stride(c, c.lhs, strides, c.depth[0]) if c.depth else 0
        if a.group == 1:
            bytes_ = c.lhs.shape.element_type.byte_size
            if step == 1 and _same_places(row * bytes_, height) <= _WAYS_SHARE * target.l1_ways:
                return ""
            # Steps of the depth a page apart fight for the same places in L1.
            far = max(abs(row), abs(step)) * bytes_
            if far < 2048 or rows <= 4 or c.count(c.columns) <= 64:
                return ""
            # Steps in pages of their own are more than the first table of translations holds.
            if (step == 1 or c.count(c.columns) <= 128) and far % 1024 and far < 8192:
                return ""
        elif along and step == 1 and c.count(c.depth) % (a.group * 16) == 0:
            first, strides = c.lhs.strides()
            outer = (o for axis in (*c.rows, *c.batch) for o in c.origins.get(axis, (axis,)))
            if all(n % a.group == 0 for n in (first, *(strides.get(o, 0) for o in outer))):
                return ""
    return "rows" if along or a.tiles or a.parts > 1 else "depth"


def _same_places(stride_bytes: int, rows: int) -> int:
    """How many of so many rows stand in the same places of L1, which an address less than a page tells."""
    return -(-rows * gcd(stride_bytes, PAGE) // PAGE)


def _stride(c: Contraction, factor: Factor, strides: dict[int, int], axis: int) -> int:
    return strides.get(c.origins.get(axis, (axis,))[-1], 0)


def _is_plain(factor: Factor, c: Contraction) -> bool:
    """Whether an operand's memory holds what is multiplied."""
    wanted = c.arithmetic.lhs if factor is c.lhs else c.arithmetic.rhs
    element = factor.shape.element_type
    if c.arithmetic.moved and factor is c.lhs:
        return False
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
    rows: int, height: int, panels: int, batch: int, wanted: int, most_rows: int, bytes_of: _Bytes
) -> tuple[int, int]:
    """Rows and panels of a task's block, for about as many tasks as are wanted.

    Every block of rows reads the right operand again, every block of columns the left one: of all
    cuts into enough tasks, the one that reads least.
    """
    tiles = -(-rows // height)
    most = max(1, min(tiles, most_rows // height))
    least = min(most, _LEAST_TILES)
    each = -(-wanted // batch)
    best: tuple[float, int, int] | None = None
    for row_blocks in range(-(-tiles // most), -(-tiles // least) + 1):
        column_blocks = min(panels, -(-each // row_blocks))
        missing = max(0.0, each / (row_blocks * column_blocks) - 1)
        cost = column_blocks * bytes_of.lhs + row_blocks * bytes_of.rhs
        found = (cost * (1 + missing), row_blocks, column_blocks)
        best = found if best is None else min(best, found)
        if row_blocks > each and missing == 0:
            break
    assert best is not None
    _, row_blocks, column_blocks = best
    return -(-tiles // row_blocks) * height, -(-panels // column_blocks)
