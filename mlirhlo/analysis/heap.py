"""Places in one block of memory for spans of time: those that meet get memory of their own."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = "NDArray[np.int64]"

Span: TypeAlias = "tuple[int, int, int]"
"""Bytes, and the first and last moment, both included."""

_MOST = 4096
"""Spans that are compared with each other: time grows with the square of their number."""


def pack(spans: Sequence[Span], alignment: int) -> tuple[list[int], int]:
    """Offsets of spans, and the bytes of the whole.

    The largest first, each into the tightest gap between those that are in use at the same time. Of very many
    the smaller ones follow in the order of time, each where the tightest block is free then.
    """
    sizes = [-(-max(bytes_, 1) // alignment) * alignment for bytes_, _, _ in spans]
    order = sorted(range(len(spans)), key=lambda k: (-spans[k][0], spans[k][1]))
    offsets = [0] * len(spans)
    # Columns of those placed so far, in the order of their offsets.
    firsts, lasts, starts, ends = (np.empty(min(len(spans), _MOST), np.int64) for _ in range(4))
    total = 0
    for placed, which in enumerate(order[:_MOST]):
        _, first, last = spans[which]
        size = sizes[which]
        meets = (firsts[:placed] <= last) & (lasts[:placed] >= first)
        offset = _tightest(starts[:placed][meets], ends[:placed][meets], size)
        offsets[which] = offset
        total = max(total, offset + size)
        at = int(np.searchsorted(starts[:placed], offset))
        row = (first, last, offset, offset + size)
        for column, value in zip((firsts, lasts, starts, ends), row, strict=True):
            column[at + 1 : placed + 1] = column[at:placed]
            column[at] = value
    rest = sorted(order[_MOST:], key=lambda k: spans[k][1])
    heap = _Heap(total)
    ending: list[tuple[int, int]] = []
    for which in rest:
        _, first, last = spans[which]
        while ending and ending[0][0] < first:
            _, over = heappop(ending)
            heap.free(offsets[over], sizes[over])
        offsets[which] = heap.take(sizes[which])
        heappush(ending, (last, which))
    return offsets, heap.end


class _Heap:
    """Free blocks from an offset on; neighbours are one."""

    def __init__(self, start: int) -> None:
        self.end = start
        self._blocks: list[tuple[int, int]] = []
        """Sizes and offsets, in order."""
        self._starts: dict[int, int] = {}
        """Sizes by offset."""
        self._ends: dict[int, int] = {}
        """Offsets by end."""

    def take(self, size: int) -> int:
        """The offset of so many bytes: the start of the tightest block, or what is new at the end."""
        at = bisect_left(self._blocks, (size, 0))
        if at == len(self._blocks):
            self.end += size
            return self.end - size
        block, offset = self._blocks[at]
        self._remove(offset, block)
        if block > size:
            self._add(offset + size, block - size)
        return offset

    def free(self, offset: int, size: int) -> None:
        """Gives bytes back."""
        if (before := self._ends.get(offset)) is not None:
            self._remove(before, offset - before)
            offset, size = before, size + offset - before
        if (after := self._starts.get(offset + size)) is not None:
            self._remove(offset + size, after)
            size += after
        self._add(offset, size)

    def _add(self, offset: int, size: int) -> None:
        insort(self._blocks, (size, offset))
        self._starts[offset] = size
        self._ends[offset + size] = offset

    def _remove(self, offset: int, size: int) -> None:
        del self._blocks[bisect_left(self._blocks, (size, offset))]
        del self._starts[offset]
        del self._ends[offset + size]


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
