"""How large the tiles of products of matrices are, by the shape of the product and the device.

Modelled is the time that the blocks take one wave after the other, and that of their traffic. What ends before a
launch has begun costs the same in any tiles; then the one with least traffic is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import Schedule

WARP = 32
LAUNCH_SECONDS = 2e-6
"""Of a launch, in which little work is hidden."""
_MAX_STAGES = 4
_ROW_BYTES = 128
"""Of a tile's row in shared memory: one of each bank."""
_LEAST_ROW_BYTES = 32
_SYSTEM_BYTES = 1024
"""Of each block's shared memory."""
_RATES = {"tiles": {4: 1.0, 8: 0.5}, "mma": {1: 32.0, 2: 16.0, 4: 8.0, 8: 1.0}}
"""Products a clock and core by kind and bytes of a factor's element, of the dense peak of sm_80."""


@dataclass(frozen=True, slots=True)
class Product:
    """Matrices that are multiplied: how many, their sides, and bytes of an element of the factors."""

    batch: int
    rows: int
    columns: int
    terms: int
    bytes: int


def tiled(schedule: Schedule, product: Product, gpu: GpuDevice) -> Schedule:
    """A schedule of kind `tiles` or `mma` with the tiles of least modelled time."""
    return min(
        _candidates(schedule, product, gpu),
        key=lambda s: (
            max(_seconds(s, product, gpu), LAUNCH_SECONDS),
            _traffic(s, product),
            _seconds(s, product, gpu),
        ),
    )


def _candidates(schedule: Schedule, product: Product, gpu: GpuDevice) -> Iterator[Schedule]:
    is_mma = schedule.kind == "mma"
    sides = (16, 32, 64, 128) if is_mma else (32, 64, 128)
    for rows in sides:
        for columns in sides:
            if columns * rows < 1024 or columns < 32:
                continue
            layout = _threads(is_mma, rows, columns)
            if layout is not None:
                threads, down = layout
                tile = replace(
                    schedule, rows=rows, columns=columns, threads=threads, warps_down=down
                )
                yield _staged(tile, product, gpu)


def _threads(is_mma: bool, rows: int, columns: int) -> tuple[int, int] | None:
    """Threads of a block, and warps that share its rows; None for a tile that no threads share evenly."""
    if is_mma:
        # A warp has 16 x 16 elements at least, and no more than fit its registers.
        down = 1 if rows < 32 else 2
        return (4 * WARP, down) if columns // (4 // down) >= 16 else None
    # A thread has 4 or 8 elements along both sides, a warp 8 threads by 4.
    each = 8 if rows * columns >= 128 * 128 else 4
    down, across = rows // (8 * each), columns // (4 * each)
    return (down * across * WARP, down) if down and across and down * across >= 2 else None


def _staged(tile: Schedule, product: Product, gpu: GpuDevice) -> Schedule:
    """With terms and stages such that two blocks fit a multiprocessor."""
    budget = gpu.shared_memory_per_core // 2 - _SYSTEM_BYTES
    row = _ROW_BYTES if tile.kind == "mma" else _ROW_BYTES // 2
    while row > _LEAST_ROW_BYTES and (
        row // 2 >= product.terms * product.bytes or 3 * row * (tile.rows + tile.columns) > budget
    ):
        row //= 2
    terms = row // product.bytes
    fitting = budget // (row * (tile.rows + tile.columns))
    rounds = -(-product.terms // max(tile.parts, 1) // terms)
    return replace(tile, terms=terms, stages=max(1, min(_MAX_STAGES, fitting, rounds)))


def _counts(tile: Schedule, product: Product) -> tuple[int, int, int]:
    return product.batch, -(-product.rows // tile.rows), -(-product.columns // tile.columns)


def _traffic(tile: Schedule, product: Product) -> int:
    """Bytes that blocks read."""
    _, down, across = _counts(tile, product)
    lines = across * product.rows + down * product.columns
    return product.batch * lines * product.terms * product.bytes


def _seconds(tile: Schedule, product: Product, gpu: GpuDevice) -> float:
    blocks = prod(_counts(tile, product))
    rate = gpu.fpus_per_core * gpu.clock_rate_ghz * 1e9 * _RATES[tile.kind][product.bytes]
    # Small tiles wait for shared memory: each element of a factor is multiplied fewer times.
    side = tile.rows * tile.columns / (tile.rows + tile.columns)
    efficiency = side / (side + 16)
    waves = -(-blocks // gpu.core_count)
    work = waves * tile.rows * tile.columns * product.terms / (rate * efficiency)
    return max(work, _traffic(tile, product) / gpu.memory_bandwidth)
