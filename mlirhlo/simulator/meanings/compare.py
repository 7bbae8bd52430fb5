"""Comparisons and selections: `setp`, `set`, `selp`, `slct`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.meanings.floats import flush
from mlirhlo.simulator.meanings.halves import WIDEN, element_of
from mlirhlo.simulator.meanings.registry import elementwise, meaning
from mlirhlo.simulator.types import is_float

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort


def _ordered(a: Array, b: Array) -> Array:
    return ~(np.isnan(a) | np.isnan(b))


def _ordered_not_equal(a: Array, b: Array) -> Array:
    result: Array = _ordered(a, b) & (a != b)
    return result


COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    # `ne` of numpy is true for NaN; PTX's `ne` is ordered, `neu` is not.
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
    "equ": lambda a, b: ~_ordered(a, b) | (a == b),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": _ordered,
    "nan": lambda a, b: ~_ordered(a, b),
}
COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def comparison(assembler: Assembler, type_name: str) -> Callable[[Array, Array], Array]:
    """The comparison that the instruction names."""
    # The name stands first: `lo` and `or` are no types.
    name = next(one for one in assembler.modifiers if one in COMPARISONS)
    function = COMPARISONS[name]
    element = element_of(type_name)
    if name == "ne" and is_float(element):
        function = _ordered_not_equal
    if element in WIDEN and element == "bf16":
        widen = WIDEN[element]
        return lambda a, b: function(widen(a), widen(b))
    if assembler.has("ftz") and type_name == "f32":
        return lambda a, b: function(flush(a), flush(b))
    return function


@meaning("setp")
def set_predicate(assembler: Assembler) -> Run:
    """`p|q = (a cmp b) combine c`; q gets the negated comparison."""
    type_name = assembler.type
    if type_name.endswith("x2"):
        return _set_two(assembler, type_name)
    compare = comparison(assembler, type_name)
    parts = assembler.parts(0)
    a, b = assembler.source(1, type_name), assembler.source(2, type_name)
    combine = COMBINE.get(assembler.one_of(*COMBINE)) if assembler.count > 3 else None
    first = assembler.value(parts[0], "pred")
    if combine is None and len(parts) == 1:
        return elementwise(first, compare, a, b)
    second = assembler.value(parts[1], "pred") if len(parts) > 1 else None
    c, negated = assembler.condition(3) if combine is not None else (0, False)

    def run(cohort: Cohort, lanes: Lanes) -> None:
        slots = cohort.slots
        result = compare(slots[a][lanes], slots[b][lanes])
        opposite = ~result
        if combine is not None:
            other = slots[c][lanes] ^ negated
            result, opposite = combine(result, other), combine(opposite, other)
        slots[first][lanes] = result
        if second is not None:
            slots[second][lanes] = opposite

    return run


def _set_two(assembler: Assembler, type_name: str) -> Run:
    """`setp.f16x2`: p of the low halves, q of the high ones."""
    element = element_of(type_name)
    compare = comparison(assembler, type_name)
    combine = COMBINE.get(assembler.one_of(*COMBINE)) if assembler.count > 3 else None
    c, negated = assembler.condition(3) if combine is not None else (0, False)
    rows = [
        (
            assembler.value(part, "pred"),
            assembler.part(assembler.operands[1], element, number),
            assembler.part(assembler.operands[2], element, number),
        )
        for number, part in enumerate(assembler.parts(0))
    ]

    def run(cohort: Cohort, lanes: Lanes) -> None:
        slots = cohort.slots
        results = [compare(slots[a][lanes], slots[b][lanes]) for _, a, b in rows]
        for (d, _, _), result in zip(rows, results, strict=True):
            slots[d][lanes] = (
                combine(result, slots[c][lanes] ^ negated) if combine is not None else result
            )

    return run


@meaning("set")
def set_value(assembler: Assembler) -> Run:
    """The comparison as a number: all ones for integers, 1.0 for floats."""
    to, type_name = assembler.types[0], assembler.types[-1]
    compare = comparison(assembler, type_name)
    combine = COMBINE.get(assembler.one_of(*COMBINE)) if assembler.count > 3 else None
    c, negated = assembler.condition(3) if combine is not None else (0, False)
    pairs = range(2) if type_name.endswith("x2") else range(1)
    ones = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(element_of(to), 0xFFFFFFFF)
    width = "u16" if len(pairs) == 2 or element_of(to) in ("f16", "bf16", "u16", "s16") else "u32"
    value = np.array([ones & (0xFFFF if width == "u16" else 0xFFFFFFFF)], np.uint32).astype(
        width.replace("u16", "u2").replace("u32", "u4")
    )
    element = element_of(type_name)
    rows = [
        (
            assembler.part(assembler.operands[0], width, part),
            *(
                assembler.part(one, element, part)
                if len(pairs) == 2
                else assembler.value(one, type_name)
                for one in assembler.operands[1:3]
            ),
        )
        for part in pairs
    ]

    def run(cohort: Cohort, lanes: Lanes) -> None:
        slots = cohort.slots
        results = [compare(slots[a][lanes], slots[b][lanes]) for _, a, b in rows]
        for (d, _, _), result in zip(rows, results, strict=True):
            if combine is not None:
                result = combine(result, slots[c][lanes] ^ negated)
            slots[d][lanes] = np.where(result, value, value.dtype.type(0))

    return run


def _choose(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


@meaning("selp")
def select(assembler: Assembler) -> Run:
    """`p ? a : b`."""
    type_name = assembler.type
    p, negated = assembler.condition(3)
    a, b = assembler.source(1, type_name), assembler.source(2, type_name)
    if negated:
        a, b = b, a
    return elementwise(assembler.dest(0, type_name), _choose, p, a, b)


@meaning("slct")
def select_by_sign(assembler: Assembler) -> Run:
    """`c >= 0 ? a : b`."""
    type_name, sign = assembler.types[0], assembler.types[1]
    ftz = assembler.has("ftz")
    a, b, c = (
        assembler.source(1, type_name),
        assembler.source(2, type_name),
        assembler.source(3, sign),
    )

    def choose(x: Array, y: Array, z: Array) -> Array:
        return np.where(np.greater_equal(flush(z) if ftz else z, 0), x, y)

    return elementwise(assembler.dest(0, type_name), choose, a, b, c)
