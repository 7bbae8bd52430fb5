"""Instructions that the CPU compiler compiles from their structured form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.func import FuncOp

from mlirhlo.dialects.hlo.ops.base import Instruction

if TYPE_CHECKING:
    from mlirhlo.lowering.structured.conversion import Computations

FROM_STRUCTURED = frozenset({"rng-bit-generator", "select-and-scatter", "sort", "topk"})
"""Opcodes; all others become loops by `hlo_to_loops`."""


def kernel_from_structured(name: str, op: Instruction, computations: Computations) -> FuncOp:
    """The function `name` that computes `op`, by the stages `structured` and `scheduled`.

    Raises `HloError`: HLO0432 where it has no loops, HLO0790 and HLO0791 where it has no structured form.
    """
    # Most programs need none of this.
    from mlirhlo.lowering.loops import to_loops
    from mlirhlo.lowering.loops.passes import schedule_loops
    from mlirhlo.lowering.structured import optimize_kernel, to_structured

    kernel = to_structured(op, computations, name)
    optimize_kernel(kernel)
    schedule_loops(kernel)
    return to_loops(kernel)
