"""`atom` and `red`: read, change and write as one step, lane after lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.dialects.ptx import Vector
from mlirhlo.simulator.access import Index, check_states, located, mark_written, space_of
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.meanings.floats import canonical, flush
from mlirhlo.simulator.meanings.halves import PACK, WIDEN, element_of
from mlirhlo.simulator.meanings.memory import reach_of
from mlirhlo.simulator.meanings.registry import meaning
from mlirhlo.simulator.types import DTYPES, bits_of

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

Update = Callable[..., Array]


def _increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, 0, old + 1).astype(old.dtype)


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype)


def _exchange(old: Array, new: Array) -> Array:
    return new


def _add_single(old: Array, new: Array) -> Array:
    return canonical(old + new)


def _add_flushing(old: Array, new: Array) -> Array:
    return canonical(flush(flush(old) + flush(new)))


OPERATIONS: dict[str, Update] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": _exchange,
    "inc": _increment,
    "dec": _decrement,
}


def update_of(assembler: Assembler, type_name: str) -> Update:
    """The new value from the old one and the operand."""
    name = assembler.one_of(*OPERATIONS)
    if not name:
        raise assembler.no_meaning()
    element = element_of(type_name)
    if element in WIDEN and name in ("add", "min", "max"):
        return _of_halves(name, element, DTYPES[type_name])
    function = OPERATIONS[name]
    if type_name == "f32" and name == "add":
        # Additions to global memory flush subnormal numbers, those to shared memory do not.
        return _add_flushing if space_of(assembler) == "global" else _add_single
    return function


def _of_halves(name: str, element: str, dtype: np.dtype[np.generic]) -> Update:
    widen, pack = WIDEN[element], PACK[element]
    function = {"add": np.add, "min": np.fmin, "max": np.fmax}[name]

    def update(old: Array, new: Array) -> Array:
        halves = [np.ascontiguousarray(one).view(np.uint16) for one in (old, new)]
        return pack(function(*(widen(one) for one in halves))).view(dtype)

    return update


CROWD = 16
"""Accesses to one location from which on each location is served as a whole."""
CHAINED = frozenset({"u32", "s32", "b32", "u64", "s64", "b64", "f32", "f64"})
CHAINS: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
NORMAL = 2.0**-100
"""Sums of numbers that are 0 or larger than this are never subnormal in single precision."""


def _in_chains(
    function: np.ufunc, memory: Array, places: Index, values: Array, result: Array, flushes: bool
) -> bool:
    """Serves one location after the other, its lanes in order; False if flushing could matter."""
    if flushes:
        sizes = np.abs(np.concatenate((values, memory[places])))
        if ((sizes < NORMAL) & (sizes != 0)).any():
            return False
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(places)], strict=True):
        lanes, place = order[start:end], ordered[start]
        before = np.concatenate((memory[place : place + 1], values[lanes]))
        chain = function.accumulate(before, dtype=values.dtype)
        result[lanes] = chain[:-1]
        memory[place] = chain[-1]
    return True


def in_turns(index: Index) -> list[Array]:
    """Lanes grouped so that no group names a location twice, in the order of lanes."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    new = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    if new.all():
        return [order]
    starts = np.flatnonzero(new)
    rank = np.arange(len(index)) - np.repeat(starts, np.diff(np.append(starts, len(index))))
    by_rank = np.argsort(rank, kind="stable")
    bounds = np.flatnonzero(np.diff(rank[by_rank])) + 1
    return [order[part] for part in np.split(by_rank, bounds)]


@meaning("atom", "red")
def atomic(assembler: Assembler) -> Run:
    """`d = [a]; [a] = op(d, b)`, or with `cas` `[a] = d == b ? c : d`."""
    if assembler.has("async"):
        from mlirhlo.simulator.meanings import asynchronous

        return asynchronous.store_async(assembler)
    returns = assembler.op.opcode == "atom"
    type_name = assembler.type
    swap = assembler.has("cas")
    if any(isinstance(one, Vector) for one in assembler.operands):
        return _vector(assembler, type_name, returns=returns)
    width = bits_of(type_name) // 8
    if type_name == "b128":
        return _wide(assembler, swap=swap)
    at = 1 if returns else 0
    space = space_of(assembler)
    locate = located(assembler, assembler.operands[at], space, width)
    sources = [assembler.source(i, type_name) for i in range(at + 1, assembler.count)][
        : 2 if swap else 1
    ]
    d = assembler.dest(0, type_name) if returns else None
    update = _swap if swap else update_of(assembler, type_name)
    adds = (
        not swap
        and assembler.one_of(*OPERATIONS) == "add"
        and DTYPES[type_name].kind in "ui"
        and element_of(type_name) not in WIDEN
    )
    dtype = DTYPES[type_name]
    chains = (
        CHAINS.get(assembler.one_of(*OPERATIONS)) if type_name in CHAINED and not swap else None
    )
    flushes = type_name == "f32" and space == "global"
    watch = watcher(assembler, space, width)

    def run(cohort: Cohort, lanes: Lanes) -> None:
        index = locate(cohort, lanes)
        watch(cohort, lanes, index)
        memory, places = cohort.arena.view(dtype), index // width
        values = [cohort.slots[one][lanes] for one in sources]
        if adds:
            result = _add(memory, places, values[0], returns=d is not None)
            if values[0].any():
                cohort.progressed()
            else:
                cohort.polled()
        else:
            result = np.empty(len(places), dtype)
            turns = in_turns(places)
            chain = chains if chains is not None and len(turns) > CROWD else None
            if chain is None or not _in_chains(chain, memory, places, values[0], result, flushes):
                for turn in turns:
                    old = memory[places[turn]]
                    result[turn] = old
                    memory[places[turn]] = update(old, *(one[turn] for one in values))
            if (memory[places] == result).all():
                # Nothing changed: the thread may be waiting for another.
                cohort.polled()
            else:
                cohort.progressed()
        if d is not None:
            cohort.slots[d][lanes] = result

    return run


