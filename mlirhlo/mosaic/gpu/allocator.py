"""Memories of a block, given out to what a kernel asks for."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import i32
from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.dialects.mosaic_gpu.attributes import SwizzleAttr, TileAttr
from mlirhlo.mosaic.gpu.memory import (
    Barrier,
    ClusterBarrier,
    RefUnion,
    Scratch,
    Start,
    WGMMAAccumulatorRef,
)
from mlirhlo.mosaic.gpu.module import Launch
from mlirhlo.mosaic.gpu.refs import GpuRef, memref_of, store, whole
from mlirhlo.mosaic.language.elements import I32, as_dtype, element_type
from mlirhlo.mosaic.language.faults import bad_memory, bad_spec
from mlirhlo.mosaic.language.trace import (
    SEGMENTS,
    attribute,
    current,
    emit,
    emit_one,
    flag,
    int_attr,
    into,
    ints,
)
from mlirhlo.mosaic.language.tree import flatten
from mlirhlo.mosaic.language.value import constant

ALIGNMENT = 1024
TENSOR_COLUMNS = 512
"""Columns of tensor memory of sm_100a."""
SHARED_BYTES = 227 << 10
"""Shared memory of a block of sm_90a."""


class Allocator:
    """Gives out shared memory, from the start on."""

    def __init__(self, launch: Launch) -> None:
        self.launch, self.top, self.most = launch, 0, 0
        self.tensors: list[SSAValue] = []
        """Allocations of tensor memory."""
        self.columns = 0
        self.is_started = False
        self.head: Operation | None = None
        """The operation behind which barriers of loops and branches are initialised."""
        self._kept: list[tuple[Operation, int]] = []
        """Memory of these barriers, with its size; it gets its offset at the end, and is never freed."""

    def __call__(self, wanted: Any, name: str | None = None) -> Any:
        """A reference to memory; of a `RefUnion` a tuple of its groups of references."""
        match wanted:
            case RefUnion(refs):
                return self._union(refs, name)
            case Scratch(space="smem"):
                return self._shared(wanted, name)
            case WGMMAAccumulatorRef():
                return _registers(wanted.shape, as_dtype(wanted.dtype), 0.0, name)
            case Start(value):
                return _registers(value.shape, value.dtype, value, name)
            case Scratch(space="tmem"):
                return self._tensor(wanted, name)
            case Scratch(space="regs"):
                return _registers(wanted.shape, wanted.dtype, None, name)
            case Barrier() | ClusterBarrier():
                return self._barrier(wanted, name)
            case _:
                raise bad_spec(
                    f"{wanted!r} is no memory of a block",
                    "plgpu.SMEM(shape, dtype), Barrier(), ClusterBarrier(…) or ACC(shape)",
                )

    def _union(self, groups: Sequence[Any], name: str | None) -> tuple[Any, ...]:
        """Groups of buffers that begin at the same offset."""
        start, end, references = self.top, self.top, list[Any]()
        for group in groups:
            leaves, rebuild = flatten(group)
            if any(not isinstance(one, Scratch) or one.space != "smem" for one in leaves):
                raise bad_spec("a RefUnion of other memory than SMEM", "ask for the others beside")
            self.top = start
            references.append(rebuild([self._shared(leaf, name) for leaf in leaves]))
            end = max(end, self.top)
        self.top = end
        return tuple(references)

    def _take(self, size: int, alignment: int) -> int:
        start = -(-self.top // alignment) * alignment
        self.top = start + size
        self.most = max(self.most, self.top)
        if self.top > SHARED_BYTES:
            raise bad_memory(f"{self.top} bytes of shared memory: a block has {SHARED_BYTES}")
        return start

    def _shared(self, wanted: Scratch, name: str | None) -> GpuRef:
        swizzle = wanted.swizzle
        start = self._take(wanted.size_bytes, ALIGNMENT)
        type_ = memref_of(wanted.shape, element_type(wanted.dtype), "smem")
        ssa = emit_one("mosaic_gpu.slice_smem", [], type_, {"offset": int_attr(start)})
        if swizzle:
            from xdsl.dialects.builtin import ArrayAttr

            tile = TileAttr((8, swizzle // wanted.dtype.itemsize))
            transforms = ArrayAttr([tile, SwizzleAttr(swizzle)])
            ssa = emit_one("mosaic_gpu.with_transforms", [ssa], type_, {"transforms": transforms})
        ssa.name_hint = name
        return GpuRef(ssa, wanted.shape, wanted.dtype, "smem", whole(wanted.shape))

    def _tensor(self, wanted: Scratch, name: str | None) -> GpuRef:
        columns = max(32, 1 << (wanted.shape[1] - 1).bit_length())
        self.columns += columns
        if self.columns > TENSOR_COLUMNS:
            raise bad_memory(f"{self.columns} columns of TMEM: a block has {TENSOR_COLUMNS}")
        if self.is_started:
            raise bad_spec("TMEM that is asked for within the kernel", "scratch_types has it")
        slot = memref_of((), i32, "smem")
        start = {"offset": int_attr(self._take(4, 4))}
        pointer = emit_one("mosaic_gpu.slice_smem", [], slot, start)
        element = element_type(wanted.dtype)
        whole_ = memref_of((128, columns), element, "tmem")
        ssa = emit_one("mosaic_gpu.tmem_alloc", [pointer], whole_)
        self.tensors.append(ssa)
        if columns != wanted.shape[1]:
            part = memref_of(wanted.shape, element, "tmem")
            ssa = emit_one("mosaic_gpu.slice_tmem", [ssa], part, {"offset": int_attr(0)})
        ssa.name_hint = name
        return GpuRef(ssa, wanted.shape, wanted.dtype, "tmem", whole(wanted.shape))

    def end(self) -> None:
        """Gives tensor memory back, and allocates what is kept behind all other shared memory."""
        for ssa in self.tensors:
            emit("mosaic_gpu.tmem_dealloc", [ssa])
        self.top = self.most
        for op, size in self._kept:
            op.properties["offset"] = int_attr(self._take(size, 8))

    def _barrier(self, request: Any, name: str | None) -> GpuRef:
        count = request.num_barriers
        if count > 32:
            raise bad_spec(f"{count} barriers", "at most 32 at once")
        if not current().cache["depth"]:
            current().cache["barriers_made"] = True
            return self._new_barrier(request, name, self._take(8 * count, 8))
        with into(Block()) as block:
            barrier = self._new_barrier(request, name, 0)
        self._kept.append((cast(Operation, block.first_op), 8 * count))
        for op in list(block.ops):
            op.detach()
            assert self.head is not None
            cast(Block, self.head.parent).insert_op_after(op, self.head)
            self.head = op
        return barrier

    def _new_barrier(self, request: Any, name: str | None, start: int) -> GpuRef:
        """Initialises barriers at an offset of shared memory, which the first operation has."""
        count = request.num_barriers
        type_ = memref_of((count,), attribute("!mosaic_gpu.barrier"), "smem")
        ssa = emit_one("mosaic_gpu.slice_smem", [], type_, {"offset": int_attr(start)})
        ssa.name_hint = name
        arrivals = request.num_arrivals
        if isinstance(request, ClusterBarrier):
            names, sizes = self.launch.cluster_names, self.launch.cluster
            unknown = [axis for axis in request.axes if axis not in names]
            if unknown:
                raise bad_spec(f"the cluster has no axis {unknown[0]!r}")
            arrivals *= prod(sizes[names.index(axis)] for axis in request.axes)
        pointer = emit_one("builtin.unrealized_conversion_cast", [ssa], attribute("!llvm.ptr<3>"))
        emit(
            "mosaic_gpu.initialize_barrier",
            [pointer],
            (),
            {
                "arrival_count": int_attr(arrivals, 64),
                "num_barriers": int_attr(count),
                "orders_tensor_core": flag(request.orders_tensor_core),
            },
        )
        phases = emit_one(
            "memref.alloca", [], memref_of((), i32, "gmem"), {SEGMENTS: ints([0, 0], 32)}
        )
        emit("memref.store", [constant(0, I32).ssa, phases])
        return GpuRef(ssa, (count,), I32, "smem", whole((count,)), request, phases)


def _registers(shape: Sequence[int], dtype: Any, start: Any, name: str | None) -> GpuRef:
    type_ = memref_of(shape, element_type(dtype), "regs")
    ssa = emit_one("memref.alloca", [], type_, {SEGMENTS: ints([0, 0], 32)})
    ssa.name_hint = name
    ref = GpuRef(ssa, tuple(shape), dtype, "regs", whole(shape))
    if start is not None:
        store(ref, ..., start)
    return ref


@contextmanager
def scope(allocator: Allocator) -> Generator[None]:
    """What is asked for within is given back at the end."""
    before = allocator.top
    yield
    allocator.top = before
