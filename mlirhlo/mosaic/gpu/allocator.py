"""Memories of a block, given out to what a kernel asks for."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirhlo.dialects.mosaic_gpu.attributes import SwizzleAttr, TileAttr
from mlirhlo.mosaic.gpu.memory import Barrier, ClusterBarrier, Scratch, Start, WGMMAAccumulatorRef
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
    ints,
)
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

    def __call__(self, wanted: Any, name: str | None = None) -> GpuRef:
        match wanted:
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
        """Gives tensor memory back."""
        for ssa in self.tensors:
            emit("mosaic_gpu.tmem_dealloc", [ssa])

    def _barrier(self, wanted: Any, name: str | None) -> GpuRef:
        count = wanted.num_barriers
        if count > 32:
            raise bad_spec(f"{count} barriers", "at most 32 at once")
        if current().cache["depth"]:
            raise bad_spec("a barrier that is made in a loop or branch", "ask for it outside")
        start = self._take(8 * count, 8)
        type_ = memref_of((count,), attribute("!mosaic_gpu.barrier"), "smem")
        ssa = emit_one("mosaic_gpu.slice_smem", [], type_, {"offset": int_attr(start)})
        ssa.name_hint = name
        arrivals = wanted.num_arrivals
        if isinstance(wanted, ClusterBarrier):
            names, sizes = self.launch.cluster_names, self.launch.cluster
            unknown = [axis for axis in wanted.axes if axis not in names]
            if unknown:
                raise bad_spec(f"the cluster has no axis {unknown[0]!r}")
            arrivals *= prod(sizes[names.index(axis)] for axis in wanted.axes)
        pointer = emit_one("builtin.unrealized_conversion_cast", [ssa], attribute("!llvm.ptr<3>"))
        emit(
            "mosaic_gpu.initialize_barrier",
            [pointer],
            (),
            {
                "arrival_count": int_attr(arrivals, 64),
                "num_barriers": int_attr(count),
                "orders_tensor_core": flag(wanted.orders_tensor_core),
            },
        )
        phases = emit_one(
            "memref.alloca", [], memref_of((), i32, "gmem"), {SEGMENTS: ints([0, 0], 32)}
        )
        emit("memref.store", [constant(0, I32).ssa, phases])
        current().cache["barriers_made"] = True
        return GpuRef(ssa, (count,), I32, "smem", whole((count,)), wanted, phases)


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
