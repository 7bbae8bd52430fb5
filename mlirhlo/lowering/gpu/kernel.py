"""A kernel: code of the gpu dialect for one instruction or fusion, and how it is launched."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import gpu

KNOWN_CLUSTER = "gpu.known_cluster_size"
"""Attribute of a `gpu.func` whose blocks run in clusters of that size."""
OF_THREADS = "mosaic_gpu.of_threads"
"""Attribute of a `gpu.func` that JAX lowered: code of single threads in JAX's choice of dialects."""


@dataclass(frozen=True, slots=True)
class MapParameter:
    """A parameter that tells copies the shape of a buffer: what a tensor map says but its address.

    Dimensions are counted from the fastest on.
    """

    parameter: int
    """Number of the parameter that points to the buffer."""
    element_bytes: int
    dimensions: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes, of all dimensions but the first."""
    box: tuple[int, ...]
    """Elements of each dimension that one copy moves."""
    swizzle_bytes: int


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of an entry point."""

    entry: str
    grid: tuple[int, int, int]
    """Blocks, by x, y and z."""
    block: tuple[int, int, int]
    """Threads of a block."""
    buffers: tuple[int, ...]
    """What the parameters point to, by number: the operands' arrays, then the results', then workspaces."""
    shared_bytes: int = 0
    """Dynamic shared memory of a block."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    maps: tuple[MapParameter, ...] = ()
    """Parameters behind those of buffers."""


@dataclass(frozen=True, slots=True)
class GpuKernel:
    """What computes the results' arrays of an instruction from its operands' arrays.

    Arrays stand in memory as on the CPU: dense, in the order of their layout; pred takes a byte.
    """

    name: str
    module: gpu.ModuleOp
    launches: tuple[Launch, ...]
    """In this order, each after the one before has ended."""
    workspaces: tuple[int, ...] = ()
    """Bytes of buffers that the launches share, of no defined content before the first of them."""
    in_place: tuple[tuple[int, int], ...] = ()
    """Numbers of operands, each with that of a result that may be the same buffer."""
    updates: tuple[tuple[int, int], ...] = ()
    """Numbers of operands that no launch reads, each with that of a result, which holds a copy of the operand before
    the first launch."""
