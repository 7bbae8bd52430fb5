"""Branches, calls and the end of threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlirhlo.diagnostics import error
from mlirhlo.dialects.ptx import Group, Immediate, Operand, Register, Symbol
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.assembler import Assembler, Run, Split
from mlirhlo.simulator.lanes import Lanes
from mlirhlo.simulator.meanings.frames import frame_base, pop, push
from mlirhlo.simulator.meanings.registry import meaning, nothing
from mlirhlo.simulator.memory import LOCAL_BASE

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort
    from mlirhlo.simulator.linker import Linked

Effect: TypeAlias = "Callable[[Cohort, Lanes], None]"

MAX_DEPTH = 1024


@meaning("bra")
def branch(assembler: Assembler) -> Run:
    """Goes on at a label."""
    target = assembler.start + assembler.op.target

    def run(cohort: Cohort, lanes: Lanes) -> int:
        result: int = target
        return result

    return run


@meaning("brx")
def branch_by_index(assembler: Assembler) -> Run:
    """Goes on at a label of a table."""
    index = assembler.source(0, "u32")
    targets = np.array(assembler.op.targets) + assembler.start
    place = assembler.place

    def run(cohort: Cohort, lanes: Lanes) -> Split:
        numbers = cohort.slots[index][lanes]
        if int(numbers.max()) >= len(targets):
            raise error(
                "HLO0775",
                f"brx.idx: entry {int(numbers.max())} of a table of {len(targets)}",
                place,
            )
        return [(int(pc), group) for pc, group in sets.split(lanes, targets[numbers])]

    return run


@meaning("exit")
def leave(assembler: Assembler) -> Run:
    """Ends threads."""
    return lambda cohort, lanes: cohort.leave(lanes)


@meaning("trap")
def trap(assembler: Assembler) -> Run:
    """Stops the launch."""
    problem = error("HLO0787", "trap: the kernel stops the launch", assembler.place)

    def run(cohort: Cohort, lanes: Lanes) -> None:
        raise problem

    return run


@meaning("brkpt", "pmevent", "setmaxnreg")
def without_effect(assembler: Assembler) -> Run:
    """Nothing that can be seen."""
    return nothing


def leave_function(name: str | None) -> Run:
    """What `ret` does in a function: threads go back to their callers; in a kernel (None) they end."""
    if name is None:
        return lambda cohort, lanes: cohort.leave(lanes)

    def run(cohort: Cohort, lanes: Lanes) -> Split:
        depth = cohort.depth[lanes] - 1
        cohort.depth[lanes] = depth
        back = cohort.returns[depth, sets.indices(lanes)]
        result: Split = []
        for pc, group in sets.split(lanes, back):
            cohort.code.returning[int(pc), name](cohort, group)
            result.append((int(pc), group))
        return result

    return run


@meaning("ret")
def return_from(assembler: Assembler) -> Run:
    """Returns to the caller; in a kernel, ends the thread."""
    return leave_function(assembler.names.function if assembler.start else None)


@meaning("call")
def call(assembler: Assembler) -> Run:
    """Calls a function by name or address: parameters are copied, results when it returns."""
    operands = assembler.operands
    groups = [one for one in operands if isinstance(one, Group)]
    at = next(i for i, one in enumerate(operands) if not isinstance(one, Group))
    results = operands[0].parts if at == 1 and isinstance(operands[0], Group) else ()
    arguments = (
        groups[-1].parts if len(operands) > at + 1 and isinstance(operands[at + 1], Group) else ()
    )
    callee = operands[at]
    if isinstance(callee, Symbol) and callee.name not in assembler.functions:
        raise assembler.no_meaning() if not callee.name else _undefined(assembler, callee.name)
    if isinstance(callee, Symbol):
        return _entering(assembler, assembler.functions[callee.name], results, arguments)
    if not isinstance(callee, Register):
        raise assembler.wrong(f"{callee} is no function")
    slot = assembler.value(callee, "u64")
    known = {
        assembler.address_of(linked.name): _entering(assembler, linked, results, arguments)
        for linked in assembler.functions.values()
        if linked.start
        and len(linked.parameters) == len(arguments)
        and len(linked.results) == len(results)
    }
    place = assembler.place

    def run(cohort: Cohort, lanes: Lanes) -> Split:
        result: Split = []
        for address, group in sets.split(lanes, cohort.slots[slot][lanes]):
            if int(address) not in known:
                raise error(
                    "HLO0775", f"call: {int(address):#x} is no function with such parameters", place
                )
            result.append((known[int(address)](cohort, group), group))
        return result

    return run


def _undefined(assembler: Assembler, name: str) -> Exception:
    return error(
        "HLO0772",
        f"call: {name} has no body in this module",
        assembler.place,
        help="link the module with the library that defines it",
    )


def _entering(
    assembler: Assembler,
    linked: Linked,
    results: tuple[Operand, ...],
    arguments: tuple[Operand, ...],
) -> Callable[[Cohort, Lanes], int]:
    """What a call of one function does; returns where its code starts."""
    caller, place = assembler.names.function, assembler.place
    mine, theirs = assembler.level_of(caller), assembler.level_of(linked.name)
    recurs = assembler.is_recursive(linked.name)
    copies = [
        _argument(assembler, one, Copy(offset, 0, size, theirs, mine, 1 if recurs else 0))
        for one, (offset, size) in zip(arguments, linked.parameters, strict=True)
    ]
    backs = [
        Copy(_offset(assembler, one), offset, size, mine, theirs, -1 if recurs else 0)
        for one, (offset, size) in zip(results, linked.results, strict=True)
        if isinstance(one, Symbol)
    ]
    following = assembler.pc + 1

    def come_back(cohort: Cohort, lanes: Lanes) -> None:
        for back in backs:
            back.run(cohort, lanes)
        if recurs:
            pop(cohort, lanes, caller)

    assembler.returning[following, linked.name] = come_back

    def enter(cohort: Cohort, lanes: Lanes) -> int:
        for copy in copies:
            copy(cohort, lanes)
        depth = cohort.depth[lanes]
        if int(depth.max()) >= len(cohort.returns):
            if len(cohort.returns) >= MAX_DEPTH:
                raise error("HLO0775", f"call: more than {MAX_DEPTH} calls deep", place)
            cohort.grow_returns()
        if recurs:
            push(cohort, lanes, caller)
        cohort.returns[depth, sets.indices(lanes)] = following
        cohort.depth[lanes] = depth + 1
        return linked.start

    return enter


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes that a call, or its end, copies within the local memory of threads."""

    to: int
    source: int
    size: int
    to_level: int | None
    """Slot of how often the receiving function has called itself; None for one that cannot."""
    source_level: int | None
    step: int
    """Calls that are about to begin, or to end, in which the receiver's memory is."""

    def run(self, cohort: Cohort, lanes: Lanes) -> None:
        """Copies."""
        step = np.arange(self.size)
        to = self.target(cohort, lanes)[:, None] + step
        source = frame_base(cohort, lanes, self.source_level, 0)[:, None] + self.source + step
        for array in (cohort.arena.bytes, cohort.arena.states):
            array[to] = array[source]

    def target(self, cohort: Cohort, lanes: Lanes) -> NDArray[np.int64]:
        """Where the bytes go."""
        return frame_base(cohort, lanes, self.to_level, self.step) + self.to


def _argument(assembler: Assembler, operand: Operand, copy: Copy) -> Effect:
    if isinstance(operand, Symbol):
        return replace(copy, source=_offset(assembler, operand)).run
    if isinstance(operand, Register | Immediate):
        size = copy.size
        slot = assembler.value(operand, f"u{size * 8}")

        def write(cohort: Cohort, lanes: Lanes) -> None:
            places = copy.target(cohort, lanes)
            cohort.arena.view(np.dtype(f"u{size}"))[places // size] = cohort.slots[slot][lanes]
            cohort.arena.states[places[:, None] + np.arange(size)] = 3

        return write
    raise assembler.wrong(f"{operand} is no argument")


def _offset(assembler: Assembler, operand: Symbol) -> int:
    return assembler.address_of(operand.name) - LOCAL_BASE
