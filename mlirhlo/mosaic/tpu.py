"""What belongs to TPUs: memories, semaphores, copies, pipelines. The names are those of `pltpu`."""

from __future__ import annotations

from typing import Any

from mlirhlo.diagnostics import HloError as LoweringException
from mlirhlo.mosaic.chips import (
    ChipVersion,
    Tiling,
    TpuInfo,
    get_tpu_info,
    get_tpu_info_for_chip,
    is_tpu_device,
)
from mlirhlo.mosaic.interpreter.core import InterpretParams
from mlirhlo.mosaic.language.buffers import BufferedRef, BufferedRefBase, BufferType
from mlirhlo.mosaic.language.dma import (
    AsyncCopy,
    DeviceIdType,
    async_copy,
    async_remote_copy,
    get_barrier_semaphore,
    make_async_copy,
    make_async_remote_copy,
    sync_copy,
)
from mlirhlo.mosaic.language.functions.arithmetic import bitcast
from mlirhlo.mosaic.language.functions.derived import einshape
from mlirhlo.mosaic.language.functions.extras import (
    delay,
    matmul_acc_lhs,
    matmul_pop,
    matmul_push_rhs,
    pack_elementwise,
    prng_random_bits,
    prng_seed,
    stochastic_round,
    touch,
    trace_value,
    unpack_elementwise,
)
from mlirhlo.mosaic.language.functions.random import (
    stateful_bernoulli,
    stateful_bits,
    stateful_normal,
    stateful_uniform,
)
from mlirhlo.mosaic.language.functions.shapes import roll
from mlirhlo.mosaic.language.outside.interpret import (
    force_tpu_interpret_mode,
    reset_tpu_interpret_mode_state,
    set_tpu_interpret_mode,
)
from mlirhlo.mosaic.language.outside.mesh import (
    TensorCoreMesh,
    core_barrier,
    create_tensorcore_mesh,
    run_on_first_core,
)
from mlirhlo.mosaic.language.pipeline import emit_pipeline, emit_pipeline_with_allocations
from mlirhlo.mosaic.language.refs import tpu_load as load
from mlirhlo.mosaic.language.refs import tpu_store as store
from mlirhlo.mosaic.language.scratch import (
    CoreType,
    MemorySpace,
    SemaphoreType,
    dma_semaphore,
)
from mlirhlo.mosaic.language.specs import (
    ARBITRARY,
    CORE_PARALLEL,
    PARALLEL,
    SUBCORE_PARALLEL,
    CompilerParams,
    GridDimensionSemantics,
    PrefetchScalarGridSpec,
    SideEffectType,
)
from mlirhlo.mosaic.random import sample_block, to_pallas_key

VMEM = MemorySpace.VMEM
SMEM = MemorySpace.SMEM
HBM = MemorySpace.HBM
CMEM = MemorySpace.CMEM
VMEM_SHARED = MemorySpace.VMEM_SHARED
SEMAPHORE = MemorySpace.SEMAPHORE
HOST = MemorySpace.HOST


def with_memory_space_constraint(x: Any, memory_space: MemorySpace) -> Any:
    """x: outside of a TPU arrays are in one memory."""
    del memory_space
    return x


__all__ = [
    "ARBITRARY",
    "CMEM",
    "CORE_PARALLEL",
    "HBM",
    "HOST",
    "PARALLEL",
    "SEMAPHORE",
    "SMEM",
    "SUBCORE_PARALLEL",
    "VMEM",
    "VMEM_SHARED",
    "AsyncCopy",
    "BufferType",
    "BufferedRef",
    "BufferedRefBase",
    "ChipVersion",
    "CompilerParams",
    "CoreType",
    "DeviceIdType",
    "GridDimensionSemantics",
    "InterpretParams",
    "LoweringException",
    "MemorySpace",
    "PrefetchScalarGridSpec",
    "SemaphoreType",
    "SideEffectType",
    "TensorCoreMesh",
    "Tiling",
    "TpuInfo",
    "async_copy",
    "async_remote_copy",
    "bitcast",
    "core_barrier",
    "create_tensorcore_mesh",
    "delay",
    "dma_semaphore",
    "einshape",
    "emit_pipeline",
    "emit_pipeline_with_allocations",
    "force_tpu_interpret_mode",
    "get_barrier_semaphore",
    "get_tpu_info",
    "get_tpu_info_for_chip",
    "is_tpu_device",
    "load",
    "make_async_copy",
    "make_async_remote_copy",
    "matmul_acc_lhs",
    "matmul_pop",
    "matmul_push_rhs",
    "pack_elementwise",
    "prng_random_bits",
    "prng_seed",
    "reset_tpu_interpret_mode_state",
    "roll",
    "run_on_first_core",
    "sample_block",
    "set_tpu_interpret_mode",
    "stateful_bernoulli",
    "stateful_bits",
    "stateful_normal",
    "stateful_uniform",
    "stochastic_round",
    "store",
    "sync_copy",
    "to_pallas_key",
    "touch",
    "trace_value",
    "unpack_elementwise",
    "with_memory_space_constraint",
]
