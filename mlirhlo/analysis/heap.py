"""Places in one block of memory for spans of time: those that meet get memory of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = "NDArray[np.int64]"


def pack(spans: Sequence[tuple[int, int, int]], alignment: int) -> tuple[list[int], int]:
    """Offsets of `(bytes, first moment, last moment)`, both moments included, and the bytes of the whole.

    The largest first, each into the tightest gap between those that are in use at the same time.
    """
    order = sorted(range(len(spans)), key=lambda k: (-spans[k][0], spans[k][1]))
    offsets = [0] * len(spans)
    # Columns of those placed so far, in the order of their offsets.
    firsts, lasts, starts, ends = (np.empty(len(spans), np.int64) for _ in range(4))
    total = 0
    for placed, which in enumerate(order):
        bytes_, first, last = spans[which]
        size = -(-max(bytes_, 1) // alignment) * alignment
        meets = (firsts[:placed] <= last) & (lasts[:placed] >= first)
        offset = _tightest(starts[:placed][meets], ends[:placed][meets], size)
        offsets[which] = offset
        total = max(total, offset + size)
        at = int(np.searchsorted(starts[:placed], offset))
        row = (first, last, offset, offset + size)
        for column, value in zip((firsts, lasts, starts, ends), row, strict=True):
            column[at + 1 : placed + 1] = column[at:placed]
            column[at] = value
    return offsets, total


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
