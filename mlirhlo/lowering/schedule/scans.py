"""The schedules of scans: how many threads share a line, and how many blocks."""

from __future__ import annotations

from math import prod

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.structured import ScanOp, element_types, sizes_of
from mlirhlo.lowering.schedule.attributes import Schedule

_WARP = 32
_BLOCK = 256
_MANY_LINES = 1 << 14
"""Lines that keep a device busy with a thread each, where neighbours in memory are of neighbouring lines."""
_SHORT = 32
"""Elements of a line that one thread scans."""
_LONG = 1 << 15
"""Elements of a line that several blocks share, where there are few lines."""
_FEW_LINES = 64
_HELD, _TILES = 16, 8
"""Elements of a part that a thread holds in registers, and tiles that they are in, at most."""


def schedule_of_scan(op: ScanOp, launch: int) -> Schedule:
    """Threads share a line where the order of folding is open and a thread a line would read memory badly, or be
    few; blocks share one where there are few lines."""
    sizes = sizes_of(op.inputs[0])
    length, lines = sizes[op.dim], prod(sizes_of(op.inits[0]))
    is_minor = op.dim == len(sizes) - 1
    if not is_foldable(op) or length <= _SHORT or (not is_minor and lines >= _MANY_LINES):
        return Schedule(launch, "scan")
    bits = max(_bits(op, number) for number in range(len(op.inputs)))
    held = max(1, min(4, 128 // max(bits, 8)))
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


def is_foldable(op: ScanOp) -> bool:
    """Whether parts of a line can be folded apart: inputs, states and outputs are of the same types."""
    elements = element_types(op.inputs)
    return (
        op.associative is not None
        and element_types(op.inits) == elements
        and element_types(op.outputs) == [*elements, *elements]
    )


def _bits(op: ScanOp, number: int) -> int:
    shape = shape_of(op.inputs[number].type)
    assert isinstance(shape, ArrayShape)
    return shape.element_type.bits
