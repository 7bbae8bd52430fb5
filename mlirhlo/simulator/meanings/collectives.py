"""Instructions in which the lanes of a warp exchange values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.diagnostics import Diagnostic
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.access import place_at, thread_name
from mlirhlo.simulator.assembler import Assembler, Run, Split
from mlirhlo.simulator.lanes import WARP, Array, Lanes
from mlirhlo.simulator.meanings.floats import canonical
from mlirhlo.simulator.meanings.registry import meaning
from mlirhlo.simulator.types import DTYPES

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort


def collective(
    assembler: Assembler, masks: int | None, body: Callable[[Cohort, Lanes], None]
) -> Run:
    """`body` once all lanes that the masks name have arrived."""
    following = assembler.pc + 1

    def run(cohort: Cohort, lanes: Lanes) -> Split | None:
        ready, whole = cohort.converge(lanes, masks)
        if ready is None:
            return []
        _check_mask(cohort, ready, masks)
        body(cohort, ready)
        return None if whole else [(following, ready)]

    return run


def _check_mask(cohort: Cohort, lanes: Lanes, masks: int | None) -> None:
    """A thread has to be in its own mask."""
    if masks is None or not cohort.launch.machine.checks:
        return
    own = np.uint32(1) << (cohort.thread_of[lanes] % WARP).astype(np.uint32)
    outside = cohort.slots[masks][lanes] & own == 0
    if outside.any():
        lane = int(sets.indices(lanes)[np.flatnonzero(outside)[0]])
        mask = int(cohort.slots[masks][lane])
        cohort.launch.finding(
            ("mask", cohort.pc),
            Diagnostic(
                "HLO0784",
                f"{thread_name(cohort, lane)} executes this with the mask {mask:#010x}, which leaves it out",
                place_at(cohort),
                help="name the lanes that execute the instruction, as activemask gives them",
            ),
        )


def membership(cohort: Cohort, lanes: Lanes, masks: int | None) -> tuple[Array, Array]:
    """Lanes, and for each of them which lanes of its warp take part, as a matrix of flags."""
    numbers = sets.indices(lanes)
    present = np.zeros(cohort.count, np.bool_)
    present[numbers] = True
    rows = present.reshape(-1, WARP)[numbers // WARP]
    if masks is not None:
        bits = cohort.slots[masks][lanes].astype(np.uint32)
        rows = rows & (bits[:, None] >> np.arange(WARP, dtype=np.uint32) & 1).astype(np.bool_)
    return numbers, rows


@meaning("shfl")
def shuffle(assembler: Assembler) -> Run:
    """Reads the register of another lane."""
    mode = assembler.one_of("up", "down", "bfly", "idx")
    parts = assembler.parts(0)
    d = assembler.value(parts[0], "b32")
    p = assembler.value(parts[1], "pred") if len(parts) > 1 else None
    a, b, c = (assembler.source(i, "b32") for i in (1, 2, 3))
    masks = assembler.source(4, "b32") if assembler.has("sync") else None

    def body(cohort: Cohort, lanes: Lanes) -> None:
        slots = cohort.slots
        numbers = sets.indices(lanes)
        lane = numbers % WARP
        amount = slots[b][lanes].astype(np.int64) & 31
        control = slots[c][lanes].astype(np.int64)
        segment, bound = control >> 8 & 31, control & 31
        most = (lane & segment) | (bound & ~segment & 31)
        least = lane & segment
        match mode:
            case "up":
                source = lane - amount
                valid = source >= most
            case "down":
                source = lane + amount
                valid = source <= most
            case "bfly":
                source = lane ^ amount
                valid = source <= most
            case _:
                source = least | (amount & ~segment & 31)
                valid = source <= most
        source = np.where(valid, source, lane)
        chosen = numbers - lane + source
        values = slots[a][chosen]
        if cohort.launch.machine.checks:
            _check_source(cohort, lanes, numbers, chosen)
        slots[d][lanes] = values
        if p is not None:
            slots[p][lanes] = valid

    return collective(assembler, masks, body)


def _check_source(cohort: Cohort, lanes: Lanes, numbers: Array, chosen: Array) -> None:
    if isinstance(lanes, slice) and not (lanes.start % WARP or lanes.stop % WARP):
        return
    present = np.zeros(cohort.count, np.bool_)
    present[numbers] = True
    wrong = ~present[chosen]
    if wrong.any():
        lane = int(numbers[np.flatnonzero(wrong)[0]])
        other = int(chosen[np.flatnonzero(wrong)[0]])
        cohort.launch.finding(
            ("shuffle", cohort.pc),
            Diagnostic(
                "HLO0784",
                f"{thread_name(cohort, lane)} reads a register of lane {other % WARP}, "
                "which does not execute the shuffle",
                place_at(cohort),
                help="let all lanes that are read take part",
            ),
        )


def packed(rows: Array) -> Array:
    """Rows of 32 flags as masks."""
    return np.packbits(rows, axis=1, bitorder="little").view(np.uint32)[:, 0]


@meaning("vote")
def vote(assembler: Assembler) -> Run:
    """`all`, `any`, `uni` or the ballot of a predicate."""
    mode = assembler.one_of("all", "any", "uni", "ballot")
    d = assembler.dest(0, "b32" if mode == "ballot" else "pred")
    p, negated = assembler.condition(1)
    masks = assembler.source(2, "b32") if assembler.has("sync") else None

    def body(cohort: Cohort, lanes: Lanes) -> None:
        numbers, rows = membership(cohort, lanes, masks)
        flags = cohort.slots[p] ^ negated
        true = rows & flags.reshape(-1, WARP)[numbers // WARP]
        match mode:
            case "ballot":
                result = packed(true)
            case "all":
                result = (true == rows).all(axis=1)
            case "any":
                result = true.any(axis=1)
            case _:
                result = (true == rows).all(axis=1) | ~true.any(axis=1)
        cohort.slots[d][lanes] = result

    return collective(assembler, masks, body)


@meaning("match")
def match_values(assembler: Assembler) -> Run:
    """The lanes that hold the same value."""
    parts = assembler.parts(0)
    d = assembler.value(parts[0], "b32")
    p = assembler.value(parts[1], "pred") if len(parts) > 1 else None
    a, masks = assembler.source(1, assembler.type), assembler.source(2, "b32")
    every = assembler.has("all")

    def body(cohort: Cohort, lanes: Lanes) -> None:
        numbers, rows = membership(cohort, lanes, masks)
        values = cohort.slots[a].reshape(-1, WARP)[numbers // WARP]
        same = rows & (values == cohort.slots[a][lanes][:, None])
        if every:
            agree = (same == rows).all(axis=1)
            cohort.slots[d][lanes] = np.where(agree, packed(rows), np.uint32(0))
            if p is not None:
                cohort.slots[p][lanes] = agree
        else:
            cohort.slots[d][lanes] = packed(same)

    return collective(assembler, masks, body)


@meaning("activemask")
def active_mask(assembler: Assembler) -> Run:
    """The lanes that execute the instruction together."""
    d = assembler.dest(0, "b32")

    def run(cohort: Cohort, lanes: Lanes) -> None:
        _, rows = membership(cohort, lanes, None)
        cohort.slots[d][lanes] = packed(rows)

    return run


@meaning("redux")
def reduce_warp(assembler: Assembler) -> Run:
    """A sum, minimum, maximum or logical operation over the lanes of the mask."""
    type_name = assembler.type
    dtype = DTYPES[type_name]
    name = assembler.one_of("add", "min", "max", "and", "or", "xor")
    d, a, masks = (
        assembler.dest(0, type_name),
        assembler.source(1, type_name),
        assembler.source(2, "b32"),
    )
    magnitude, wins = assembler.has("abs"), assembler.has("NaN")

    def body(cohort: Cohort, lanes: Lanes) -> None:
        numbers, rows = membership(cohort, lanes, masks)
        values = cohort.slots[a].reshape(-1, WARP)[numbers // WARP]
        if magnitude:
            values = np.abs(values)
        cohort.slots[d][lanes] = _reduced(name, values, rows, dtype, wins=wins)

    return collective(assembler, masks, body)


def _reduced(
    name: str, values: Array, rows: Array, dtype: np.dtype[np.generic], *, wins: bool
) -> Array:
    if dtype.kind == "f":
        missing = np.isnan(values)
        low = name == "max"
        kept = np.where(rows & ~missing, values, -np.inf if low else np.inf)
        result = kept.max(axis=1) if low else kept.min(axis=1)
        none = (rows & ~missing).sum(axis=1) == 0
        bad = none | ((rows & missing).any(axis=1) if wins else False)
        return canonical(np.where(bad, np.nan, result).astype(np.float32))
    info = np.iinfo(dtype.name)
    neutral = {"add": 0, "or": 0, "xor": 0, "and": -1, "min": info.max, "max": info.min}[name]
    kept = np.where(rows, values, np.array(neutral).astype(dtype))
    function = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[name]
    reduced: Array = function.reduce(kept, axis=1, dtype=dtype)
    return reduced


@meaning("elect")
def elect(assembler: Assembler) -> Run:
    """Chooses one lane of the mask: the first."""
    parts = assembler.parts(0)
    d, p = assembler.value(parts[0], "b32"), assembler.value(parts[1], "pred")
    masks = assembler.source(1, "b32")

    def body(cohort: Cohort, lanes: Lanes) -> None:
        numbers, rows = membership(cohort, lanes, masks)
        leader = rows.argmax(axis=1)
        cohort.slots[d][lanes] = leader
        cohort.slots[p][lanes] = numbers % WARP == leader

    return collective(assembler, masks, body)
