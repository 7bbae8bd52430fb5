"""Addresses to positions in the arena, with the checks that every access makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlirhlo.diagnostics import Diagnostic, HloError, Place
from mlirhlo.dialects.ptx import Address, Immediate, Operand, Register, Symbol
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.assembler import Assembler
from mlirhlo.simulator.lanes import Lanes
from mlirhlo.simulator.memory import (
    CLUSTER_SHIFT,
    CODE_BASE,
    GLOBAL_BASE,
    LOCAL_BASE,
    READABLE,
    SHARED_BASE,
    WINDOW_SHIFT,
    WRITABLE,
)

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

Index: TypeAlias = NDArray[np.int64]
Locate: TypeAlias = "Callable[[Cohort, Lanes], Index]"

SPACES = {
    "global": "global",
    "const": "const",
    "shared": "shared",
    "shared::cta": "shared",
    "shared::cluster": "shared",
    "local": "local",
    "param": "param",
    "param::entry": "param",
    "param::func": "param",
}


def space_of(assembler: Assembler) -> str:
    """The state space that the instruction names; `generic` if it names none."""
    return next((SPACES[one] for one in assembler.modifiers if one in SPACES), "generic")


def addresses(assembler: Assembler, operand: Operand) -> Locate:
    """The addresses that an operand stands for, not translated."""
    if isinstance(operand, Address):
        return _with_offset(assembler, operand.base, operand.offset)
    return _with_offset(assembler, operand, 0)


def _with_offset(assembler: Assembler, operand: Operand, offset: int) -> Locate:
    slot = None
    if isinstance(operand, Immediate):
        slot = assembler.constant(operand.value + offset, "s64")
    elif isinstance(operand, Symbol):
        slot = assembler.value(Symbol(operand.name, operand.offset + offset), "s64")
    if slot is not None:
        fixed = slot
        return lambda cohort, lanes: cohort.slots[fixed][lanes]
    if not isinstance(operand, Register):
        raise assembler.wrong(f"{operand} is no address")
    if assembler.width_of(operand) == 8:
        wide = assembler.value(operand, "s64")
        if offset:
            step = np.int64(offset)
            return lambda cohort, lanes: cohort.slots[wide][lanes] + step
        return lambda cohort, lanes: cohort.slots[wide][lanes]
    narrow = assembler.value(operand, "u32")
    step = np.int64(offset)
    return lambda cohort, lanes: cohort.slots[narrow][lanes].astype(np.int64) + step


def located(assembler: Assembler, operand: Operand, space: str, size: int) -> Locate:
    """The positions in the arena of `size` bytes that a lane accesses. Faults raise `HloError`."""
    address = addresses(assembler, operand)
    translate = TRANSLATIONS[space]

    def locate(cohort: Cohort, lanes: Lanes) -> Index:
        values = address(cohort, lanes)
        if size > 1 and int(np.bitwise_or.reduce(values)) & (size - 1):
            misaligned(cohort, lanes, values, size)
        return translate(cohort, lanes, values, size)

    return locate


def _global(cohort: Cohort, lanes: Lanes, values: Index, size: int) -> Index:
    index = values - GLOBAL_BASE
    if int(index.view(np.uint64).max()) > cohort.arena.capacity - size:
        outside(cohort, lanes, values, index, size)
    return index


def _shared(cohort: Cohort, lanes: Lanes, values: Index, size: int) -> Index:
    values = values & 0xFFFFFFFF
    if int(values.max()) > cohort.launch.shared_bytes - size:
        return _cluster(cohort, lanes, values, size)
    return cohort.shared_base[lanes] + values


def _cluster(cohort: Cohort, lanes: Lanes, values: Index, size: int) -> Index:
    """Shared memory of any block of the cluster."""
    rank = (values >> CLUSTER_SHIFT) - 1
    offset = values & ((1 << CLUSTER_SHIFT) - 1)
    launch = cohort.launch
    blocks = int(np.prod(launch.cluster))
    own = cohort.block_of[lanes]
    target = np.where(rank < 0, own, own // blocks * blocks + rank)
    wrong = (offset > launch.shared_bytes - size) | (rank >= blocks)
    if wrong.any():
        fault(
            cohort,
            lanes,
            wrong,
            values,
            size,
            f"shared memory of a block has {launch.shared_bytes} bytes",
        )
    if cohort.block_live[target].min() == 0:
        gone = cohort.block_live[target] == 0
        fault(cohort, lanes, gone, values, size, "the block whose shared memory it is has ended")
    result: Index = launch.shared_region + target * launch.shared_stride + offset
    return result


def _local(cohort: Cohort, lanes: Lanes, values: Index, size: int) -> Index:
    offset = values & 0xFFFFFFFF
    if int(offset.view(np.uint64).max()) > cohort.code.local_bytes - size:
        wrong = offset.view(np.uint64) > cohort.code.local_bytes - size
        fault(
            cohort,
            lanes,
            wrong,
            values,
            size,
            f"a thread has {cohort.code.local_bytes} bytes of local memory",
        )
    return cohort.local_base[lanes] + offset


def _generic(cohort: Cohort, lanes: Lanes, values: Index, size: int) -> Index:
    if int(values.min()) >= GLOBAL_BASE:
        return _global(cohort, lanes, values, size)
    result = np.zeros(len(values), np.int64)
    numbers = sets.indices(lanes)
    windows = values >> WINDOW_SHIFT
    for base, translate in ((GLOBAL_BASE, _global), (SHARED_BASE, _shared), (LOCAL_BASE, _local)):
        inside = windows == base >> WINDOW_SHIFT
        if inside.any():
            result[inside] = translate(cohort, numbers[inside], values[inside], size)
            windows[inside] = 0
    if windows.any() or not values.all():
        wrong = (windows != 0) | (values == 0)
        one = int(values[np.flatnonzero(wrong)[0]])
        kind = (
            "the address of code"
            if one >> WINDOW_SHIFT == CODE_BASE >> WINDOW_SHIFT
            else "no address of the device"
        )
        fault(cohort, lanes, wrong, values, size, "a null pointer" if not one else kind)
    return result


TRANSLATIONS = {
    "global": _global,
    "const": _global,
    "param": _generic,
    "shared": _shared,
    "local": _local,
    "generic": _generic,
}


def check_states(
    cohort: Cohort,
    lanes: Lanes,
    index: Index,
    size: int,
    *,
    write: bool,
    used: NDArray[np.bool_] | None = None,
) -> bool:
    """Checks that the bytes may be read or written; whether all have values already.

    `used`: for each byte of an access whether anything is done with it; others need no value.
    """
    arena = cohort.arena
    if size <= 8:
        words = arena.state_views[size][index // size]
    else:
        view = arena.state_views[8]
        first = index >> 3
        words = view[first]
        for step in range(1, size >> 3):
            words = words & view[first + step]
    together = int(np.bitwise_and.reduce(words))
    pattern = _PATTERNS[min(size, 8)]
    needed = WRITABLE * pattern if write else READABLE * pattern
    if together & needed != needed:
        _bad_state(cohort, lanes, index, size, used, write=write)
    return together == 3 * pattern


_PATTERNS = {1: 0x01, 2: 0x0101, 4: 0x01010101, 8: 0x0101010101010101}


def mark_written(cohort: Cohort, index: Index, size: int) -> None:
    """The bytes have values from now on."""
    arena = cohort.arena
    width = min(size, 8)
    view, first = arena.state_views[width], index // width
    for step in range(size // width):
        view[first + step] = 3 * _PATTERNS[width]


def _bad_state(
    cohort: Cohort,
    lanes: Lanes,
    index: Index,
    size: int,
    used: NDArray[np.bool_] | None,
    *,
    write: bool,
) -> None:
    states = cohort.arena.states[index[:, None] + np.arange(size)]
    wanted = WRITABLE if write else READABLE
    bad = states & wanted != wanted
    wrong = (bad if used is None else bad & used).any(axis=1)
    unallocated = (states == 0).any(axis=1)
    launch = cohort.launch
    if unallocated.any():
        one = int(index[np.flatnonzero(unallocated)[0]])
        fault(cohort, lanes, unallocated, index, size, _where(cohort, one), is_index=True)
    if write:
        one = int(index[np.flatnonzero(wrong)[0]])
        fault(
            cohort,
            lanes,
            wrong,
            index,
            size,
            f"{_where(cohort, one)}, which cannot be written",
            is_index=True,
        )
    if not launch.machine.checks or not wrong.any():
        return
    position = int(np.flatnonzero(wrong)[0])
    lane = int(sets.indices(lanes)[position])
    byte = int(index[position]) + int(
        np.flatnonzero(bad[position] if used is None else bad[position] & used)[0]
    )
    launch.finding(
        ("uninitialised", cohort.pc),
        Diagnostic(
            "HLO0779",
            f"{thread_name(cohort, lane)} reads {_where(cohort, byte)}, which nothing has written",
            place_at(cohort),
            help="write it first, or wait for the copy that does",
        ),
    )


def _where(cohort: Cohort, index: int) -> str:
    launch = cohort.launch
    shared = index - launch.shared_region
    if 0 <= shared < len(cohort.blocks) * launch.shared_stride:
        return (
            f"byte {shared % launch.shared_stride} of shared memory ({launch.shared_bytes} bytes)"
        )
    local = index - launch.local_region
    if 0 <= local < cohort.count * launch.local_stride:
        return f"byte {local % launch.local_stride} of local memory"
    return cohort.arena.describe(index)


def thread_name(cohort: Cohort, lane: int) -> str:
    """`thread 3 of block 1`, or with three coordinates where the launch has more dimensions."""
    launch = cohort.launch
    thread, block = int(cohort.thread_of[lane]), int(cohort.blocks[cohort.block_of[lane]])
    return (
        f"thread {_coordinates(thread, launch.block)} of block {_coordinates(block, launch.grid)}"
    )


def _coordinates(number: int, shape: tuple[int, int, int]) -> str:
    x, y, z = shape
    if y == z == 1:
        return str(number)
    return f"({number % x}, {number // x % y}, {number // (x * y)})"


def place_at(cohort: Cohort) -> Place:
    """The place of the instruction at hand."""
    return cohort.launch.place(cohort.pc)


def fault(
    cohort: Cohort,
    lanes: Lanes,
    wrong: NDArray[np.bool_],
    values: Index,
    size: int,
    why: str,
    *,
    is_index: bool = False,
) -> None:
    """Raises HLO0775 for the first lane of `wrong`."""
    position = int(np.flatnonzero(wrong)[0])
    lane = int(sets.indices(lanes)[position])
    address = int(values[position])
    if is_index:
        inside = (
            0
            <= address - cohort.launch.shared_region
            < len(cohort.blocks) * cohort.launch.shared_stride
        )
        address = (
            (address - cohort.launch.shared_region) % cohort.launch.shared_stride
            if inside
            else address + GLOBAL_BASE
        )
    raise HloError(
        Diagnostic(
            "HLO0775",
            f"{thread_name(cohort, lane)} accesses {size} bytes at {address & (2**64 - 1):#x}, out of bounds: {why}",
            place_at(cohort),
            help="check the index against the size before the access",
        )
    )


def outside(cohort: Cohort, lanes: Lanes, values: Index, index: Index, size: int) -> None:
    """Raises HLO0775 for addresses beyond the arena."""
    wrong = index.view(np.uint64) > cohort.arena.capacity - size
    one = int(values[np.flatnonzero(wrong)[0]])
    windows = {
        SHARED_BASE >> WINDOW_SHIFT: "shared",
        LOCAL_BASE >> WINDOW_SHIFT: "local",
        CODE_BASE >> WINDOW_SHIFT: "code",
    }
    other = windows.get(one >> WINDOW_SHIFT)
    why = (
        "a null pointer"
        if 0 <= one < 4096
        else f"that is an address of {other} memory"
        if other
        else "no address of the device"
    )
    fault(cohort, lanes, wrong, values, size, why)


def misaligned(cohort: Cohort, lanes: Lanes, values: Index, size: int) -> None:
    """Raises HLO0778 for the first address that is no multiple of `size`."""
    position = int(np.flatnonzero(values & (size - 1))[0])
    lane = int(sets.indices(lanes)[position])
    raise HloError(
        Diagnostic(
            "HLO0778",
            f"{thread_name(cohort, lane)} accesses {size} bytes at "
            f"{int(values[position]):#x}, which is no multiple of {size}",
            place_at(cohort),
            help="align the address, or access smaller pieces",
        )
    )
