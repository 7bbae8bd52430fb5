"""Kernels as programs: a loop over the grid in StableHLO, for the CPU compiler.

References become values that loops and branches carry, copies are made where they are started, and waits
are nothing. What the order of copies would change is not seen here: that is for the simulator.
"""

from mlirhlo.mosaic.fast.program import fits, program_of

__all__ = ["fits", "program_of"]