def _swap(old: Array, expected: Array, new: Array) -> Array:
    return np.where(old == expected, new, old)


def _add(memory: Array, places: Array, values: Array, *, returns: bool) -> Array:
    """Integer additions, also many to one location."""
    if not returns:
        np.add.at(memory, places, values)
        return values
    order = np.argsort(places, kind="stable")
    ordered, added = places[order], values[order]
    sums = np.cumsum(added, dtype=added.dtype)
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    starts = np.flatnonzero(first)
    before = sums - added
    lengths = np.diff(np.append(starts, len(places)))
    result = np.empty_like(values)
    result[order] = memory[ordered] + before - np.repeat(before[starts], lengths)
    np.add.at(memory, places, values)
    return result


def watcher(assembler: Assembler, space: str, width: int) -> Callable[[Cohort, Lanes, Index], None]:
    """Checks and figures of an atomic access."""
    acquire = reach_of(assembler, "acquire", "acq_rel")
    release = reach_of(assembler, "release", "acq_rel")
    reads = assembler.op.opcode == "atom"

    def watch(cohort: Cohort, lanes: Lanes, index: Index) -> None:
        check_states(cohort, lanes, index, width, write=True)
        if not check_states(cohort, lanes, index, width, write=False):
            mark_written(cohort, index, width)
        where = cohort.space_at(int(index[0])) if space == "generic" else space
        if cohort.figures is not None:
            count = (
                cohort.figures.count_shared if where == "shared" else cohort.figures.count_global
            )
            count(index, width, lanes, write=True)
        if cohort.races is not None:
            cohort.races.atomic(index, width, lanes)
            cohort.races.strong(
                index, lanes, release=release, acquire=acquire, reads=reads, writes=True
            )

    return watch


def _vector(assembler: Assembler, type_name: str, *, returns: bool) -> Run:
    """`.v2`, `.v4`, `.v8`: each element is an atomic access of its own."""
    at = 1 if returns else 0
    width = bits_of(type_name) // 8
    parts = assembler.parts(at + 1)
    sources = [assembler.value(one, type_name) for one in parts]
    results = [assembler.value(one, type_name) for one in assembler.parts(0)] if returns else []
    space = space_of(assembler)
    locate = located(assembler, assembler.operands[at], space, width * len(parts))
    update = update_of(assembler, type_name)
    watch = watcher(assembler, space, width)
    dtype = DTYPES[type_name]

    def run(cohort: Cohort, lanes: Lanes) -> None:
        index = locate(cohort, lanes)
        memory = cohort.arena.view(dtype)
        for part, source in enumerate(sources):
            place = index + part * width
            watch(cohort, lanes, place)
            values, old_values = cohort.slots[source][lanes], np.empty(len(index), dtype)
            for turn in in_turns(place):
                old = memory[place[turn] // width]
                old_values[turn] = old
                memory[place[turn] // width] = update(old, values[turn])
            if results:
                cohort.slots[results[part]][lanes] = old_values

    return run


def _wide(assembler: Assembler, *, swap: bool) -> Run:
    """`.b128`: exchange, and compare and swap."""
    d = assembler.dest(0, "b128")
    sources = [assembler.source(i, "b128") for i in range(2, 4 if swap else 3)]
    space = space_of(assembler)
    locate = located(assembler, assembler.operands[1], space, 16)
    watch = watcher(assembler, space, 16)

    def run(cohort: Cohort, lanes: Lanes) -> None:
        index = locate(cohort, lanes)
        watch(cohort, lanes, index)
        memory, places = cohort.arena.view(np.dtype(np.uint64), 2), index // 16
        values = [cohort.slots[one][lanes] for one in sources]
        result = np.empty((len(places), 2), np.uint64)
        for turn in in_turns(places):
            old = memory[places[turn]]
            result[turn] = old
            if swap:
                same = (old == values[0][turn]).all(axis=1)
                memory[places[turn]] = np.where(same[:, None], values[1][turn], old)
            else:
                memory[places[turn]] = values[0][turn]
        cohort.slots[d][lanes] = result

    return run
