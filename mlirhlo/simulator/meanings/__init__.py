"""What instructions do: one module a family, each opcode registered in one table."""

from __future__ import annotations

from mlirhlo.simulator.meanings import (
    asynchronous,
    atomics,
    bits,
    bulk,
    clusters,
    collectives,
    compare,
    control,
    convert,
    floats,
    halves,
    integers,
    launch_control,
    mbarriers,
    memory,
    moves,
    multimem,
    proxies,
    synchronisation,
    video,
)
from mlirhlo.simulator.meanings.control import leave_function
from mlirhlo.simulator.meanings.matrices import (
    matrix,
    tensor_instructions,
    tensor_products,
    wgmma,
    wmma,
)
from mlirhlo.simulator.meanings.matrices.tensor_memory import loaded_of, loads_waited_for
from mlirhlo.simulator.meanings.matrices.wgmma_registers import guarded_registers, note_registers
from mlirhlo.simulator.meanings.registry import MEANINGS

__all__ = [
    "MEANINGS",
    "guarded_registers",
    "leave_function",
    "loaded_of",
    "loads_waited_for",
    "note_registers",
]

_FAMILIES = (
    *(
        asynchronous,
        atomics,
        bits,
        bulk,
        clusters,
        collectives,
        compare,
        control,
        convert,
        floats,
        halves,
        integers,
        launch_control,
        matrix,
        mbarriers,
        memory,
    ),
    *(moves, multimem, proxies, synchronisation, tensor_instructions, tensor_products),
    *(video, wgmma, wmma),
)
"""Importing a family registers its opcodes."""
