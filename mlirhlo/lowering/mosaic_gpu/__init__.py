"""Kernels in the language of GPUs (`mlirhlo.mosaic.gpu`) through the GPU's stages: to code of one thread, then to PTX.

`fragments` says which lane of a warp group holds which element, `places` which bytes an element has, `writer` lowers
operations.
"""

from mlirhlo.lowering.mosaic_gpu.compile import Compiled, compile_kernel, driver_of, lower_kernel

__all__ = ["Compiled", "compile_kernel", "driver_of", "lower_kernel"]
