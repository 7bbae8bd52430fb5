"""Runs kernels: each operation as it says, one step of the grid after another, in numpy.

Copies are made when they are started and one core of one device is run. What the order of things on
hardware would change is not looked for here.
"""

from mlirhlo.mosaic.interpreter.core import Options
from mlirhlo.mosaic.interpreter.launch import Kernel

__all__ = ["Kernel", "Options"]
