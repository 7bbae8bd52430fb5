"""Scheduled structured kernels as loops (`func`, `scf`, `memref`, `arith`, `math`, `vector`), for the CPU.

`lowering.py` says how an op joins; each has a file of its own. What has none is compiled from its HLO instruction
(`hlo_to_loops`).
"""

from xdsl.dialects.func import FuncOp

from mlirhlo.dialects.structured import KernelOp
from mlirhlo.lowering.loops import (
    elementwise,
    random_bits,
    scan,
    scatter,
    select_and_scatter,
    sort,
    top_k,
)
from mlirhlo.lowering.loops.lowering import loops_of, to_loops
from mlirhlo.lowering.loops.passes import schedule_loops
from mlirhlo.lowering.structured import optimize_kernel

__all__ = ["loops_of", "optimized_loops", "schedule_loops", "to_loops"]

del elementwise, random_bits, scan, scatter, select_and_scatter, sort, top_k


def optimized_loops(kernel: KernelOp) -> FuncOp:
    """The function of loops of a structured kernel: simplified, scheduled, lowered. Raises what `to_loops` raises."""
    optimize_kernel(kernel)
    schedule_loops(kernel)
    return to_loops(kernel, check=False)
