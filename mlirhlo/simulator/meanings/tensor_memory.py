"""Tensor memory of blocks, and what `tcgen05` does with it: allocation, loads, stores, copies, waits and fences.

A block has 128 lanes of 512 columns of 32 bits; an address has the lane in its upper half. Loads and stores of a warp
reach the 32 lanes of its place in its warp group. Copies from shared memory and products (`tensor_products`) are under
way until an mbarrier that a `tcgen05.commit` names has been waited for; they complete as late as the program allows.
Source: PTX ISA, "TensorCore 5th generation family instructions"; of fragments CuTe's copy traits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from mlirhlo.analysis.ptx.liveness import read, registers_in, written
from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.dialects.ptx import Immediate
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.access import (
    addresses,
    check_states,
    located,
    mark_written,
    place_at,
    thread_name,
)
from mlirhlo.simulator.assembler import Assembler, Run, Split
from mlirhlo.simulator.lanes import WARP, Array, Lanes
from mlirhlo.simulator.meanings.collectives import collective
from mlirhlo.simulator.meanings.mbarriers import objects_of, release
from mlirhlo.simulator.meanings.registry import meaning, nothing
from mlirhlo.simulator.meanings.wgmma import noted_in, operand

if TYPE_CHECKING:
    from mlirhlo.analysis.ptx.flat import FlatInstruction
    from mlirhlo.simulator.cohort import Cohort

ROWS, COLUMNS = 128, 512
QUADRANT = 32
"""Lanes that a warp reaches."""
_LEAST_COLUMNS = 32

Cells: TypeAlias = "tuple[int, Array, Array]"
"""A block, and rows and columns of its tensor memory that broadcast against each other."""


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
                cohort.pc = one.pc
                one.run()
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

    def found(self, key: str, message: str, help_: str = "", other: int | None = None) -> None:
        """The finding HLO0796; `other`: an instruction that has part in it."""
        launch = self.cohort.launch
        notes = () if other is None else (("what is under way began", launch.place(other)),)
        problem = Diagnostic("HLO0796", message, place_at(self.cohort), notes, help_ or None)
        launch.finding((key, self.cohort.pc), problem)

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
            if work.lane != lane and meets and bool(np.isin(columns, its_columns).any()):
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

    def begin(
        self,
        lane: int,
        cells: Cells,
        run: Callable[[], None],
        reads: Sequence[tuple[Array, Array]],
    ) -> None:
        """Begins a copy or product."""
        self.pending.append(Work(self.cohort.pc, lane, cells, run, reads))


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


@meaning("tcgen05")
def tcgen05(assembler: Assembler) -> Run:
    """All instructions of one block; of pairs of blocks (`cta_group::2`) none."""
    from mlirhlo.simulator.meanings.tensor_products import product

    if assembler.has("cta_group::2"):
        raise assembler.no_meaning()
    families: dict[str, Callable[[Assembler], Run]] = {
        "alloc": _allocate,
        "commit": _commit,
        "cp": _copy,
        "dealloc": _free,
        "fence::after_thread_sync": lambda _: nothing,
        "fence::before_thread_sync": lambda _: nothing,
        "ld": _load,
        "mma": product,
        "relinquish_alloc_permit": lambda _: nothing,
        "st": _store,
        "wait::ld": _wait_for_loads,
        "wait::st": _wait_for_stores,
    }
    family = families.get(assembler.modifiers[0])
    if family is None:
        raise assembler.no_meaning()
    return family(assembler)


def _warps(lanes: Lanes) -> list[int]:
    """The first thread of each warp."""
    return [int(lane) for lane in sets.indices(lanes)[::WARP]]


# ---------------------------------------------------------------- allocation


def _allocate(assembler: Assembler) -> Run:
    space = "shared" if assembler.has("shared::cta") else "generic"
    locate = located(assembler, assembler.operands[0], space, 4)
    count = assembler.source(1, "u32")

    def body(cohort: Cohort, lanes: Lanes) -> None:
        memory = tensor_memory_of(cohort)
        for lane in _warps(lanes):
            size = int(cohort.slots[count][lane])
            _check_size(memory, lane, size)
            row = memory.owner[int(cohort.block_of[lane])]
            starts = range(0, COLUMNS - size + 1, _LEAST_COLUMNS)
            start = next((s for s in starts if not row[s : s + size].any()), None)
            if start is None:
                message = f"waits for {size} columns of tensor memory, which the block has itself"
                raise memory.wrong(lane, message)
            row[start : start + size] = cohort.pc + 1
            one = np.array([lane])
            index = locate(cohort, one)
            check_states(cohort, one, index, 4, write=True)
            cohort.arena.view(np.dtype(np.uint32))[index // 4] = start
            mark_written(cohort, index, 4)
            if cohort.races is not None:
                cohort.races.write(index, 4, one, lambda lost: np.ones(len(lost), np.bool_))
        cohort.progressed()

    return collective(assembler, None, body)


def _check_size(memory: TensorMemory, lane: int, size: int) -> None:
    if not _LEAST_COLUMNS <= size <= COLUMNS or size & (size - 1):
        message = f"asks for {size} columns of tensor memory: a power of two from 32 to 512"
        raise memory.wrong(lane, f"{message} is expected")


def _free(assembler: Assembler) -> Run:
    address, count = assembler.source(0, "u32"), assembler.source(1, "u32")

    def body(cohort: Cohort, lanes: Lanes) -> None:
        memory = tensor_memory_of(cohort)
        for lane in _warps(lanes):
            start, size = (int(cohort.slots[slot][lane]) for slot in (address, count))
            _check_size(memory, lane, size)
            columns = np.arange(start, start + size)
            block, rows, _ = memory.checked(lane, np.arange(ROWS)[:, None], columns)
            memory.settled((block, rows, columns), "tcgen05.dealloc frees")
            memory.owner[block, columns] = 0
            memory.has_value[block][:, columns] = False
        cohort.progressed()

    return collective(assembler, None, body)


# ---------------------------------------------------------------- loads and stores


_WIDTHS = {"16x64b": 2, "16x128b": 4, "16x256b": 8, "32x32b": 1, "16x32bx2": 1}
"""Columns of a shape that is taken once."""


def _fragment(shape: str, registers: int, split: int) -> tuple[Array, Array]:
    """Rows and columns of the registers of a warp, as lanes × registers."""
    lane, register = np.arange(WARP)[:, None], np.arange(registers)[None, :]
    match shape:
        case "32x32b":
            return lane + 0 * register, register + 0 * lane
        case "16x32bx2":
            return lane % 16 + 0 * register, register + lane // 16 * split
        case "16x64b":
            return lane // 4 + lane % 2 * 8 + 0 * register, lane // 2 % 2 + 2 * register
        case "16x128b":
            return lane // 4 + register % 2 * 8, lane % 4 + register // 2 * 4
        case _:
            column = lane % 4 * 2 + register % 2 + register // 4 * 8
            return lane // 4 + register // 2 % 2 * 8, column


@dataclass(frozen=True, slots=True)
class _Access:
    """What a load or a store touches."""

    locate: Callable[[Cohort, Lanes], Array]
    rows: Array
    columns: Array
    halves: bool
    """Whether a register holds the lower halves of two neighbouring columns."""

    def cells(self, cohort: Cohort, lane: int, half: int = 0) -> Cells:
        """Of the warp that begins with a thread; `half`: which of two neighbours."""
        memory = tensor_memory_of(cohort)
        address = int(self.locate(cohort, np.array([lane]))[0])
        first, column = address >> 16 & 0xFFFF, address & 0xFFFF
        low = int(cohort.thread_of[lane]) // WARP % 4 * QUADRANT
        rows = first + self.rows
        if not low <= int(rows.min()) <= int(rows.max()) < low + QUADRANT:
            message = f"reaches lanes {int(rows.min())} to {int(rows.max())} of tensor memory"
            raise memory.wrong(lane, f"{message}; its warp has lanes {low} to {low + 31}")
        columns = column + (2 * self.columns + half if self.halves else self.columns)
        return memory.checked(lane, rows, columns)

    @property
    def parts(self) -> range:
        """Neighbours in a register."""
        return range(2 if self.halves else 1)


def _access(assembler: Assembler, address: int, registers: int) -> _Access:
    shape = assembler.one_of(*_WIDTHS)
    numbers = [one.value for one in assembler.operands if isinstance(one, Immediate)]
    rows, columns = _fragment(shape, registers, numbers[0] if numbers else 0)
    locate = addresses(assembler, assembler.operands[address])
    return _Access(locate, rows, columns, assembler.has("pack::16b", "unpack::16b"))


def _load(assembler: Assembler) -> Run:
    slots = [assembler.value(one, "b32") for one in assembler.parts(0)]
    names = list(registers_in(assembler.operands[0]))
    access = _access(assembler, 1, len(slots))

    def body(cohort: Cohort, lanes: Lanes) -> None:
        memory = tensor_memory_of(cohort)
        for lane in _warps(lanes):
            values = np.zeros((WARP, len(slots)), np.uint32)
            for half in access.parts:
                cells = access.cells(cohort, lane, half)
                memory.settled(cells, "tcgen05.ld reads")
                part = memory.value_of(cells, "tcgen05.ld reads")
                values |= (part & np.uint32(0xFFFF) if access.halves else part) << np.uint32(
                    16 * half
                )
            for number, slot in enumerate(slots):
                cohort.slots[slot][lane : lane + WARP] = values[:, number]
        for name in names:
            loading = memory.loading.setdefault(name, np.zeros(cohort.count, np.bool_))
            loading[lanes] = True

    return collective(assembler, None, body)


def _store(assembler: Assembler) -> Run:
    slots = [assembler.value(one, "b32") for one in assembler.parts(assembler.count - 1)]
    access = _access(assembler, 0, len(slots))

    def body(cohort: Cohort, lanes: Lanes) -> None:
        memory = tensor_memory_of(cohort)
        for lane in _warps(lanes):
            values = np.stack([cohort.slots[s][lane : lane + WARP] for s in slots], axis=1)
            for half in access.parts:
                cells = access.cells(cohort, lane, half)
                memory.settled(cells, "tcgen05.st writes")
                part = values >> np.uint32(16 * half)
                memory.write(cells, part & np.uint32(0xFFFF) if access.halves else part)
                block, rows, columns = cells
                memory.stored_by[block, rows, columns] = lane + 1

    return collective(assembler, None, body)


def _wait_for_loads(assembler: Assembler) -> Run:
    def body(cohort: Cohort, lanes: Lanes) -> None:
        for loading in tensor_memory_of(cohort).loading.values():
            loading[lanes] = False

    return collective(assembler, None, body)


def _wait_for_stores(assembler: Assembler) -> Run:
    def body(cohort: Cohort, lanes: Lanes) -> None:
        stored_by = tensor_memory_of(cohort).stored_by
        stored_by[np.isin(stored_by, np.array(_warps(lanes)) + 1)] = 0

    return collective(assembler, None, body)


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


# ---------------------------------------------------------------- copies and commits


_COPIES = {
    "128x256b": (128, 8),
    "128x128b": (128, 4),
    "4x256b": (4, 8),
    "64x128b": (64, 4),
    "32x128b": (32, 4),
}
"""Lanes and columns of a copy from shared memory."""
_WARPS_OF = {"warpx2::02_13": (0, 1), "warpx2::01_23": (0, 2), "warpx4": (0,)}
"""Quadrants that get parts of 32 lanes; copies of them go to those that lie as far apart as there are parts."""


def _copy(assembler: Assembler) -> Run:
    shape = assembler.one_of(*_COPIES)
    if not shape or assembler.has("b8x16"):
        raise assembler.no_meaning()
    height, width = _COPIES[shape]
    to, descriptor = addresses(assembler, assembler.operands[0]), assembler.source(1, "u64")
    word = assembler.one_of(*_WARPS_OF)
    step = {"warpx2::02_13": 64, "warpx2::01_23": 32, "warpx4": 32}.get(word, ROWS)
    firsts = {"warpx2::01_23": (0, 64)}.get(word, range(0, max(height, 1), 32))

    def run(cohort: Cohort, lanes: Lanes) -> None:
        memory = tensor_memory_of(cohort)
        for lane in sets.indices(lanes).tolist():
            address = int(to(cohort, np.array([lane]))[0])
            one = np.array([lane])
            chosen = cohort.slots[descriptor][one]
            first = _first_rows(height, firsts)
            copies = ROWS // height if height < ROWS and word else 1
            rows = (address >> 16) + np.stack([first + n * step for n in range(copies)])
            columns = (address & 0xFFFF) + np.arange(width)
            cells = memory.checked(lane, rows[:, :, None], columns)
            memory.settled(cells, "tcgen05.cp writes", lane)
            reads = list[tuple[Array, Array]]()
            size, begun = (height, width), noted_in(reads)
            values = operand(cohort, one, chosen, size, 32, "b32", begun=begun)[0]

            def write(cells: Cells = cells, values: Array = values) -> None:
                memory.write(cells, values)

            memory.begin(lane, cells, write, reads)

    return run


def _first_rows(height: int, firsts: Iterable[int]) -> Array:
    """Where rows of shared memory go, by parts of 32."""
    if height < QUADRANT:
        return np.arange(height)
    return np.concatenate([first + np.arange(QUADRANT) for first in firsts])[:height]


def _commit(assembler: Assembler) -> Run:
    if assembler.has("multicast::cluster"):
        raise assembler.no_meaning()
    space = "shared" if assembler.has("shared::cluster") else "generic"
    locate = located(assembler, assembler.operands[0], space, 8)

    def run(cohort: Cohort, lanes: Lanes) -> None:
        memory, index = tensor_memory_of(cohort), locate(cohort, lanes)
        for lane, place in zip(sets.indices(lanes).tolist(), index.tolist(), strict=True):
            objects_of(cohort).at(place, lane)
            release(cohort, place, np.array([lane]))
            work = [one for one in memory.pending if one.lane == lane]
            memory.commits.append((place, lane, work))
        cohort.progressed()

    return run
