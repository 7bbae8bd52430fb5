"""A kernel for GPUs as a module of the `mosaic_gpu` dialect, and its runs."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from mlirhlo.diagnostics import HloError, error
from mlirhlo.formats.mosaic.printer import print_kernel
from mlirhlo.importing import LATE
from mlirhlo.mosaic.language.specs import ShapeDtypeStruct

with LATE:
    from mlirhlo.mosaic.gpu import interpreter


_NO_ALIASES: Mapping[int, int] = MappingProxyType({})


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
        return "b200" if self.has_tensor_memory else "h100"

    @property
    def has_tensor_memory(self) -> bool:
        """Whether it uses the tensor memory of sm_100a."""
        return any("tmem" in op.name or "tcgen05" in op.name for op in self.body.walk())

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
        return interpreter.run(self, arrays)

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
