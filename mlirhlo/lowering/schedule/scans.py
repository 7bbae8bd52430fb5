"""The schedules of scans: how many threads share a line, and how many blocks."""

from __future__ import annotations

from math import prod

from mlirhlo.dialects.structured import ScanOp, element_types, sizes_of
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import Schedule, element_of
from mlirhlo.lowering.schedule.transposes.boxes import SECTOR

_WARP = 32
_BLOCK = 256
_MANY_LINES = 1 << 14
"""Lines that keep a device busy with a thread each, where neighbours in memory are of neighbouring lines."""
_SHORT_BYTES = 2048
"""Of a line whose ends waste too much of their sectors when it is read alone."""
_LONG = 1 << 15
"""Elements of a line that several blocks share, where there are few lines."""
_FEW_LINES = 64
_HELD, _TILES = 16, 16
"""Elements of a part that a thread holds in registers, and tiles that they are in, at most."""
_STAGED_BYTES = 16 << 10
"""Of a block's elements in shared memory, about."""
_STAGED_MOST = 40 << 10
_PART = 4
"""Elements of a line in shared memory that a thread scans, at least, where several share it."""


def schedule_of_scan(op: ScanOp, launch: int, device: GpuDevice) -> Schedule:
    """Threads share a line where the order of folding is open; blocks share one where there are few lines. Short lines,
    and those that are no neighbours in memory, go through shared memory."""
    sizes = sizes_of(op.inputs[0])
    length, lines = sizes[op.dim], prod(sizes_of(op.inits[0]))
    across = prod(sizes[op.dim + 1 :])
    if 0 in sizes or (across > 1 and lines >= _MANY_LINES and across % _sector(op) == 0):
        return Schedule(launch, "scan")
    staged = _staged(op, launch, device)
    if staged is not None:
        return staged
    if not is_foldable(op):
        return Schedule(launch, "scan")
    held = max(1, min(4, 16 // max(_sizes(op))))
    while length % held:  # what a thread reads at once is in the line as a whole, or not at all
        held //= 2
    threads = _WARP
    while threads < _BLOCK and threads * held < length:
        threads *= 2
    parts = 1
    if lines <= _FEW_LINES and length >= _LONG:
        parts = -(-length // (min(_TILES, _HELD // held) * threads * held))
    block = threads if parts > 1 or threads > _WARP else 4 * _WARP
    return Schedule(launch, "scan", threads=block, vector=held, row_threads=threads, parts=parts)


def _staged(op: ScanOp, launch: int, device: GpuDevice) -> Schedule | None:
    """A block brings a tile of lines to shared memory, as it lies in memory; None where lines are long enough to be
    read alone."""
    sizes, sector, bytes_ = sizes_of(op.inputs[0]), _sector(op), _element_bytes(op)
    outer, length, across = prod(sizes[: op.dim]), sizes[op.dim], prod(sizes[op.dim + 1 :])
    blocks = 2 * device.core_count
    outers, steps, columns = 1, length, across
    if length * across * max(_sizes(op)) < _SHORT_BYTES:
        while outers * length * across % sector:
            outers *= 2
        while (
            2 * outers * length * across * bytes_ <= _STAGED_BYTES and outer >= 2 * outers * blocks
        ):
            outers *= 2
        if outers * length * across * bytes_ > _STAGED_MOST:
            return None
    elif across == 1:
        return None
    else:
        if across % sector == 0:
            columns = sector
            while 4 * columns <= _BLOCK and outer * across >= 2 * columns * blocks:
                columns *= 2
        columns = min(columns, across, _BLOCK)
        steps = max(_STAGED_BYTES // (bytes_ * columns) // sector, 1) * sector
        steps = min(steps, length)
    lines = outers * columns
    threads = 1
    while is_foldable(op) and 2 * threads * lines <= _BLOCK and 2 * threads * _PART <= steps:
        threads *= 2
    block = max(min(_BLOCK, lines * steps // _PART), lines * threads)
    return Schedule(
        launch,
        "staged_scan",
        threads=-(-block // _WARP) * _WARP,
        row_threads=threads,
        tile=(outers, steps, columns),
        pitches=(steps * columns | (columns == 1), columns, 1),
    )


def idle_threads(op: ScanOp, held: int) -> int:
    """How many threads, of so many elements each, have none at most, since a line begins within a sector."""
    sizes, sector = sizes_of(op.inputs[0]), _sector(op)
    length = sizes[op.dim]
    is_minor = prod(sizes[op.dim + 1 :]) == 1
    begins_whole = prod(sizes) == length and op.reverse is None
    if not is_minor or length % sector == 0 or begins_whole:
        return 0
    return max(sector // held, 1) - 1


def is_foldable(op: ScanOp) -> bool:
    """Whether parts of a line can be folded apart: inputs, states and outputs are of the same types."""
    elements = element_types(op.inputs)
    return (
        op.associative is not None
        and element_types(op.inits) == elements
        and element_types(op.outputs) == [*elements, *elements]
    )


def _sizes(op: ScanOp) -> list[int]:
    return [element_of(value).byte_size for value in op.inputs]


def _sector(op: ScanOp) -> int:
    """Elements of the narrowest input that fill a sector."""
    return max(SECTOR // min(_sizes(op), default=SECTOR), 1)


def _element_bytes(op: ScanOp) -> int:
    """Of an element in shared memory: of all inputs, and of outputs that do not take their memory."""
    count = 0 if is_foldable(op) else len(op.outputs) - len(op.inits)
    return sum((*_sizes(op), *(element_of(value).byte_size for value in op.outputs[:count])))
