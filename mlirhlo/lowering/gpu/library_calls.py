"""Routines that no kernel computes: on a GPU a library of NVIDIA does, on the simulator the interpreter.

They are steps of a plan, as what the host does is, called by the name of the library's function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls.lapack_signature import routine_of


@dataclass(frozen=True, slots=True)
class LibraryRoutine:
    """A routine, and which library has it."""

    routine: str
    """Its name in LAPACK."""
    function: str
    """The library's function, or the routine's name where NVIDIA has none."""
    library: str = ""
    """File that has it, without version; none where NVIDIA has no such routine."""
    wheel: str = ""


_SOLVER = ("cusolverDnXgeev", "libcusolver.so", "nvidia-cusolver")
_ROUTINES: Mapping[str, LibraryRoutine] = {
    "geev": LibraryRoutine("geev", *_SOLVER),
    "geev_packed": LibraryRoutine("geev_packed", *_SOLVER),
    "gees": LibraryRoutine("gees", "gees"),
}


def library_routine(op: Instruction | None) -> LibraryRoutine | None:
    """The routine that an instruction calls; None for one that kernels compute."""
    if not isinstance(op, CustomCallOp):
        return None
    parts = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
    operands = [s for s in op.input_shapes if isinstance(s, ArrayShape)]
    results = [s for s in parts if isinstance(s, ArrayShape)]
    if (len(operands), len(results)) != (len(op.inputs), len(parts)):
        return None
    return _ROUTINES.get(routine_of(op.custom_call_target, operands, results) or "")
