"""What instructions do: one module a family, each opcode registered in one table."""

from __future__ import annotations

from mlirhlo.simulator.meanings import (
    atomics,
    bits,
    collectives,
    compare,
    control,
    convert,
    floats,
    halves,
    integers,
    memory,
    moves,
    synchronisation,
)
from mlirhlo.simulator.meanings.control import leave_function
from mlirhlo.simulator.meanings.registry import MEANINGS

__all__ = ["MEANINGS", "leave_function"]

_FAMILIES = (
    *(atomics, bits, collectives, compare, control, convert, floats, halves, integers, memory),
    *(moves, synchronisation),
)
"""Importing a family registers its opcodes."""
