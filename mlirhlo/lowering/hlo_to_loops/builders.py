"""All builders of kernels, registered."""

from __future__ import annotations

from mlirhlo.lowering.hlo_to_loops import (
    fft,
    lapack_routines,
    linear_algebra,
    stochastic_convert,
    updates,
)
from mlirhlo.lowering.hlo_to_loops.contractions import kernels as contractions
from mlirhlo.lowering.hlo_to_loops.kernels import build_kernel, kernel_key

__all__ = ["build_kernel", "kernel_key"]

del contractions, fft, lapack_routines, linear_algebra, stochastic_convert, updates
