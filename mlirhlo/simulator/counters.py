"""Counts of instructions and of memory accesses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.lanes import WARP, Lanes
from mlirhlo.simulator.report import Traffic

BANKS = 32
SECTOR_SHIFT = 5


class Counts:
    """Executed instructions, noted where straight runs begin and end."""

    def __init__(self, instructions: int) -> None:
        self.threads = np.zeros(instructions + 1, np.int64)
        self.warps = np.zeros(instructions + 1, np.int64)

    def add(self, start: int, end: int, lanes: Lanes) -> None:
        """The threads `lanes` executed the instructions from `start` up to `end`."""
        if isinstance(lanes, slice):
            threads = lanes.stop - lanes.start
            warps = (lanes.stop - 1) // WARP - lanes.start // WARP + 1
        else:
            threads = len(lanes)
            warps = int(np.count_nonzero(np.diff(lanes // WARP))) + 1
        self.threads[start] += threads
        self.threads[end] -= threads
        self.warps[start] += warps
        self.warps[end] -= warps

    def totals(self, classes: Tally, units: Tally) -> tuple[dict[str, int], dict[str, float], int]:
        """Instructions of threads by class, what they took of each unit, and instructions of warps."""
        threads = np.cumsum(self.threads)[:-1]
        by_class = {name: int(count) for name, count in classes.of(threads) if name}
        by_unit = {name: count for name, count in units.of(threads) if name}
        return by_class, by_unit, int(np.cumsum(self.warps).sum())


class Tally:
    """Names of the instructions of a kernel, each with what one thread counts for."""

    def __init__(self, names: Sequence[str], work: Sequence[float] = ()) -> None:
        self.names, numbers = np.unique(np.array(names), return_inverse=True)
        self.numbers: NDArray[np.intp] = numbers
        self.work = np.array(work or [1] * len(names))

    def of(self, threads: NDArray[np.int64]) -> Iterator[tuple[str, float]]:
        """Sums of the threads that executed the instructions of each name, but for those of none."""
        sums = np.bincount(self.numbers, threads * self.work, len(self.names))
        return (pair for pair in zip(self.names.tolist(), sums.tolist(), strict=True) if pair[1])


class MemoryFigures:
    """Requests, sectors and conflicts of one launch."""

    def __init__(self) -> None:
        self.global_memory = Traffic()
        self.shared_memory = Traffic()

    def count_global(
        self, index: NDArray[np.int64], size: int, lanes: Lanes, *, write: bool
    ) -> None:
        """An access of `size` bytes a lane to global memory."""
        warps = sets.indices(lanes) // WARP
        first, last = index >> SECTOR_SHIFT, index + (size - 1) >> SECTOR_SHIFT
        keys = first + (warps << 44)
        steps = keys[1:] - keys[:-1]
        if (steps < 0).any():
            keys.sort()
            steps = keys[1:] - keys[:-1]
        sectors = int(np.count_nonzero(steps)) + 1
        if size > 32:
            sectors += int((last - first).sum())
        count = len(index) * size
        self.global_memory += Traffic(
            _distinct(warps), sectors, 0, 0 if write else count, count if write else 0
        )

    def count_shared(
        self, index: NDArray[np.int64], size: int, lanes: Lanes, *, write: bool
    ) -> None:
        """An access of `size` bytes a lane to shared memory."""
        numbers = sets.indices(lanes)
        count = len(index) * size
        # Accesses of 8 and 16 bytes are served for half and quarter warps.
        share = max(1, size // 4)
        parts = numbers // (WARP // share)
        words = index >> 2
        if share > 1:
            words = (words[:, None] + np.arange(share)).reshape(-1)
            parts = np.repeat(parts, share)
        keys = np.sort(words + (parts << 40))
        if len(keys) > 1:
            keys = keys[np.concatenate(([True], keys[1:] != keys[:-1]))]
        groups = keys >> 40
        groups -= groups[0]
        count_of = np.bincount(
            (groups << 5) + (keys & (BANKS - 1)), minlength=(int(groups[-1]) + 1) * BANKS
        )
        loads = count_of.reshape(-1, BANKS).max(axis=1)
        conflicts = int((loads[loads > 0] - 1).sum())
        self.shared_memory += Traffic(
            _distinct(numbers // WARP), 0, conflicts, 0 if write else count, count if write else 0
        )


def _distinct(ascending: NDArray[np.intp]) -> int:
    return int(np.count_nonzero(ascending[1:] != ascending[:-1])) + 1
