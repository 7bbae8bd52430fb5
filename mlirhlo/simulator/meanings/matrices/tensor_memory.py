"""Tensor memory of blocks, and the checks of accesses to it.

A block has 128 lanes of 512 columns of 32 bits; an address has the lane in its upper half. Copies from shared memory
and products (`tensor_products`) are under way until an mbarrier that a `tcgen05.commit` names has been waited for; they
complete as late as the program allows.
Source: PTX ISA, "TensorCore 5th generation family instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from mlirhlo.analysis.ptx.liveness import read, registers_in, written
from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.simulator.access import (
    place_at,
    thread_name,
)
from mlirhlo.simulator.assembler import Assembler, Run, Split
from mlirhlo.simulator.lanes import WARP, Array, Lanes
from mlirhlo.simulator.meanings.matrices.tensor_order import Access, Cells, Order
from mlirhlo.simulator.meanings.mbarriers import objects_of, release

if TYPE_CHECKING:
    from mlirhlo.analysis.ptx.flat import FlatInstruction
    from mlirhlo.simulator.cohort import Cohort

ROWS, COLUMNS = 128, 512


@dataclass(slots=True, eq=False)
class Work:
    """A copy or product under way."""

    pc: int
    lane: int
    cells: Cells
    """What it writes."""
    run: Callable[[], None]
    reads: Sequence[tuple[Array, Array]]
    """What it may read in shared memory, as `Races.read_begins` returned it."""
    accesses: Sequence[Access]
    """To tensor memory; the last writes it."""
    behind: Sequence[Work]
    """What comes before it in a pipeline, of its thread and of others."""


@dataclass(slots=True)
class TensorMemory:
    """The tensor memory of a cohort's blocks."""

    cohort: Cohort
    cells: Array
    """Blocks × lanes × columns."""
    has_value: Array
    stored_by: Array
    """One more than the lane of a store that has not been waited for; 0 for none."""
    owner: Array
    """Blocks × columns: one more than the instruction that allocated the column; 0 for none."""
    loading: dict[str, Array] = field(default_factory=dict[str, Array])
    """By register: threads that have not waited for a load into it."""
    pending: list[Work] = field(default_factory=list[Work])
    commits: list[tuple[int, int, list[Work]]] = field(
        default_factory=list["tuple[int, int, list[Work]]"]
    )
    """Each commit's mbarrier, lane, and what completes before it arrives."""
    order: Order = field(init=False)

    def __post_init__(self) -> None:
        shape, threads = self.cells.shape, self.cohort.count
        writes, reads = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        self.order = Order(self._unordered, writes, reads, np.zeros(threads, np.int64))

    def complete_for(self, barrier: int) -> bool:
        """Completes what the next arrival at an mbarrier waits for; whether there was a commit."""
        found = next((one for one in self.commits if one[0] == barrier), None)
        if found is None:
            return False
        self.commits.remove(found)
        _, lane, work = found
        self._complete(work)
        release(self.cohort, barrier, np.array([lane]))
        objects_of(self.cohort).arrive(barrier, lane, 1)
        self.cohort.progressed()
        return True

    def _complete(self, work: Iterable[Work]) -> None:
        cohort = self.cohort
        pc = cohort.pc
        for one in work:
            if one in self.pending:
                self.pending.remove(one)
                self._complete(one.behind)
                cohort.pc = one.pc
                one.run()
                self.order.complete(one.accesses)
                for places in one.reads:
                    assert cohort.races is not None
                    cohort.races.read_ends(places, one.pc)
        cohort.pc = pc

    def finish(self) -> None:
        """Completes what is left when the blocks end; all columns have to be free."""
        self._complete(list(self.pending))
        left = np.unique(self.owner[self.owner > 0]).tolist()
        for number in left:
            self.cohort.pc = number - 1
            self.found("left", "a block ends without tcgen05.dealloc of its tensor memory")

    # Checks

    def wrong(self, lane: int, message: str) -> HloError:
        """The error HLO0796."""
        cohort = self.cohort
        return HloError(
            Diagnostic("HLO0796", f"{thread_name(cohort, lane)} {message}", place_at(cohort))
        )

    def found(
        self,
        key: str,
        message: str,
        help_: str = "",
        other: int | None = None,
        note: str = "what is under way began",
    ) -> None:
        """The finding HLO0796; `other`: an instruction that has part in it, `note`: which."""
        launch = self.cohort.launch
        notes = () if other is None else ((note, launch.place(other)),)
        problem = Diagnostic("HLO0796", message, place_at(self.cohort), notes, help_ or None)
        launch.finding((key, self.cohort.pc), problem)

    def _unordered(self, key: str, message: str, help_: str, other: int) -> None:
        self.found(key, message, help_, other, "the earlier access")

    def checked(self, lane: int, rows: Array, columns: Array) -> Cells:
        """Cells of the block of a thread, all of them allocated."""
        block = int(self.cohort.block_of[lane])
        if int(rows.max()) >= ROWS or int(columns.max()) >= COLUMNS:
            raise self.wrong(lane, "reaches beyond the 128 lanes and 512 columns of tensor memory")
        if not self.owner[block, columns].all():
            raise self.wrong(lane, "uses columns of tensor memory that are not allocated")
        return block, rows, columns

    def settled(self, cells: Cells, what: str, lane: int | None = None) -> None:
        """Looks for copies and products under way that write cells, and for stores that were not waited for.

        `lane`: of a thread whose own work comes before.
        """
        block, rows, columns = cells
        for work in self.pending:
            other, its_rows, its_columns = work.cells
            meets = other == block and bool(np.isin(rows, its_rows).any())
            follows = lane is not None and self.order.is_pipelined(work.accesses[-1], lane)
            if not follows and meets and bool(np.isin(columns, its_columns).any()):
                self.found(
                    "busy",
                    f"{what} tensor memory that a copy or product under way writes",
                    "execute tcgen05.commit behind it, and wait for the mbarrier",
                    work.pc,
                )
                break
        if self.stored_by[block, rows, columns].any():
            self.found(
                "stored",
                f"{what} tensor memory before a store to it has been waited for",
                "execute tcgen05.wait::st after the store",
            )

    def value_of(self, cells: Cells, what: str) -> Array:
        """What cells hold; nothing may be missing."""
        block, rows, columns = cells
        if not self.has_value[block, rows, columns].all():
            cohort = self.cohort
            problem = Diagnostic(
                "HLO0779",
                f"{what} tensor memory that nothing has written",
                place_at(cohort),
                help="write it first, or do not add to it",
            )
            cohort.launch.finding(("uninitialised", cohort.pc), problem)
        result: Array = self.cells[block, rows, columns]
        return result

    def write(self, cells: Cells, values: Array) -> None:
        """Gives cells values."""
        block, rows, columns = cells
        self.cells[block, rows, columns] = values
        self.has_value[block, rows, columns] = True

    def access(
        self, lane: int, cells: Cells, what: str, *, writes: bool, commits: bool = False
    ) -> Access:
        """Checks an access of a warp, or of a thread that `commits`, before it happens."""
        self.settled(cells, what, lane if commits else None)
        lanes = np.arange(lane, lane + (1 if commits else WARP))
        return self.order.access(self.cohort.pc, cells, lanes, what, writes=writes, commits=commits)

    def begin(
        self,
        lane: int,
        cells: Cells,
        run: Callable[[], None],
        reads: Sequence[tuple[Array, Array]],
        accesses: Sequence[Access],
    ) -> None:
        """Begins a copy or product."""
        pipelined = self.order.is_pipelined
        behind = [one for one in self.pending if pipelined(one.accesses[-1], lane)]
        self.pending.append(Work(self.cohort.pc, lane, cells, run, reads, accesses, behind))


