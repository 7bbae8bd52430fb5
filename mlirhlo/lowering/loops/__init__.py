"""Scheduled structured kernels as loops (`func`, `scf`, `memref`, `arith`, `math`, `vector`), for the CPU.

`lowering.py` says how an op joins; each has a file of its own. What has none is compiled from its HLO instruction
(`hlo_to_loops`).
"""

from mlirhlo.lowering.loops import random_bits, scan, scatter, select_and_scatter, sort, top_k
from mlirhlo.lowering.loops.lowering import loops_of, to_loops
from mlirhlo.lowering.loops.passes import schedule_loops

__all__ = ["loops_of", "schedule_loops", "to_loops"]

del random_bits, scan, scatter, select_and_scatter, sort, top_k
