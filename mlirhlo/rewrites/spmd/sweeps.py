"""Sweeps over ties, forward and backward, that look only at ties which may change something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from mlirhlo.rewrites.spmd.ties import Node, Tie


class Sweeps:
    """Ties in order, and which of them have a node that changed since they were looked at.

    What a tie does follows from its nodes, so that a sweep over these gives what one over all ties gives. Programs
    whose calls follow each other take as many sweeps as calls, each over a few ties.
    """

    def __init__(self, ties: Sequence[Tie], look: Callable[[Tie], bool]) -> None:
        """`look` is told a tie and says whether it changed a node; then `touch` is told which."""
        self._ties = ties
        self._look = look
        self._dirty = set(range(len(ties)))
        self._queue: list[int] = []
        self._at = self._step = 0
        self._of: dict[int, list[int]] = {}
        for number, tie in enumerate(ties):
            for node in tie.nodes:
                self._of.setdefault(id(node), []).append(number)

    def touch(self, node: Node) -> None:
        """A node has changed: its ties are looked at, those ahead in this sweep."""
        for number in self._of.get(id(node), ()):
            if number not in self._dirty:
                self._dirty.add(number)
                if (number - self._at) * self._step > 0:
                    heappush(self._queue, number * self._step)

    def both_ways(self) -> bool:
        """One sweep forward and one backward; whether a node changed."""
        changed = False
        for self._step in (1, -1):
            self._queue = sorted(number * self._step for number in self._dirty)
            while self._queue:
                self._at = heappop(self._queue) * self._step
                self._dirty.discard(self._at)
                changed |= self._look(self._ties[self._at])
        self._step = 0
        return changed
