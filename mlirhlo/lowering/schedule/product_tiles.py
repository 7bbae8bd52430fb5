"""How large the tiles of products of matrices are, by the shape of the product and the device.

Modelled is the time that the blocks take one wave after the other, and that of their traffic. What ends before a
launch has begun costs the same in any tiles; then the one with least traffic is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import Schedule

WARP = 32
LAUNCH_SECONDS = 3e-6
"""Of a launch, in which little work is hidden."""
_MAX_STAGES = 4
_ROW_BYTES = 128
"""Of a tile's row in shared memory: one of each bank."""
_LEAST_ROW_BYTES = 32
"""Fewer are swizzled no more. Rows of bytes are whole, as threads transpose them without bank conflicts."""
_SYSTEM_BYTES = 1024
"""Of each block's shared memory."""
_RATES = {
    "tiles": {4: 1.0, 8: 0.5},
    "mma": {1: 32.0, 2: 16.0, 4: 8.0, 8: 1.0},
    "wgmma": {1: 32.0, 2: 16.0, 4: 8.0},
}
"""Products a clock and core by kind and bytes of a factor's element, at the peak."""
_WARPS_ALONE = 0.6
"""What warps reach of the peak of warp groups, where there are these."""
_ROWS = {"tiles": (32, 64, 128), "mma": (16, 32, 64, 128), "wgmma": (64, 128)}
_COLUMNS = {"tiles": (32, 64, 128), "mma": (32, 64, 128), "wgmma": (64, 128, 256)}
_LEAST_TILE = 1024
_SUM_BYTES = 4
"""Of a sum of a part of the terms."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Matrices that are multiplied: how many, their sides, and bytes of an element of the factors."""

    batch: int
    rows: int
    columns: int
    terms: int
    bytes: int


def quickest(schedules: Sequence[Schedule], sizes: Sizes, gpu: GpuDevice) -> Schedule:
    """The schedule of least modelled time."""
    return min(
        schedules,
        key=lambda s: (
            max(_seconds(s, sizes, gpu), LAUNCH_SECONDS) + (s.parts > 1) * LAUNCH_SECONDS,
            _traffic(s, sizes),
            _seconds(s, sizes, gpu),
        ),
    )


def tiles(schedule: Schedule, sizes: Sizes, gpu: GpuDevice) -> Iterator[Schedule]:
    """A schedule of kind `tiles`, `mma` or `wgmma` with tiles of all sizes that it may have."""
    for rows in _ROWS[schedule.kind]:
        for columns in _COLUMNS[schedule.kind]:
            layout = _threads(schedule.kind, rows, columns)
            if columns * rows >= _LEAST_TILE and layout is not None:
                threads, down = layout
                tile = replace(
                    schedule, rows=rows, columns=columns, threads=threads, warps_down=down
                )
                whole = _staged(tile, sizes, gpu)
                yield whole
                parts = 2
                most = gpu.core_count // prod(_counts(whole, sizes))
                while parts <= most and sizes.terms >= 2 * parts * whole.terms:
                    yield _staged(replace(tile, parts=parts), sizes, gpu)
                    parts *= 2


def _threads(kind: str, rows: int, columns: int) -> tuple[int, int] | None:
    """Threads of a block, and warps that share its rows; None for a tile that no threads share evenly."""
    if kind == "wgmma":
        # A warp group multiplies 64 rows; one more warp brings the factors.
        down = rows // 16
        return down * WARP + WARP, down
    if kind == "mma":
        # A warp has 16 x 16 elements at least, and no more than fit its registers.
        down, warps = 1 if rows < 32 else 2, 8 if rows * columns >= 128 * 128 else 4
        return (warps * WARP, down) if columns // (warps // down) >= 16 else None
    # A thread has 4 or 8 elements along both sides, a warp 8 threads by 4.
    each = 8 if rows * columns >= 128 * 128 else 4
    down, across = rows // (8 * each), columns // (4 * each)
    return (down * across * WARP, down) if down and across and down * across >= 2 else None


def _staged(tile: Schedule, sizes: Sizes, gpu: GpuDevice) -> Schedule:
    """With terms and stages such that two blocks fit a multiprocessor, where its parts are enough for three stages."""
    budget = gpu.shared_memory_per_core // 2 - _SYSTEM_BYTES
    row = _ROW_BYTES // 2 if tile.kind == "tiles" else _ROW_BYTES
    least = _ROW_BYTES if tile.kind == "wgmma" or sizes.bytes == 1 else _LEAST_ROW_BYTES
    lines = tile.rows + tile.columns
    while row > least and (row // 2 >= sizes.terms * sizes.bytes or 3 * row * lines > budget):
        row //= 2
    terms = row // sizes.bytes
    fitting = budget // (row * lines)
    rounds = -(-sizes.terms // max(tile.parts, 1) // terms)
    return replace(tile, terms=terms, stages=max(1, min(_MAX_STAGES, fitting, rounds)))


def _counts(tile: Schedule, sizes: Sizes) -> tuple[int, int, int]:
    return sizes.batch, -(-sizes.rows // tile.rows), -(-sizes.columns // tile.columns)


def _traffic(tile: Schedule, sizes: Sizes) -> int:
    """Bytes that blocks read, and those of sums of parts, which are written and read."""
    _, down, across = _counts(tile, sizes)
    lines = across * sizes.rows + down * sizes.columns
    read = sizes.batch * lines * sizes.terms * sizes.bytes
    sums = 2 * _SUM_BYTES * sizes.batch * sizes.rows * sizes.columns * tile.parts
    return read + sums


def _seconds(tile: Schedule, sizes: Sizes, gpu: GpuDevice) -> float:
    parts = max(tile.parts, 1)
    blocks = prod(_counts(tile, sizes)) * parts
    rate = gpu.fpus_per_core * gpu.clock_rate_ghz * 1e9 * _RATES[tile.kind][sizes.bytes]
    # Small tiles wait for shared memory: each element of a factor is multiplied fewer times.
    side = tile.rows * tile.columns / (tile.rows + tile.columns)
    efficiency = side / (side + 16)
    if tile.kind == "mma" and gpu.capability == (9, 0):
        efficiency *= _WARPS_ALONE
    waves = -(-blocks // gpu.core_count)
    work = waves * tile.rows * tile.columns * sizes.terms / parts / (rate * efficiency)
    return max(work, _traffic(tile, sizes) / gpu.memory_bandwidth)
