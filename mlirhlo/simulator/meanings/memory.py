"""Loads and stores of all state spaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mlirhlo.analysis.ptx.liveness import registers_in
from mlirhlo.dialects.ptx import Address, Operand, Sink, Symbol
from mlirhlo.simulator.access import (
    check_states,
    located,
    mark_written,
    space_of,
)
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.clocks import BLOCK, DEVICE, NO_FENCE
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.meanings.registry import meaning, nothing
from mlirhlo.simulator.memory import GLOBAL_BASE
from mlirhlo.simulator.types import DTYPES, bits_of, is_float, is_signed

if TYPE_CHECKING:
    from mlirhlo.simulator.access import Index
    from mlirhlo.simulator.cohort import Cohort

Differs: TypeAlias = "Callable[[Cohort, Lanes, Index, Array], Array]"
"""Which of some lanes did not write what is in memory now."""

STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")


def reach_of(assembler: Assembler, *orders: str) -> int:
    """How far the instruction orders memory, if it has one of the orders."""
    if not assembler.has(*orders):
        return NO_FENCE
    return BLOCK if assembler.has("cta") else DEVICE


def register_type(assembler: Assembler, operand: Operand, type_name: str) -> str:
    """The type under which a register of any width takes an element: wider ones are extended."""
    width = assembler.width_of(operand)
    if type_name == "b128" or width <= DTYPES[type_name].itemsize or is_float(type_name):
        return type_name
    return f"{'s' if is_signed(type_name) else 'u'}{width * 8}"


@meaning("ld", "ldu")
def load(assembler: Assembler) -> Run:
    """Loads one to eight elements."""
    type_name = assembler.type
    parts = assembler.parts(0)
    width = bits_of(type_name) // 8
    space, size = space_of(assembler), width * len(parts)
    if size & size - 1:
        raise assembler.wrong(f"a vector of {len(parts)} elements")
    wide = type_name == "b128"
    slots = [assembler.value(one, register_type(assembler, one, type_name)) for one in parts]
    operand = assembler.operands[1]
    if isinstance(operand, Address) and isinstance(operand.base, Symbol) and space == "param":
        _check_parameter(assembler, operand, size)
    locate = located(assembler, operand, space, size)
    dtype = np.dtype(np.uint64) if wide else DTYPES[type_name]
    group = size // dtype.itemsize
    single = group == 1
    observe = observer(assembler, space, size, write=False)
    kept = [not isinstance(one, Sink) for one in parts]
    used = _used(assembler, parts, width)

    def run(cohort: Cohort, lanes: Lanes) -> None:
        index = locate(cohort, lanes)
        check_states(cohort, lanes, index, size, write=False, used=used)
        observe(cohort, lanes, index)
        registers = cohort.slots
        if single:
            registers[slots[0]][lanes] = cohort.arena.view(dtype)[index // size]
            return
        rows = cohort.arena.view(dtype, group)[index // size]
        if wide:
            registers[slots[0]][lanes] = rows
            return
        for part, slot in enumerate(slots):
            if kept[part]:
                registers[slot][lanes] = rows[:, part]

    return run


def _used(assembler: Assembler, parts: Sequence[Operand], width: int) -> Array | None:
    """Which bytes of a vector go to registers that are read; None if all do. Compilers widen loads."""
    if len(parts) == 1:
        return None
    read = assembler.names.read()
    used = [not read.isdisjoint(registers_in(one)) for one in parts]
    return None if all(used) else np.repeat(used, width)


def _check_parameter(assembler: Assembler, operand: Address, size: int) -> None:
    assert isinstance(operand.base, Symbol)
    start = assembler.address_of(operand.base.name)
    extent = assembler.parameter_sizes.get(operand.base.name)
    if start >= GLOBAL_BASE and extent is not None and not 0 <= operand.offset <= extent - size:
        raise assembler.out_of_parameter(operand.base.name, operand.offset, size, extent)


@meaning("st")
def store(assembler: Assembler) -> Run:
    """Stores one to eight elements."""
    if assembler.has("async"):
        from mlirhlo.simulator.meanings import asynchronous

        return asynchronous.store_async(assembler)
    type_name = assembler.type
    parts = assembler.parts(1)
    width = bits_of(type_name) // 8
    space, size = space_of(assembler), width * len(parts)
    wide = type_name == "b128"
    slots = [assembler.value(one, type_name) for one in parts]
    locate = located(assembler, assembler.operands[0], space, size)
    dtype = np.dtype(np.uint64) if wide else DTYPES[type_name]
    group = size // dtype.itemsize
    single = group == 1

    def run(cohort: Cohort, lanes: Lanes) -> None:
        index = locate(cohort, lanes)
        known = check_states(cohort, lanes, index, size, write=True)
        cohort.polls_without_progress = 0
        registers = cohort.slots
        if single:
            cohort.arena.view(dtype)[index // size] = registers[slots[0]][lanes]
        elif wide:
            cohort.arena.view(dtype, group)[index // size] = registers[slots[0]][lanes]
        else:
            rows = np.empty((len(index), group), dtype)
            for part, slot in enumerate(slots):
                rows[:, part] = registers[slot][lanes]
            cohort.arena.view(dtype, group)[index // size] = rows
        if not known:
            mark_written(cohort, index, size)
        observe(cohort, lanes, index)

    def differs(cohort: Cohort, lanes: Lanes, index: Index, numbers: Array) -> Array:
        """Which lanes did not write what is in memory now."""
        registers = cohort.slots
        if wide:
            found = cohort.arena.view(dtype, group)[index // size]
            final: Array = (found != registers[slots[0]][lanes]).any(axis=1)[numbers]
            return final
        result = np.zeros(len(numbers), np.bool_)
        rows = cohort.arena.view(dtype, group)[index[numbers] // size].reshape(-1, group)
        for part, slot in enumerate(slots):
            written = registers[slot][lanes][numbers]
            result |= written.view(f"u{width}") != np.ascontiguousarray(rows[:, part]).view(
                f"u{width}"
            )
        return result

    observe = observer(assembler, space, size, write=True, differs=differs)
    return run


def observer(
    assembler: Assembler, space: str, size: int, *, write: bool, differs: Differs | None = None
) -> Callable[[Cohort, Lanes, Index], None]:
    """What figures and the race check are told of an access."""
    strong = assembler.has(*STRONG)
    constant = assembler.has("nc") or space in ("const", "param", "local")
    acquire, release = reach_of(assembler, "acquire", "mmio"), reach_of(assembler, "release")
    polls = strong and not write

    def observe(cohort: Cohort, lanes: Lanes, index: Index) -> None:
        where = space
        if where == "generic":
            where = cohort.space_at(int(index[0]))
        figures, races = cohort.figures, cohort.races
        if figures is not None:
            if where == "global":
                figures.count_global(index, size, lanes, write=write)
            elif where == "shared":
                figures.count_shared(index, size, lanes, write=write)
        if polls:
            cohort.polled()
        if races is None or constant or where in ("local", "param", "const"):
            return
        if strong:
            if write:
                races.atomic(index, size, lanes)
            else:
                races.strong_read(index, size, lanes)
            races.strong(
                index, lanes, release=release, acquire=acquire, reads=not write, writes=write
            )
        elif write:
            assert differs is not None
            lost = differs
            races.write(index, size, lanes, lambda numbers: lost(cohort, lanes, index, numbers))
        else:
            races.read(index, size, lanes)

    return observe


@meaning("prefetch", "prefetchu", "applypriority", "discard", "createpolicy")
def hint(assembler: Assembler) -> Run:
    """Hints to the caches."""
    if assembler.op.opcode == "createpolicy":
        slot = assembler.dest(0, "u64")

        def run(cohort: Cohort, lanes: Lanes) -> None:
            cohort.slots[slot][lanes] = 0

        return run
    return nothing
