"""Offsets in the arena: buffers whose spans meet get memory of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlirhlo.lowering.cpu.steps import Buffer

Column: TypeAlias = "NDArray[np.int64]"

ALIGNMENT = 64
"""Bytes, of every buffer: one vector, one cache line."""


def aligned(size: int) -> int:
    """`size` rounded up."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def assign_offsets(buffers: Iterable[Buffer]) -> int:
    """Gives every buffer an offset; the bytes of the whole arena.

    The largest first, each into the tightest gap between those that are in use at the same time.
    """
    ordered = sorted(buffers, key=lambda b: (-b.size, b.first))
    count = len(ordered)
    # Columns of those placed so far, in the order of their offsets.
    firsts, lasts, starts, ends = (np.empty(count, np.int64) for _ in range(4))
    total = 0
    for placed, buffer in enumerate(ordered):
        size = aligned(max(buffer.size, 1))
        meets = (firsts[:placed] <= buffer.last) & (lasts[:placed] >= buffer.first)
        offset = _tightest(starts[:placed][meets], ends[:placed][meets], size)
        buffer.offset = offset
        total = max(total, offset + size)
        at = int(np.searchsorted(starts[:placed], offset))
        row = (buffer.first, buffer.last, offset, offset + size)
        for column, value in zip((firsts, lasts, starts, ends), row, strict=True):
            column[at + 1 : placed + 1] = column[at:placed]
            column[at] = value
    return total


def _tightest(starts: Column, ends: Column, size: int) -> int:
    """Where `size` bytes fit between blocks, which are given by their order and may overlap."""
    if not len(starts):
        return 0
    reached = np.maximum.accumulate(ends)
    gaps = starts.copy()
    gaps[1:] -= reached[:-1]
    wide = np.flatnonzero(gaps >= size)
    if not len(wide):
        return int(reached[-1])
    best = int(wide[np.argmin(gaps[wide])])
    return int(reached[best - 1]) if best else 0
