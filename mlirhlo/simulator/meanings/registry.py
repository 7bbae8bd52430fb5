"""The table of meanings: what each opcode does, as a function that assembles it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, cast

from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Array, Lanes

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

Meaning: TypeAlias = Callable[[Assembler], Run]

Unary: TypeAlias = Callable[[Array], Array]
Binary: TypeAlias = Callable[[Array, Array], Array]
Ternary: TypeAlias = Callable[[Array, Array, Array], Array]
Quaternary: TypeAlias = Callable[[Array, Array, Array, Array], Array]
Function: TypeAlias = Unary | Binary | Ternary | Quaternary
"""What an instruction makes of the elements of its operands."""

MEANINGS: dict[str, Meaning] = {}
"""Meaning of each opcode that the simulator executes."""


def meaning(*opcodes: str) -> Callable[[Meaning], Meaning]:
    """Registers the meaning of opcodes."""

    def register(function: Meaning) -> Meaning:
        for opcode in opcodes:
            MEANINGS[opcode] = function
        return function

    return register


def elementwise(destination: int, operation: Function, *sources: int) -> Run:
    """Applies `operation` to the elements of the source slots."""
    function = cast("Callable[..., Array]", operation)
    match sources:
        case (a,):

            def unary(cohort: Cohort, lanes: Lanes) -> None:
                slots = cohort.slots
                slots[destination][lanes] = function(slots[a][lanes])

            return unary
        case (a, b):

            def binary(cohort: Cohort, lanes: Lanes) -> None:
                slots = cohort.slots
                slots[destination][lanes] = function(slots[a][lanes], slots[b][lanes])

            return binary
        case _:

            def variadic(cohort: Cohort, lanes: Lanes) -> None:
                slots = cohort.slots
                slots[destination][lanes] = function(*[slots[one][lanes] for one in sources])

            return variadic


def apply(assembler: Assembler, type_name: str, function: Function) -> Run:
    """`function` of all sources, when destination and sources have one type."""
    sources = [assembler.source(i, type_name) for i in range(1, assembler.count)]
    return elementwise(assembler.dest(0, type_name), function, *sources)


def nothing(cohort: Cohort, lanes: Lanes) -> None:
    """Does nothing."""
