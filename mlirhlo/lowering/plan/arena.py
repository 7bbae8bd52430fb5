"""Offsets in the arena: buffers whose spans meet get memory of their own."""

from __future__ import annotations

from collections.abc import Iterable

from mlirhlo.analysis.heap import pack
from mlirhlo.diagnostics import out_of_memory
from mlirhlo.dialects.hlo.shapes import MAX_BYTES
from mlirhlo.lowering.plan.steps import Buffer

ALIGNMENT = 64
"""Bytes, of every buffer: one vector, one cache line."""


def aligned(size: int) -> int:
    """`size` rounded up."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def assign_offsets(buffers: Iterable[Buffer]) -> int:
    """Gives every buffer an offset; the bytes of the whole arena.

    Raises `HloError` HLO0507 where no memory can hold it.
    """
    listed = list(buffers)
    for buffer in listed:
        if buffer.size > MAX_BYTES:
            raise out_of_memory(f"no memory can hold {buffer.shape}")
    offsets, total = pack([(b.size, b.first, b.last) for b in listed], ALIGNMENT)
    for buffer, offset in zip(listed, offsets, strict=True):
        buffer.offset = offset
    if total > MAX_BYTES:
        raise out_of_memory(f"no memory can hold {total} bytes of temporaries")
    return total
