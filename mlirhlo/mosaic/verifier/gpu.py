"""Constraints of the `mosaic_gpu` dialect."""

from __future__ import annotations

from typing import Any

from mlirhlo.dialects.mosaic_gpu.attributes import (
    BarrierType,
    SplatLayoutAttr,
    StridedLayoutAttr,
    SwizzleAttr,
    TileAttr,
    TiledLayoutAttr,
)
from mlirhlo.dialects.tpu.op_classes import KernelOp
from mlirhlo.mosaic.attributes import attribute_of, integer_of, integers_of, name_of
from mlirhlo.mosaic.target.tiling import element_name, shape_in
from mlirhlo.mosaic.verifier.constraint import Constraint, demand

_WIDEST_N, _ROWS = 256, 64
_MOST_COLUMNS = 512


def space(type_: Any) -> str:
    """The memory of a memref: gmem, smem, tmem or cluster."""
    text = str(getattr(type_, "memory_space", ""))
    words = {"workgroup": "smem", "smem_cluster": "cluster", "tmem": "tmem"}
    return next((name for word, name in words.items() if word in text), "gmem")


def _product(op: KernelOp) -> str | None:
    accumulator, a, b = (shape_in(value.type) for value in op.operands)
    if len(accumulator) != 2 or len(a) != 2 or len(b) != 2:
        return f"ranks are {len(accumulator)}, {len(a)} and {len(b)}"
    if (a[0], b[1]) != accumulator or a[1] != b[0]:
        return f"{list(a)} times {list(b)} is not {list(accumulator)}"
    return None


def _product_elements(op: KernelOp) -> str | None:
    a, b = (element_name(value.type) for value in (op.a, op.b))
    return None if a == b else f"factors are {a} and {b}"


def _wgmma_sizes(op: KernelOp) -> str | None:
    m, n = shape_in(op.accumulator.type)
    if m % _ROWS:
        return f"{m} rows"
    return f"{n} columns" if n % 8 or (n > _WIDEST_N and n % _WIDEST_N) else None


def _wgmma_memory(op: KernelOp) -> str | None:
    for name, value in (("a", op.a), ("b", op.b)):
        if hasattr(value.type, "memory_space") and space(value.type) != "smem":
            return f"{name} is in {space(value.type).upper()}"
    return None


def _one_barrier(op: KernelOp) -> str | None:
    type_: Any = op.barrier.type
    if not isinstance(getattr(type_, "element_type", None), BarrierType):
        return f"{type_} is no barrier"
    return None if not shape_in(type_) else f"{list(shape_in(type_))} barriers"


def _ends(op: KernelOp) -> tuple[Any, Any]:
    """The types in global and in shared memory."""
    source = op.source.type
    if name_of(op) == "mosaic_gpu.async_store":
        return op.destination.type, source
    return source, getattr(op, "destination").type  # noqa: B009


def _copy_spaces(op: KernelOp) -> str | None:
    gmem, smem = _ends(op)
    if space(gmem) == "gmem" and space(smem) == "smem":
        return None
    return f"it is between {space(gmem).upper()} and {space(smem).upper()}"


def _copy_elements(op: KernelOp) -> str | None:
    gmem, smem = _ends(op)
    a, b = element_name(gmem), element_name(smem)
    return None if a == b else f"{a} is copied to {b}"


def _copy_indices(op: KernelOp) -> str | None:
    gmem = op.source.type if name_of(op) == "mosaic_gpu.async_prefetch" else _ends(op)[0]
    rank, lengths = len(shape_in(gmem)), integers_of(op, "slice_lengths") or ()
    if len(op.indices) == rank == len(lengths):
        return None
    return f"{len(op.indices)} indices and {len(lengths)} lengths for {rank} dimensions"


def _copy_shape(op: KernelOp) -> str | None:
    smem = shape_in(_ends(op)[1])
    lengths = tuple(length for length in integers_of(op, "slice_lengths") or () if length != -1)
    return None if smem == lengths else f"{list(lengths)} is copied, the buffer is {list(smem)}"


def _loaded(op: KernelOp) -> str | None:
    vector, memory = (op.result.type, op.source.type)
    return _same(vector, memory)


def _stored(op: KernelOp) -> str | None:
    return _same(op.valueToStore.type, op.destination.type)


def _same(vector: Any, memory: Any) -> str | None:
    if shape_in(vector) != shape_in(memory):
        return f"the vector is {list(shape_in(vector))}, the memory {list(shape_in(memory))}"
    a, b = element_name(vector), element_name(memory)
    return None if a == b else f"the vector has {a}, the memory {b}"