def tensor_memory_of(cohort: Cohort) -> TensorMemory:
    """The tensor memory of a cohort."""
    if "tensor memory" not in cohort.extra:
        sizes = (len(cohort.blocks), ROWS, COLUMNS)
        cohort.extra["tensor memory"] = TensorMemory(
            cohort,
            np.zeros(sizes, np.uint32),
            np.zeros(sizes, np.bool_),
            np.zeros(sizes, np.int32),
            np.zeros((len(cohort.blocks), COLUMNS), np.int32),
        )
    return cast("TensorMemory", cohort.extra["tensor memory"])


def complete_for(cohort: Cohort, barrier: int) -> bool:
    """As `TensorMemory.complete_for`, where the cohort has used any."""
    if "tensor memory" not in cohort.extra:
        return False
    return tensor_memory_of(cohort).complete_for(barrier)


def loaded_of(instructions: Iterable[FlatInstruction]) -> frozenset[str]:
    """Registers that loads from tensor memory write, some time later."""
    return frozenset(
        name
        for op in instructions
        if op.opcode == "tcgen05" and op.modifiers[0] == "ld"
        for name in registers_in(op.operands[0])
    )


def loads_waited_for(assembler: Assembler, loaded: frozenset[str], run: Run) -> Run:
    """`run`, after a look whether loads into the registers of the instruction have been waited for."""
    op = assembler.op
    named = sorted(loaded.intersection((*read(op), *written(op))))
    if not named or (op.opcode == "tcgen05" and op.modifiers[0] == "ld"):
        return run

    def checked(cohort: Cohort, lanes: Lanes) -> int | Split | None:
        memory = tensor_memory_of(cohort)
        for name in named:
            loading = memory.loading.get(name)
            if loading is not None and loading[lanes].any():
                message = f"{op.opcode}: {name} is the result of a tcgen05.ld that has not been waited for"
                memory.found("loading", message, "execute tcgen05.wait::ld first")
        return run(cohort, lanes)

    return checked
