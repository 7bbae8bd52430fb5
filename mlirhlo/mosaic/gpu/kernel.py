"""`kernel`: a function of references as a kernel for GPUs, written down once, run by the interpreter or as PTX."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FunctionType, IndexType, ModuleOp, StringAttr, i32
from xdsl.ir import Block, Region

from mlirhlo.diagnostics import error
from mlirhlo.mosaic.gpu.allocator import Allocator, scope
from mlirhlo.mosaic.gpu.module import GpuKernel, Launch
from mlirhlo.mosaic.gpu.refs import GpuRef, memref_of, whole
from mlirhlo.mosaic.language.elements import I32, as_dtype, element_type
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.functions.arithmetic import div, rem
from mlirhlo.mosaic.language.outside.interpret import platform_of
from mlirhlo.mosaic.language.specs import ShapeDtypeStruct
from mlirhlo.mosaic.language.trace import (
    Trace,
    attribute,
    current,
    emit,
    emit_one,
    int_attr,
    ints,
    parameter_names,
    tracing,
)
from mlirhlo.mosaic.language.tree import flatten
from mlirhlo.mosaic.language.value import Value


@dataclass(frozen=True, slots=True)
class GpuKernelCall:
    """What `kernel` gives: called on arrays it runs, `lower` gives the kernel for types."""

    body: Callable[..., None]
    out_types: Any
    launch: Launch
    scratch: Any
    name: str
    platform: str | None
    gpu: str = "h100"

    def lower(self, *types: Any) -> GpuKernel:
        """The kernel for arrays or `ShapeDtypeStruct`s."""
        structs = tuple(ShapeDtypeStruct(one.shape, as_dtype(one.dtype)) for one in types)
        leaves, _ = flatten(self.out_types)
        results = tuple(ShapeDtypeStruct(one.shape, as_dtype(one.dtype)) for one in leaves)
        return _written(self, structs, results)

    def __call__(self, *arrays: Any) -> Any:
        """The results, by the interpreter; with `platform="cuda"` as PTX, as `GpuKernel.run`."""
        held = [np.asarray(array) for array in arrays]
        kernel = self.lower(*held)
        platform = platform_of(self.platform)
        if platform in ("cuda", "gpu"):
            found = kernel.run(*held, gpu=self.gpu)
        elif platform == "interpreter":
            found = kernel.interpret(*held)
        else:
            raise error(
                "HLO0720",
                f"kernels for GPUs do not run on {platform!r}",
                help="use interpreter or cuda",
            )
        return flatten(self.out_types)[1](found)


def _ready(launch: Launch) -> None:
    """Every thread sees the barriers: of the block, or of the cluster."""
    emit("nvvm.fence.mbarrier.init")
    emit("gpu.barrier")
    if launch.cluster_size > 1:
        emit("nvvm.cluster.arrive")
        emit("nvvm.cluster.wait")


def _written(
    call: GpuKernelCall, inputs: tuple[ShapeDtypeStruct, ...], results: tuple[ShapeDtypeStruct, ...]
) -> GpuKernel:
    launch = call.launch
    arrays = (*inputs, *results)
    types = [memref_of(one.shape, element_type(one.dtype), "gmem") for one in arrays]
    block = Block(arg_types=types)
    trace = Trace(block)
    allocator = Allocator(launch)
    names = parameter_names(call.body)
    with tracing(trace):
        axes = _axes(launch)
        trace.names = {name: at for at, name in enumerate(axes)}
        trace.grid_indices = tuple(axes.values())
        trace.grid = (*launch.grid, *launch.cluster, launch.num_threads)
        trace.cache.update(
            allocate=allocator,
            scope=lambda: scope(allocator),
            thread=trace.grid_indices[-1],
            cluster=list(launch.cluster_names),
            cluster_sizes=list(launch.cluster),
            ready=lambda: _ready(launch),
            depth=0,
        )
        refs = [
            GpuRef(argument, tuple(one.shape), one.dtype, "gmem", whole(one.shape))
            for argument, one in zip(block.args, arrays, strict=True)
        ]
        for argument, name in zip(block.args, names, strict=False):
            argument.name_hint = name
        scratch, named = _asked(call.scratch, allocator, names[len(refs) :])
        if allocator.tensors:
            emit("mosaic_gpu.tmem_relinquish_alloc_permit")
        allocator.head = trace.block.last_op
        _ready(launch)
        allocator.is_started = True
        trace.cache.pop("barriers_made", None)
        call.body(*refs, *scratch, **named)
        allocator.end()
        if launch.cluster_size > 1:
            # No block ends while others of its cluster may reach its shared memory.
            emit("nvvm.cluster.arrive")
            emit("nvvm.cluster.wait")
        emit("func.return")
    return GpuKernel(_module(call, block, allocator), call.name, inputs, results, launch)


def _asked(scratch: Any, allocator: Allocator, names: Sequence[str]) -> Any:
    """References for scratch types, by position or by name."""

    def made(tree: Any, name: str | None) -> Any:
        leaves, rebuild = flatten(tree)
        return rebuild([allocator(leaf, name) for leaf in leaves])

    if isinstance(scratch, Mapping):
        return (), {name: made(tree, name) for name, tree in scratch.items()}
    titles = [*names, *[None] * len(scratch)]
    return [made(tree, title) for tree, title in zip(scratch, titles, strict=False)], {}


def _axes(launch: Launch) -> dict[str, Value]:
    """Where this warp group is along every axis."""

    def identity(op: str) -> Value:
        index = emit_one(op, [], IndexType(), {"dimension": attribute("#gpu<dim x>")})
        return Value(emit_one("arith.index_cast", [index], i32), (), I32)

    block = identity("gpu.block_id")
    current().natural.add(block.ssa)
    found: dict[str, Value] = {}
    groups = (
        (launch.grid, launch.grid_names, div(block, launch.cluster_size)),
        (launch.cluster, launch.cluster_names, rem(block, launch.cluster_size)),
    )
    for sizes, names, number in groups:
        after = prod(sizes)
        for dim, size in enumerate(sizes):
            after //= size
            name = names[dim] if dim < len(names) else f"grid {dim}"
            at = number if after == 1 else div(number, after)
            found[name] = rem(at, size) if dim else at
    thread = identity("gpu.thread_id")
    current().natural.add(thread.ssa)
    found[launch.thread_name or "warp group"] = div(thread, 128)
    return found


def _module(call: GpuKernelCall, block: Block, allocator: Allocator) -> ModuleOp:
    launch = call.launch
    function = emit_function(call.name, block)
    sizes = {
        "grid": (launch.blocks,),
        "cluster": (launch.cluster_size,),
        "cluster_shape": launch.cluster,
        "threads": (launch.num_threads * 128,),
        "shared_bytes": (allocator.most,),
    }
    for name, numbers in sizes.items():
        function.attributes[f"mosaic_gpu.{name}"] = ints(numbers)
    attributes = {
        "sym_name": StringAttr(call.name),
        "mosaic_gpu.arch_major": int_attr(10 if allocator.tensors else 9),
        "mosaic_gpu.arch_minor": int_attr(0),
    }
    module = ModuleOp([function])
    module.properties["sym_name"] = attributes.pop("sym_name")
    module.attributes.update(attributes)
    return module


def emit_function(name: str, block: Block) -> Any:
    """The function around a block."""
    from xdsl.dialects.func import FuncOp

    types = FunctionType.from_lists([argument.type for argument in block.args], [])
    return FuncOp(name, types, Region(block))


def kernel(
    body: Callable[..., None] | None = None,
    out_type: Any = None,
    *,
    out_shape: Any = None,
    scratch_types: Any = (),
    scratch_shapes: Any = (),
    grid: Sequence[int] = (),
    grid_names: Sequence[str] = (),
    cluster: Sequence[int] = (),
    cluster_names: Sequence[str] = (),
    num_threads: int | None = None,
    thread_name: str | None = None,
    compiler_params: Any = None,
    interpret: Any = None,
    name: str | None = None,
    platform: str | None = None,
    gpu: str = "h100",
) -> Any:
    """A kernel: `body` gets references to operands and results in GMEM, then to scratch; also a decorator.

    A block has `num_threads` warp groups. `platform="cuda"` runs PTX: on the simulator of a device, or with
    `gpu="cuda"` on a GPU of this machine.
    """
    del compiler_params, interpret
    types = out_type if out_type is not None else out_shape
    if body is None:
        return lambda function: kernel(
            function,
            types,
            scratch_types=scratch_types or scratch_shapes,
            grid=grid,
            grid_names=grid_names,
            cluster=cluster,
            cluster_names=cluster_names,
            num_threads=num_threads,
            thread_name=thread_name,
            name=name,
            platform=platform,
            gpu=gpu,
        )
    if types is None:
        raise bad_spec("a kernel without out_type", "give the shapes and types of its results")
    for sizes, names, what in ((grid, grid_names, "grid"), (cluster, cluster_names, "cluster")):
        if names and len(names) != len(sizes):
            raise bad_spec(f"{len(names)} names for a {what} of {len(sizes)} dimensions")
    launch = Launch(
        tuple(grid),
        tuple(grid_names),
        tuple(cluster),
        tuple(cluster_names),
        num_threads or 1,
        thread_name,
    )
    if launch.num_threads > 8 or launch.cluster_size > 16:
        raise bad_spec(
            f"{launch.num_threads} warp groups in clusters of {launch.cluster_size}",
            "at most 8, 16",
        )
    title = str(name or getattr(body, "__name__", "kernel"))
    title = title if title.isidentifier() else "kernel"
    return GpuKernelCall(body, types, launch, scratch_types or scratch_shapes, title, platform, gpu)
