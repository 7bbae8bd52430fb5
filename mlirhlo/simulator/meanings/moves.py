"""Moves between registers, addresses of variables, conversions of addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.dialects.ptx import Sink, Vector
from mlirhlo.simulator.access import SPACES
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.meanings.registry import elementwise, meaning
from mlirhlo.simulator.memory import GLOBAL_BASE, LOCAL_BASE, SHARED_BASE, WINDOW_SHIFT
from mlirhlo.simulator.types import bits_of

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

BASES = {
    "global": GLOBAL_BASE,
    "const": GLOBAL_BASE,
    "param": GLOBAL_BASE,
    "shared": SHARED_BASE,
    "local": LOCAL_BASE,
}


@meaning("mov")
def move(assembler: Assembler) -> Run:
    """A copy; to or from a vector, the elements are packed from the low bits up."""
    if any(isinstance(one, Vector) for one in assembler.operands):
        return _move_vector(assembler)
    type_name = assembler.type
    if type_name == "b128":
        return _copy(assembler.dest(0, "b128"), assembler.source(1, "b128"))
    return _copy(assembler.dest(0, type_name), assembler.source(1, type_name))


def _copy(destination: int, source: int) -> Run:
    def run(cohort: Cohort, lanes: Lanes) -> None:
        cohort.slots[destination][lanes] = cohort.slots[source][lanes]

    return run


def _move_vector(assembler: Assembler) -> Run:
    left, right = assembler.operands[0], assembler.operands[1]
    if isinstance(left, Vector) and isinstance(right, Vector):
        pairs = [
            (assembler.value(a, assembler.type), assembler.value(b, assembler.type))
            for a, b in zip(left.parts, right.parts, strict=True)
        ]
    elif isinstance(left, Vector):
        element = f"u{bits_of(assembler.type) // len(left.parts)}"
        pairs = [
            (assembler.value(one, element), assembler.part(right, element, part))
            for part, one in enumerate(left.parts)
            if not isinstance(one, Sink)
        ]
    elif isinstance(right, Vector):
        element = f"u{bits_of(assembler.type) // len(right.parts)}"
        pairs = [
            (assembler.part(left, element, part), assembler.value(one, element))
            for part, one in enumerate(right.parts)
        ]
    else:
        raise assembler.no_meaning()

    def run(cohort: Cohort, lanes: Lanes) -> None:
        slots = cohort.slots
        values = [slots[b][lanes].copy() for _, b in pairs]
        for (a, _), value in zip(pairs, values, strict=True):
            slots[a][lanes] = value

    return run


@meaning("cvta")
def convert_address(assembler: Assembler) -> Run:
    """A generic address from one of a space, or the other way with `.to`."""
    space = next(SPACES[one] for one in assembler.modifiers if one in SPACES)
    type_name = "u64" if "u64" in assembler.modifiers or "s64" in assembler.modifiers else "u32"
    d, a = assembler.dest(0, type_name), assembler.source(1, type_name)
    if space != "shared":
        return _copy(d, a)
    base = np.uint64(SHARED_BASE)
    if assembler.has("to"):
        return elementwise(d, lambda x: x & np.uint64(0xFFFFFFFF) if type_name == "u64" else x, a)
    return elementwise(d, lambda x: x | base, a)


@meaning("isspacep")
def is_in_space(assembler: Assembler) -> Run:
    """Whether a generic address lies in a space."""
    space = next(SPACES[one] for one in assembler.modifiers if one in SPACES)
    window = BASES[space] >> WINDOW_SHIFT
    own = "shared::cta" in assembler.modifiers or "shared" in assembler.modifiers

    def function(address: Array) -> Array:
        result = address >> np.uint64(WINDOW_SHIFT) == window
        if space == "shared" and own:
            final: Array = result & (address & np.uint64(0xFF000000) == 0)
            return final
        outcome: Array = result
        return outcome

    return elementwise(assembler.dest(0, "pred"), function, assembler.source(1, "u64"))
