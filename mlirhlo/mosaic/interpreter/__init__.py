"""Simulates kernels: each operation as it says, one step of the grid after another, in numpy.

`Kernel.run` takes one device's arrays, `Kernel.run_on` those of several. With `Options.checks`, which
`InterpretParams` has on, every access is held against the rules of memories, copies and semaphores.
"""

from mlirhlo.mosaic.interpreter.core import InterpretParams, Options
from mlirhlo.mosaic.interpreter.launch import Kernel

__all__ = ["InterpretParams", "Kernel", "Options"]
