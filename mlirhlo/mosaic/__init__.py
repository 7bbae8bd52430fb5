"""Kernels: written in Python, read from programs, checked, run.

The names here are Pallas' (`from mlirhlo import mosaic as pl`); `mosaic.tpu` has those of `pltpu`,
`mosaic.numpy`, `mosaic.lax`, `mosaic.nn` and `mosaic.random` what kernels compute with. Beside the
language: `decode` reads the kernel out of a `tpu_custom_call`, `interpreter` runs its module,
`custom_call` is the meaning that the interpreter of HLO takes for the call.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.mosaic import interpreter as _interpreter
    from mlirhlo.mosaic import timeline as _timeline


if TYPE_CHECKING:
    from mlirhlo.mosaic.interpreter import InterpretParams
    from mlirhlo.mosaic.language.call import KernelCall, kernel_call
    from mlirhlo.mosaic.language.call import kernel_call as pallas_call
    from mlirhlo.mosaic.language.choices import select_ref
    from mlirhlo.mosaic.language.control import loop, run_scoped, when, with_scoped
    from mlirhlo.mosaic.language.dma import (
        DeviceIdType,
        axis_index,
        axis_size,
        semaphore_read,
        semaphore_signal,
        semaphore_wait,
    )
    from mlirhlo.mosaic.language.functions.arithmetic import reciprocal
    from mlirhlo.mosaic.language.functions.extras import (
        debug_check,
        debug_print,
        delay,
        named_scope,
    )
    from mlirhlo.mosaic.language.functions.shapes import (
        _broadcast_to as broadcast_to,  # pyright: ignore[reportPrivateUsage]
    )
    from mlirhlo.mosaic.language.grid import (
        align_to,
        cdiv,
        next_power_of_2,
        num_programs,
        program_id,
    )
    from mlirhlo.mosaic.language.indexing import Slice, ds, dslice, multiple_of
    from mlirhlo.mosaic.language.kernel import Kernel
    from mlirhlo.mosaic.language.outside.estimate import estimate_cost
    from mlirhlo.mosaic.language.outside.helpers import (
        block_until_ready,
        custom_jvp,
        custom_vjp,
        default_matmul_precision,
        device_count,
        device_get,
        device_put,
        devices,
        empty,
        empty_like,
        enable_debug_checks,
        enable_poison_buffers,
        jit,
        lower_as_mlir,
        make_mesh,
        strides_from_shape,
    )
    from mlirhlo.mosaic.language.outside.interpret import default_platform
    from mlirhlo.mosaic.language.outside.mapping import vmap
    from mlirhlo.mosaic.language.outside.mesh import Indirect, core_map, get_global, kernel
    from mlirhlo.mosaic.language.outside.parallel import NamedSharding, shard_map
    from mlirhlo.mosaic.language.outside.parallel import PartitionSpec as P
    from mlirhlo.mosaic.language.outside.state import (
        empty_ref,
        empty_ref_like,
        freeze,
        new_ref,
        run_state,
    )
    from mlirhlo.mosaic.language.refs import masked_load as load
    from mlirhlo.mosaic.language.refs import masked_store as store
    from mlirhlo.mosaic.language.scratch import MemoryRef, MemorySpace, semaphore
    from mlirhlo.mosaic.language.specs import (
        BlockDim,
        Blocked,
        BlockSpec,
        BoundedSlice,
        Buffered,
        CompilerParams,
        CostEstimate,
        Element,
        GridSpec,
        RevisitMode,
        ShapeDtypeStruct,
        Squeezed,
        no_block_spec,
        squeezed,
    )
    from mlirhlo.mosaic.language.value import Array
    from mlirhlo.mosaic.timeline import Timeline

    ANY = MemorySpace.ANY
    HOST = MemorySpace.HOST

_PLACES = {
    "ANY": "scratch:MemorySpace.ANY",
    "Array": "value:Array",
    "BlockDim": "specs",
    "BlockSpec": "specs",
    "Blocked": "specs",
    "BoundedSlice": "specs",
    "Buffered": "specs",
    "CompilerParams": "specs",
    "CostEstimate": "specs",
    "DeviceIdType": "dma",
    "Element": "specs",
    "GridSpec": "specs",
    "HOST": "scratch:MemorySpace.HOST",
    "Indirect": "outside.mesh",
    "Kernel": "kernel",
    "KernelCall": "call",
    "MemoryRef": "scratch",
    "MemorySpace": "scratch",
    "NamedSharding": "outside.parallel",
    "P": "outside.parallel:PartitionSpec",
    "RevisitMode": "specs",
    "ShapeDtypeStruct": "specs",
    "Slice": "indexing",
    "Squeezed": "specs",
    "align_to": "grid",
    "axis_index": "dma",
    "axis_size": "dma",
    "block_until_ready": "outside.helpers",
    "broadcast_to": "functions.shapes:_broadcast_to",
    "cdiv": "grid",
    "core_map": "outside.mesh",
    "custom_jvp": "outside.helpers",
    "custom_vjp": "outside.helpers",
    "debug_check": "functions.extras",
    "debug_print": "functions.extras",
    "default_matmul_precision": "outside.helpers",
    "default_platform": "outside.interpret",
    "delay": "functions.extras",
    "device_count": "outside.helpers",
    "device_get": "outside.helpers",
    "device_put": "outside.helpers",
    "devices": "outside.helpers",
    "ds": "indexing",
    "dslice": "indexing",
    "empty": "outside.helpers",
    "empty_like": "outside.helpers",
    "empty_ref": "outside.state",
    "empty_ref_like": "outside.state",
    "enable_debug_checks": "outside.helpers",
    "enable_poison_buffers": "outside.helpers",
    "estimate_cost": "outside.estimate",
    "freeze": "outside.state",
    "get_global": "outside.mesh",
    "jit": "outside.helpers",
    "kernel": "outside.mesh",
    "kernel_call": "call",
    "load": "refs:masked_load",
    "loop": "control",
    "lower_as_mlir": "outside.helpers",
    "make_mesh": "outside.helpers",
    "multiple_of": "indexing",
    "named_scope": "functions.extras",
    "new_ref": "outside.state",
    "next_power_of_2": "grid",
    "no_block_spec": "specs",
    "num_programs": "grid",
    "pallas_call": "call:kernel_call",
    "program_id": "grid",
    "reciprocal": "functions.arithmetic",
    "run_scoped": "control",
    "run_state": "outside.state",
    "select_ref": "choices",
    "semaphore": "scratch:semaphore",
    "semaphore_read": "dma",
    "semaphore_signal": "dma",
    "semaphore_wait": "dma",
    "shard_map": "outside.parallel",
    "squeezed": "specs",
    "store": "refs:masked_store",
    "strides_from_shape": "outside.helpers",
    "vmap": "outside.mapping",
    "when": "control",
    "with_scoped": "control",
}
"""Where each name is; with its own name there, if that is another."""

_MODULES = (
    *(
        "tpu",
        "numpy",
        "lax",
        "nn",
        "random",
        "debug",
        "scipy",
        "tree",
        "tree_util",
        "ad_checkpoint",
    ),
    *("dtypes", "sharding", "typing", "util"),
)
"""Modules that are there under this name, as under `jax`."""
_ALIASES = {"tree_util": "tree"}


def __getattr__(name: str) -> Any:
    """Names are imported when they are used: reading a kernel does not need the language."""
    if name == "InterpretParams":
        return _interpreter.InterpretParams
    if name == "Timeline":
        return _timeline.Timeline
    if name in _MODULES:
        return import_module(f"{__name__}.{_ALIASES.get(name, name)}")
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_elsewhere(name)}")
    module, _, path = place.partition(":")
    found: Any = import_module(f"mlirhlo.mosaic.language.{module}")
    for part in (path or name).split("."):
        found = getattr(found, part)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "ANY",
    "HOST",
    "Array",
    "BlockDim",
    "BlockSpec",
    "Blocked",
    "BoundedSlice",
    "Buffered",
    "CompilerParams",
    "CostEstimate",
    "DeviceIdType",
    "Element",
    "GridSpec",
    "Indirect",
    "InterpretParams",
    "Kernel",
    "KernelCall",
    "MemoryRef",
    "MemorySpace",
    "NamedSharding",
    "P",
    "RevisitMode",
    "ShapeDtypeStruct",
    "Slice",
    "Squeezed",
    "Timeline",
    "align_to",
    "axis_index",
    "axis_size",
    "block_until_ready",
    "broadcast_to",
    "cdiv",
    "core_map",
    "custom_jvp",
    "custom_vjp",
    "debug_check",
    "debug_print",
    "default_matmul_precision",
    "default_platform",
    "delay",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "ds",
    "dslice",
    "empty",
    "empty_like",
    "empty_ref",
    "empty_ref_like",
    "enable_debug_checks",
    "enable_poison_buffers",
    "estimate_cost",
    "freeze",
    "get_global",
    "jit",
    "kernel",
    "kernel_call",
    "load",
    "loop",
    "lower_as_mlir",
    "make_mesh",
    "multiple_of",
    "named_scope",
    "new_ref",
    "next_power_of_2",
    "no_block_spec",
    "num_programs",
    "pallas_call",
    "program_id",
    "reciprocal",
    "run_scoped",
    "run_state",
    "select_ref",
    "semaphore",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "shard_map",
    "squeezed",
    "store",
    "strides_from_shape",
    "vmap",
    "when",
    "with_scoped",
]


def _elsewhere(name: str) -> str:
    """Where else a name is, or what is called nearly so; as the end of an error."""
    if name.startswith("_"):
        return ""
    for other in _MODULES:
        found = import_module(f"{__name__}.{_ALIASES.get(other, other)}")
        if hasattr(found, name):
            return f"; it is in {__name__}.{other}"
    from difflib import get_close_matches

    near = get_close_matches(name, _PLACES, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
