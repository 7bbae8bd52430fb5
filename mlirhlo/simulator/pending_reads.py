"""Memory that copies and products under way may still read."""

from __future__ import annotations

import numpy as np

from mlirhlo.simulator.lanes import Array


class PendingReads:
    """What copies and products under way may still read."""

    def __init__(self, count: int) -> None:
        self.stamps = np.zeros(count, np.uint64)
        """Of the last one that began."""
        self.counts = np.zeros(count, np.uint16)
        self.begun = 0
        """How many are under way."""

    def begin(self, places: Array, stamps: Array) -> None:
        """One begins."""
        self.stamps[places] = stamps
        self.counts[places] += 1
        self.begun += 1

    def end(self, places: Array) -> None:
        """One has been waited for."""
        self.counts[places] -= 1
        self.begun -= 1

    def clear(self, part: slice) -> None:
        """Memory is new."""
        self.counts[part] = 0
