"""The meaning of structured kernels, in numpy: each op computed as a whole, as its docstring says."""

from mlirhlo.interp.structured.kernels import run_kernel

__all__ = ["run_kernel"]