def _broadcast(op: KernelOp) -> str | None:
    source, target = shape_in(op.operand.type), shape_in(op.result.type)
    dims = integers_of(op, "broadcast_dimensions") or ()
    if len(dims) != len(source) or list(dims) != sorted(set(dims)):
        return f"{list(source)} goes to dimensions {list(dims)}"
    for size, dim in zip(source, dims, strict=True):
        if not 0 <= dim < len(target) or target[dim] != size:
            return f"dimension {dim} of {list(target)} is not {size}"
    return None


def _iota(op: KernelOp) -> str | None:
    dimension, rank = integer_of(op, "dimension"), len(shape_in(op.result.type))
    return None if 0 <= dimension < rank else f"dimension {dimension}"


def _layout(op: KernelOp) -> str | None:
    layout = attribute_of(op, "new_layout")
    if isinstance(layout, TiledLayoutAttr):
        problem = layout.data.problem()
        if problem is not None:
            return problem
        shape, tile = shape_in(op.operands[0].type), layout.data.base_tile
        tail = shape[len(shape) - len(tile) :]
        if len(tile) > len(shape) or any(n % t for n, t in zip(tail, tile, strict=True)):
            return f"{list(shape)} is not made of tiles {list(tile)}"
        return None
    if isinstance(layout, StridedLayoutAttr | SplatLayoutAttr):
        shape = shape_in(op.operands[0].type)
        return None if layout.data.shape == shape else f"it is for {list(layout.data.shape)}"
    return f"{layout} is no layout"


def _transforms(op: KernelOp) -> str | None:
    transforms: Any = attribute_of(op, "transforms")
    shape = shape_in(op.ref.type)
    for transform in transforms.data:
        if isinstance(transform, TileAttr):
            tail = shape[len(shape) - len(transform.data) :]
            sizes = list(zip(tail, transform.data, strict=False))
            if len(transform.data) > len(shape) or any(not t or n % t for n, t in sizes):
                return f"{list(shape)} is not made of tiles {list(transform.data)}"
        elif not isinstance(transform, SwizzleAttr):
            return f"{transform} is no transform"
    return None


def _counts(op: KernelOp) -> str | None:
    for name in ("arrival_count", "num_barriers"):
        count = integer_of(op, name)
        if count < 1:
            return f"{name} is {count}"
    return None


def _columns(op: KernelOp) -> str | None:
    shape = shape_in(op.result.type)
    columns = shape[-1] // (integer_of(op, "packing") or 1) if shape else 0
    is_power = columns > 0 and columns & (columns - 1) == 0
    return None if is_power and 32 <= columns <= _MOST_COLUMNS else f"{columns} columns"


_COPIES = "mosaic_gpu.async_load mosaic_gpu.async_store"
ROWS: tuple[Constraint, ...] = (
    *demand("mosaic_gpu.wgmma mosaic_gpu.mma", 1, "m×k times k×n is added to m×n", _product),
    *demand("mosaic_gpu.wgmma mosaic_gpu.mma", 2, "factors have one type", _product_elements),
    *demand("mosaic_gpu.wgmma", 3, "m is a multiple of 64, n of 8, at most 256", _wgmma_sizes),
    *demand("mosaic_gpu.wgmma", 4, "factors in memory are in SMEM", _wgmma_memory),
    *demand(
        "mosaic_gpu.arrive mosaic_gpu.arrive_expect_tx mosaic_gpu.wait mosaic_gpu.tcgen05_commit_arrive",
        1,
        "it is of one barrier",
        _one_barrier,
    ),
    *demand(_COPIES, 1, "copies go between GMEM and SMEM", _copy_spaces),
    *demand(_COPIES, 2, "both ends have one element type", _copy_elements),
    *demand(
        f"{_COPIES} mosaic_gpu.async_prefetch", 3, "each dimension has an index", _copy_indices
    ),
    *demand(_COPIES, 4, "the buffer has the shape of the slice", _copy_shape),
    *demand("mosaic_gpu.vector_load", 1, "a vector is like its memory", _loaded),
    *demand("mosaic_gpu.vector_store", 1, "a vector is like its memory", _stored),
    *demand("mosaic_gpu.broadcast_in_dim", 1, "dimensions keep their size and order", _broadcast),
    *demand("mosaic_gpu.broadcasted_iota", 1, "the dimension is one of the vector's", _iota),
    *demand("mosaic_gpu.layout_cast", 1, "the layout fits the vector", _layout),
    *demand("mosaic_gpu.with_transforms", 1, "tiles divide the buffer", _transforms),
    *demand("mosaic_gpu.initialize_barrier", 1, "counts are positive", _counts),
    *demand("mosaic_gpu.tmem_alloc", 1, "columns are a power of two from 32 to 512", _columns),
)
