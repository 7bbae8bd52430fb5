"""`multimem`: memory of several devices under one address. The simulated device is the only one that has it."""

from __future__ import annotations

from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.meanings.atomics import atomic
from mlirhlo.simulator.meanings.memory import load, store
from mlirhlo.simulator.meanings.registry import meaning


@meaning("multimem")
def multimem(assembler: Assembler) -> Run:
    """`ld_reduce` loads the one copy that there is, `st` stores it, `red` updates it."""
    if assembler.has("ld_reduce"):
        return load(assembler)
    if assembler.has("st"):
        return store(assembler)
    if assembler.has("red") and not assembler.has("bulk"):
        return atomic(assembler)
    raise assembler.no_meaning()
