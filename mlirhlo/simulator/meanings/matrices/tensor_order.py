"""Order of accesses to tensor memory by different threads: the check that `tcgen05.fence` stands where it has to.

Loads, stores, copies and products are asynchronous. An access that overlaps another thread's needs, behind that one's
completion, `tcgen05.fence::before_thread_sync` (which `tcgen05.commit` implies for copies and products), then
synchronisation, and then `tcgen05.fence::after_thread_sync`. Copies and products that these fences order are one
pipeline, and need no commit between them. Loads and stores need the latter behind copies and
products of their own thread too. Allocation and deallocation are synchronous, and need neither.
Source: PTX ISA, "Memory Consistency Model for 5th generation of TensorCore operations".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.lanes import WARP, Array, Lanes

Cells: TypeAlias = "tuple[int, Array, Array]"
"""A block, and rows and columns of its tensor memory that broadcast against each other."""
Report: TypeAlias = Callable[[str, str, str, int], None]
"""Takes a key, a message, a mend and the earlier instruction."""


@dataclass(slots=True, eq=False)
class Access:
    """An access of a warp, or of the thread of a copy or product."""

    pc: int
    lanes: Array
    is_committed: bool
    """Whether a commit says when it is complete: of copies and products."""
    unfenced: set[int]
    """Its threads that have not executed the fence before synchronisation."""
    fenced: int | None = None
    """When all had."""
    completed: int | None = None
    """When it was complete, of copies and products."""

    @property
    def passed_on(self) -> int | None:
        """When it was complete and fenced: a commit is a fence, and other accesses are waited for before theirs."""
        return self.completed if self.is_committed else self.fenced


@dataclass(slots=True)
class Order:
    """The last accesses to the tensor memory of a cohort's blocks, and the fences since."""

    report: Report
    writes: Array
    """Blocks × lanes × columns: one more than the number of the last access that writes; 0 for none."""
    reads: Array
    """The same of accesses that read."""
    after: Array
    """By thread: when it last executed the fence after synchronisation."""
    accesses: list[Access] = field(default_factory=list[Access])
    unfenced: list[Access] = field(default_factory=list[Access])
    time: int = 0

    def access(
        self, pc: int, cells: Cells, lanes: Array, what: str, *, writes: bool, commits: bool
    ) -> Access:
        """Checks and notes an access of threads; `commits`: a copy or product."""
        new = Access(pc, lanes, commits, set(lanes.tolist()))
        conflicting = (self.writes, self.reads) if writes else (self.writes,)
        numbers = set[int]().union(*(np.unique(of[cells]).tolist() for of in conflicting))
        for number in sorted(numbers - {0}):
            self._check(self.accesses[number - 1], new, what)
        self.accesses.append(new)
        (self.writes if writes else self.reads)[cells] = len(self.accesses)
        self.unfenced.append(new)
        return new

    def _check(self, old: Access, new: Access, what: str) -> None:
        own = bool((old.lanes[0] // WARP == new.lanes // WARP).any())
        if old.is_committed:
            if old.passed_on is None or (new.is_committed and self.is_pipelined(old, new.lanes[0])):
                return  # what is under way is reported as such
        elif own:
            return
        if old.passed_on is None:
            fence, where = "before", "after the access before it, and before the synchronisation"
        elif int(self.after[new.lanes].min()) < old.passed_on:
            fence, where = "after", "after the synchronisation"
        else:
            return
        name = f"tcgen05.fence::{fence}_thread_sync"
        self.report(
            fence,
            f"{what} tensor memory, and no {name} orders it after an earlier access",
            f"execute {name} {where}",
            old.pc,
        )

    def is_pipelined(self, old: Access, lane: int) -> bool:
        """Whether a copy or product that a thread begins now follows an earlier one without waiting for its end."""
        is_ordered = old.fenced is not None and int(self.after[lane]) >= old.fenced
        return is_ordered or int(old.lanes[0]) == lane

    def fence_before(self, lanes: Lanes) -> None:
        """Threads executed `tcgen05.fence::before_thread_sync`."""
        self.time += 1
        threads = set(sets.indices(lanes).tolist())
        for access in self.unfenced:
            access.unfenced -= threads
            if not access.unfenced:
                access.fenced = self.time
        self.unfenced = [access for access in self.unfenced if access.unfenced]

    def fence_after(self, lanes: Lanes) -> None:
        """Threads executed `tcgen05.fence::after_thread_sync`."""
        self.time += 1
        self.after[lanes] = self.time

    def complete(self, accesses: Iterable[Access]) -> None:
        """Copies or products are complete."""
        self.time += 1
        for access in accesses:
            access.completed = self.time

    def free(self, block: int, columns: Array) -> None:
        """Columns are deallocated."""
        self.writes[block][:, columns] = self.reads[block][:, columns] = 0
