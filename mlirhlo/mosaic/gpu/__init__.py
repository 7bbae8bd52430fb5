"""Pallas' language for GPUs: `from mlirhlo.mosaic import gpu as plgpu`.

Every public name of `jax.experimental.pallas.mosaic_gpu` is here. What sm_90a has not, or what depends on another
GPU or on time, says so where it is used (HLO0757).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlirhlo.mosaic.gpu.faults import LACKING, not_here
from mlirhlo.mosaic.gpu.host import imported
from mlirhlo.mosaic.gpu.kernel import GpuKernelCall, kernel
from mlirhlo.mosaic.gpu.layouts import Layout, Replicated, Tiling, layout_cast
from mlirhlo.mosaic.gpu.memory import (
    Barrier,
    ClusterBarrier,
    MemorySpace,
    RefUnion,
    SwizzleTransform,
    TilingTransform,
    WGMMAAccumulatorRef,
)
from mlirhlo.mosaic.gpu.module import GpuKernel
from mlirhlo.mosaic.gpu.pipeline import (
    BlockSpec,
    NDLoopInfo,
    PipelinePipeline,
    dynamic_scheduling_loop,
    emit_pipeline,
    emit_pipeline_warp_specialized,
    find_swizzle,
    nd_loop,
    planar_snake,
)
from mlirhlo.mosaic.gpu.primitives import (
    async_prefetch,
    atomic_add,
    atomic_and,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xor,
    barrier_arrive,
    barrier_test,
    barrier_wait,
    broadcasted_iota,
    cluster_ref,
    commit_smem,
    commit_smem_to_gmem_group,
    copy_gmem_to_smem,
    copy_smem_to_gmem,
    griddepcontrol_launch_dependents,
    griddepcontrol_wait,
    set_max_registers,
    transform_ref,
    transpose_ref,
    wait_smem_to_gmem,
    wgmma,
    wgmma_accumulator_load,
    wgmma_wait,
)
from mlirhlo.mosaic.gpu.refs import GpuRef, load
from mlirhlo.mosaic.gpu.tensor_memory import (
    async_load_tmem,
    async_store_tmem,
    commit_tmem,
    tcgen05_commit_arrive,
    tcgen05_mma,
    wait_load_tmem,
)
from mlirhlo.mosaic.language.specs import ShapeDtypeStruct

GMEM, SMEM, TMEM, REGS = MemorySpace
ACC = WGMMAAccumulatorRef
RefType = GpuRef
Transform = TilingTransform | SwizzleTransform


class OOBFillMode(enum.Enum):
    """What copies put where the array has ended; here always zeros."""

    UNDEFINED = 0
    PROMISE_IN_BOUNDS = 1
    ZEROS = 2


class LoweringSemantics(enum.Enum):
    """Of no effect: kernels are written for warp groups."""

    Lane = 0
    Warpgroup = 1


class TraceScope(enum.Enum):
    """Of no effect."""

    WARP = 0
    WARPGROUP = 1


class CopyPartition(enum.Enum):
    """How blocks of a cluster share a copy; here each copies all."""

    REPLICATED = 0


@dataclass(frozen=True)
class CompilerParams:
    """Options of Mosaic's compiler; of no effect here."""

    approx_math: bool = False
    dimension_semantics: Any = None
    max_concurrent_steps: int = 1
    unsafe_no_auto_barriers: bool = False
    reduction_scratch_bytes: int = 2048
    profile_space: int = 0
    profile_dir: str = ""
    profile_trace_scope: Any = TraceScope.WARPGROUP
    lowering_semantics: Any = LoweringSemantics.Warpgroup


@dataclass(frozen=True)
class Mesh:
    """The blocks and warp groups that `pl.core_map` and `kernel` run on."""

    grid: tuple[int, ...] = ()
    grid_names: tuple[str, ...] = ()
    cluster: tuple[int, ...] = ()
    cluster_names: tuple[str, ...] = ()
    num_threads: int | None = None
    thread_name: str | None = None
    kernel_name: str | None = None

    def kernel(self, body: Callable[..., None], out_type: Any, **options: Any) -> GpuKernelCall:
        """The kernel that runs on it."""
        stated: dict[str, Any] = {"name": self.kernel_name, **vars(self), **options}
        del stated["kernel_name"]
        call: GpuKernelCall = kernel(body, out_type, **stated)
        return call


def _lacking(name: str) -> Any:
    class _Refused(type):
        def __getattr__(cls, attribute: str) -> Any:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            raise not_here(name)

        def __call__(cls, *given: Any, **options: Any) -> Any:
            del given, options
            raise not_here(name)

    return _Refused(name, (), {"__doc__": f"Refused: HLO0757 says what to use in place of {name}."})


_REFUSED = {name: _lacking(name) for name in LACKING}


def __getattr__(name: str) -> Any:
    found = _REFUSED.get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *_REFUSED])


__all__ = [
    "ACC",
    "GMEM",
    "REGS",
    "SMEM",
    "TMEM",
    "Barrier",
    "BlockSpec",
    "ClusterBarrier",
    "CompilerParams",
    "CopyPartition",
    "GpuKernel",
    "GpuKernelCall",
    "Layout",
    "LoweringSemantics",
    "MemorySpace",
    "Mesh",
    "NDLoopInfo",
    "OOBFillMode",
    "PipelinePipeline",
    "RefType",
    "RefUnion",
    "Replicated",
    "ShapeDtypeStruct",
    "SwizzleTransform",
    "Tiling",
    "TilingTransform",
    "TraceScope",
    "Transform",
    "WGMMAAccumulatorRef",
    "async_load_tmem",
    "async_prefetch",
    "async_store_tmem",
    "atomic_add",
    "atomic_and",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xor",
    "barrier_arrive",
    "barrier_test",
    "barrier_wait",
    "broadcasted_iota",
    "cluster_ref",
    "commit_smem",
    "commit_smem_to_gmem_group",
    "commit_tmem",
    "copy_gmem_to_smem",
    "copy_smem_to_gmem",
    "dynamic_scheduling_loop",
    "emit_pipeline",
    "emit_pipeline_warp_specialized",
    "find_swizzle",
    "griddepcontrol_launch_dependents",
    "griddepcontrol_wait",
    "imported",
    "kernel",
    "layout_cast",
    "load",
    "nd_loop",
    "planar_snake",
    "set_max_registers",
    "tcgen05_commit_arrive",
    "tcgen05_mma",
    "transform_ref",
    "transpose_ref",
    "wait_load_tmem",
    "wait_smem_to_gmem",
    "wgmma",
    "wgmma_accumulator_load",
    "wgmma_wait",
]
