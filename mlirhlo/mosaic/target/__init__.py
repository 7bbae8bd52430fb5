"""Target checks: what a TPU generation takes, said at the line of the kernel, before it is compiled."""

from __future__ import annotations

from mlirhlo.mosaic.target.budget import MemoryUse, Use, memory_use
from mlirhlo.mosaic.target.check import TargetReport, check_target
from mlirhlo.mosaic.target.generations import GENERATIONS, Generation, generation_of

__all__ = [
    "GENERATIONS",
    "Generation",
    "MemoryUse",
    "TargetReport",
    "Use",
    "check_target",
    "generation_of",
    "memory_use",
]
