"""Offsets in the arena: buffers whose spans meet get memory of their own."""

from __future__ import annotations

from collections.abc import Iterable

from mlirhlo.lowering.cpu.steps import Buffer

ALIGNMENT = 64
"""Bytes, of every buffer: one vector, one cache line."""


def aligned(size: int) -> int:
    """`size` rounded up."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def assign_offsets(buffers: Iterable[Buffer]) -> int:
    """Gives every buffer an offset; the bytes of the whole arena.

    The largest first, each into the tightest gap between those that are in use at the same time.
    """
    placed: list[Buffer] = []
    total = 0
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.first)):
        size = aligned(max(buffer.size, 1))
        meeting = sorted(
            (b for b in placed if b.first <= buffer.last and buffer.first <= b.last),
            key=lambda b: b.offset,
        )
        best: tuple[int, int] | None = None
        end = 0
        for other in meeting:
            gap = other.offset - end
            if gap >= size and (best is None or gap < best[0]):
                best = (gap, end)
            end = max(end, other.offset + aligned(max(other.size, 1)))
        buffer.offset = end if best is None else best[1]
        total = max(total, buffer.offset + size)
        placed.append(buffer)
    return total
