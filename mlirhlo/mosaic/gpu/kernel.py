"""`kernel`: a function of references as a kernel for GPUs, written down once, run by the interpreter or as PTX."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FunctionType, IndexType, ModuleOp, StringAttr, i32
from xdsl.ir import Block, Region, SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.mosaic_gpu.attributes import SwizzleAttr, TileAttr
from mlirhlo.formats.mosaic.printer import print_kernel
from mlirhlo.mosaic.gpu.memory import Barrier, ClusterBarrier, Scratch, Start, WGMMAAccumulatorRef
from mlirhlo.mosaic.gpu.refs import GpuRef, memref_of, store, whole
from mlirhlo.mosaic.language.elements import I32, as_dtype, element_type
from mlirhlo.mosaic.language.faults import bad_memory, bad_spec
from mlirhlo.mosaic.language.interpret import platform_of
from mlirhlo.mosaic.language.specs import ShapeDtypeStruct
from mlirhlo.mosaic.language.trace import (
    SEGMENTS,
    Trace,
    attribute,
    current,
    emit,
    emit_one,
    flag,
    int_attr,
    ints,
    parameter_names,
    tracing,
)
from mlirhlo.mosaic.language.tree import flatten
from mlirhlo.mosaic.language.value import Value, constant

ALIGNMENT = 1024
_NO_ALIASES: Mapping[int, int] = MappingProxyType({})
TENSOR_COLUMNS = 512
"""Columns of tensor memory of sm_100a."""
SHARED_BYTES = 227 << 10
"""Shared memory of a block of sm_90a."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is launched. Grids of any rank are numbered along x, blocks of a cluster fastest."""

    grid: tuple[int, ...] = ()
    grid_names: tuple[str, ...] = ()
    cluster: tuple[int, ...] = ()
    cluster_names: tuple[str, ...] = ()
    num_threads: int = 1
    thread_name: str | None = None
    sizes: tuple[int, int, int] | None = None
    """Blocks by x, y and z, of a launch that does not number them along x."""

    @property
    def block_dims(self) -> tuple[int, int, int]:
        """Blocks by x, y and z."""
        return self.sizes or (self.blocks, 1, 1)

    @property
    def cluster_dims(self) -> tuple[int, int, int]:
        """Blocks of a cluster by x, y and z."""
        x, y, z = self.cluster if self.sizes else (self.cluster_size, 1, 1)
        return x, y, z

    @property
    def cluster_strides(self) -> tuple[int, ...]:
        """How far apart in their cluster blocks are that are neighbours along each of its axes."""
        if self.sizes:
            return tuple(prod(self.cluster[:dim]) for dim in range(len(self.cluster)))
        return tuple(prod(self.cluster[dim + 1 :]) for dim in range(len(self.cluster)))

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster."""
        return prod(self.cluster)

    @property
    def blocks(self) -> int:
        """Blocks of the grid, all clusters together."""
        return prod(self.grid) * self.cluster_size


@dataclass(slots=True, eq=False)
class GpuKernel:
    """A kernel as a module of the `mosaic_gpu` dialect."""

    module: ModuleOp
    name: str
    inputs: tuple[ShapeDtypeStruct, ...]
    results: tuple[ShapeDtypeStruct, ...]
    launch: Launch
    maps: tuple[Any, ...] = ()
    """What the function's last arguments, tensor maps, describe."""
    _compiled: dict[str, Any] = field(default_factory=dict[str, Any])

    def as_text(self, form: Any = "pretty", *, debug_info: bool = False) -> str:
        """The module as MLIR prints it."""
        return print_kernel(self.module, form=form, debug_info=debug_info)

    @property
    def body(self) -> Block:
        """The code of a block."""
        (function,) = self.module.ops
        return function.regions[0].blocks[0]

    @property
    def default_gpu(self) -> str:
        """A device that has what the kernel uses."""
        return "b200" if any("tmem" in op.name for op in self.body.walk()) else "h100"

    @property
    def is_of_threads(self) -> bool:
        """Whether it is written for single threads, as JAX lowers kernels, not for warp groups."""
        return not any(op.name.startswith("mosaic_gpu.") for op in self.body.walk())

    def ptx(self, gpu: str = "h100") -> str:
        """The kernel as PTX. Raises `HloError` HLO0758 for what has no code."""
        return str(self.compiled(gpu).ptx)

    def compiled(self, gpu: str = "h100") -> Any:
        """The kernel's code for a device, with how it is launched; `cuda` is the GPU of this machine."""
        if gpu not in self._compiled:
            lowering = import_module("mlirhlo.lowering.mosaic_gpu")
            self._compiled[gpu] = lowering.compile_kernel(self, gpu)
            # Flags are read by a package above this one.
            options = import_module("mlirhlo.debug.options").process_flags().options
            if options.xla_mosaic_dump_to:
                self.dump(options.xla_mosaic_dump_to, gpu)
        return self._compiled[gpu]

    def dump(self, directory: str, gpu: str = "h100") -> tuple[Path, ...]:
        """Writes the stages: the module, LLVM assembly, PTX. Raises `HloError` HLO0752 where it cannot."""
        code = self.compiled(gpu)
        texts = {"0.mosaic_gpu.mlir": self.as_text(), "1.ll": code.llvm, "2.ptx": code.ptx}
        if directory == "-":
            for stage, text in texts.items():
                sys.stdout.write(f"*** {self.name}.{stage} ***\n{text}\n")
            return ()
        written = tuple(Path(directory, f"{self.name}.{stage}") for stage in texts)
        try:
            Path(directory).mkdir(parents=True, exist_ok=True)
            for path, text in zip(written, texts.values(), strict=True):
                path.write_text(text)
        except OSError as problem:
            raise error("HLO0752", f"{directory}: {problem.strerror}") from None
        return written

    def interpret(self, *arrays: Any) -> list[Any]:
        """The results by the interpreter of the language."""
        from mlirhlo.mosaic.gpu.interpreter import run

        return run(self, arrays)

    def simulate(
        self,
        *arrays: Any,
        gpu: str = "h100",
        ptx: str | None = None,
        seed: int = 0,
        aliases: Mapping[int, int] = _NO_ALIASES,
    ) -> Simulated:
        """The results as PTX on the simulator, and what it finds wrong; `ptx` in place of the kernel's own.

        `aliases`: by the number of a result the operand whose memory it takes.
        """
        return Simulated(*self.compiled(gpu).simulate(self, arrays, ptx, seed, aliases))

    def run(
        self, *arrays: Any, gpu: str = "cuda", aliases: Mapping[int, int] = _NO_ALIASES
    ) -> list[Any]:
        """The results on a GPU of this machine, or on the simulator of a device, whose findings are raised.

        `aliases`: as for `simulate`.

        Raises `HloError` as `mlirhlo.compile` does for the platform cuda.
        """
        driver = import_module("mlirhlo.lowering.mosaic_gpu").driver_of(gpu)
        if driver is not None:
            found: list[Any] = self.compiled(gpu).run(self, arrays, driver, aliases=aliases)
            return found
        simulated = self.simulate(*arrays, gpu=gpu, aliases=aliases)
        if simulated.findings:
            raise HloError(*simulated.findings)
        return simulated.results


@dataclass(frozen=True, slots=True)
class Simulated:
    """A run on the simulator."""

    results: list[Any]
    findings: tuple[Any, ...]
    """Diagnostics of races, missing waits and other faults."""
    figures: Any


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


class _Allocator:
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
def _scope(allocator: _Allocator) -> Any:
    before = allocator.top
    yield
    allocator.top = before


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
    allocator = _Allocator(launch)
    names = parameter_names(call.body)
    with tracing(trace):
        axes = _axes(launch)
        trace.names = {name: at for at, name in enumerate(axes)}
        trace.grid_indices = tuple(axes.values())
        trace.grid = (*launch.grid, *launch.cluster, launch.num_threads)
        trace.cache.update(
            allocate=allocator,
            scope=lambda: _scope(allocator),
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


def _asked(scratch: Any, allocator: _Allocator, names: Sequence[str]) -> Any:
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
    from mlirhlo.mosaic.language.arithmetic import div, rem

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


def _module(call: GpuKernelCall, block: Block, allocator: _Allocator) -> ModuleOp:
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
