"""Kernels ready to use: `kernels.softmax(x)` runs, `kernels.softmax.lower(x)` gives the kernel."""

from mlirhlo.mosaic.kernels.attention import flash_attention
from mlirhlo.mosaic.kernels.elementwise import add
from mlirhlo.mosaic.kernels.library import LibraryKernel
from mlirhlo.mosaic.kernels.matmul import EPILOGUES, matmul, quantised_matmul
from mlirhlo.mosaic.kernels.movement import double_buffered_copy, ragged_gather, ring_all_gather
from mlirhlo.mosaic.kernels.rows import layernorm, rmsnorm, softmax, top_k

LIBRARY: dict[str, LibraryKernel] = {
    one.__name__: one
    for one in (
        add,
        double_buffered_copy,
        flash_attention,
        layernorm,
        matmul,
        quantised_matmul,
        ragged_gather,
        ring_all_gather,
        rmsnorm,
        softmax,
        top_k,
    )
}
"""Every kernel by its name."""

__all__ = [
    "EPILOGUES",
    "LIBRARY",
    "LibraryKernel",
    "add",
    "double_buffered_copy",
    "flash_attention",
    "layernorm",
    "matmul",
    "quantised_matmul",
    "ragged_gather",
    "ring_all_gather",
    "rmsnorm",
    "softmax",
    "top_k",
]
