"""What `tcgen05` does with tensor memory: allocation, loads, stores, copies, commits, waits and fences.

A warp loads and stores 32 lanes, by its number in its warp group: warp w has lanes 32 w to 32 w + 31. An address names
one of them, or, as JAX writes it, one of the first 32, which is then counted from the warp's first. Products are in
`tensor_products`.
Source: PTX ISA, "TensorCore 5th generation family instructions"; of fragments CuTe's copy traits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.analysis.ptx.liveness import registers_in
from mlirhlo.dialects.ptx import Immediate
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.access import (
    addresses,
    check_states,
    located,
    mark_written,
)
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import WARP, Array, Lanes
from mlirhlo.simulator.meanings.collectives import collective
from mlirhlo.simulator.meanings.matrices.tensor_memory import (
    COLUMNS,
    ROWS,
    TensorMemory,
    tensor_memory_of,
)
from mlirhlo.simulator.meanings.matrices.tensor_order import Cells
from mlirhlo.simulator.meanings.matrices.tensor_products import product
from mlirhlo.simulator.meanings.matrices.wgmma import noted_in, operand
from mlirhlo.simulator.meanings.mbarriers import objects_of, release
from mlirhlo.simulator.meanings.registry import meaning, nothing

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

QUADRANT = 32
"""Lanes that a warp reaches."""
_LEAST_COLUMNS = 32


@meaning("tcgen05")
def tcgen05(assembler: Assembler) -> Run:
    """All instructions of one block; of pairs of blocks (`cta_group::2`) none."""
    if assembler.has("cta_group::2"):
        raise assembler.no_meaning()
    families: dict[str, Callable[[Assembler], Run]] = {
        "alloc": _allocate,
        "commit": _commit,
        "cp": _copy,
        "dealloc": _free,
        "fence::after_thread_sync": lambda _: _fence_after,
        "fence::before_thread_sync": lambda _: _fence_before,
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


def _fence_after(cohort: Cohort, lanes: Lanes) -> None:
    tensor_memory_of(cohort).order.fence_after(lanes)


def _fence_before(cohort: Cohort, lanes: Lanes) -> None:
    tensor_memory_of(cohort).order.fence_before(lanes)


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
            memory.order.free(block, columns)
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
        rows = first + self.rows + (low if first < QUADRANT else 0)
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
                memory.access(lane, cells, "tcgen05.ld reads", writes=False)
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
                memory.access(lane, cells, "tcgen05.st writes", writes=True)
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
            access = memory.access(lane, cells, "tcgen05.cp writes", writes=True, commits=True)
            reads = list[tuple[Array, Array]]()
            size, begun = (height, width), noted_in(reads)
            values = operand(cohort, one, chosen, size, 32, "b32", begun=begun)[0]

            def write(cells: Cells = cells, values: Array = values) -> None:
                memory.write(cells, values)

            memory.begin(lane, cells, write, reads, [access])

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
