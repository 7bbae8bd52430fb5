"""What belongs to TPUs: memories, semaphores, copies, pipelines. The names are those of `pltpu`."""

from __future__ import annotations

from mlirhlo.mosaic.interpreter.core import InterpretParams
from mlirhlo.mosaic.language.casts import bitcast
from mlirhlo.mosaic.language.derived import einshape
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
from mlirhlo.mosaic.language.extras import (
    delay,
    pack_elementwise,
    prng_random_bits,
    prng_seed,
    stochastic_round,
    touch,
    trace_value,
    unpack_elementwise,
)
from mlirhlo.mosaic.language.mesh import BufferedRef, TensorCoreMesh, create_tensorcore_mesh
from mlirhlo.mosaic.language.pipeline import emit_pipeline, emit_pipeline_with_allocations
from mlirhlo.mosaic.language.random import (
    stateful_bernoulli,
    stateful_bits,
    stateful_normal,
    stateful_uniform,
)
from mlirhlo.mosaic.language.refs import tpu_load as load
from mlirhlo.mosaic.language.refs import tpu_store as store
from mlirhlo.mosaic.language.scratch import MemorySpace, SemaphoreType
from mlirhlo.mosaic.language.shapes import roll
from mlirhlo.mosaic.language.specs import (
    ARBITRARY,
    CORE_PARALLEL,
    PARALLEL,
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

__all__ = [
    "ARBITRARY",
    "CMEM",
    "CORE_PARALLEL",
    "HBM",
    "PARALLEL",
    "SEMAPHORE",
    "SMEM",
    "VMEM",
    "VMEM_SHARED",
    "AsyncCopy",
    "BufferedRef",
    "CompilerParams",
    "DeviceIdType",
    "GridDimensionSemantics",
    "InterpretParams",
    "MemorySpace",
    "PrefetchScalarGridSpec",
    "SemaphoreType",
    "SideEffectType",
    "TensorCoreMesh",
    "async_copy",
    "async_remote_copy",
    "bitcast",
    "create_tensorcore_mesh",
    "delay",
    "einshape",
    "emit_pipeline",
    "emit_pipeline_with_allocations",
    "get_barrier_semaphore",
    "load",
    "make_async_copy",
    "make_async_remote_copy",
    "pack_elementwise",
    "prng_random_bits",
    "prng_seed",
    "roll",
    "sample_block",
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
]
