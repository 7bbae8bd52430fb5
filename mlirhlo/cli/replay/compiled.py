"""`run_hlo_module --platform=CPU` and `CUDA`: modules compiled, each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlirhlo.importing import LATE
from mlirhlo.lowering.observer import SILENT, Observer

with LATE:
    from mlirhlo.interp import machine
    from mlirhlo.runtime import compiler


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.options import Flags
    from mlirhlo.debug.replay import Inputs
    from mlirhlo.diagnostics import Diagnostic
    from mlirhlo.interp.registry import Value
    from mlirhlo.runtime.cuda.executable import GpuExecutable
    from mlirhlo.runtime.cuda.figures import KernelCost
    from mlirhlo.runtime.executable import Executable

CPU, CUDA = COMPILED = ("CPU", "CUDA")
"""Names of platforms, as XLA's tools say them."""


@dataclass(slots=True)
class Compiled:
    """What was compiled so far."""

    executables: dict[tuple[str, ModuleOp], Executable] = field(
        default_factory=dict["tuple[str, ModuleOp]", "Executable"]
    )
    """By platform and module."""
    flags: Flags | None = None
    """XLA's, of the command line."""
    debug: bool = False
    """Whether every access of memory is checked."""
    gpu: str = ""
    """The GPU that is simulated, by name."""

    def prepare(
        self,
        module: ModuleOp,
        inputs: Inputs,
        seed: int = 42,
        observer: Observer = SILENT,
        platform: str = CPU,
    ) -> Callable[[], list[Value]]:
        """Compiles the module; what is returned runs it on each device's inputs.

        `seed`: of `rng` instructions. `observer` is told of the compilation.
        Raises `HloError` HLO0432 and HLO0435 for what has no code.
        """
        executable = self.executables.get((platform, module))
        if executable is None:
            executable = self.executables[platform, module] = compiler.compile_module(
                module,
                platform,
                debug=self.debug,
                flags=self.flags,
                observer=observer,
                gpu=self.gpu,
            )
        devices = inputs.replicas, inputs.partitions
        return lambda: executable.run_devices(
            machine.Machine(*devices, seed=seed), inputs.per_device
        )

    def _simulated(self) -> list[GpuExecutable]:
        """Executables of simulated GPUs."""
        return [e for e in self.executables.values() if hasattr(e, "findings")]  # type: ignore[misc]

    def findings(self) -> list[Diagnostic]:
        """What the simulator found wrong with the kernels that ran."""
        return [found for executable in self._simulated() for found in executable.findings]

    def costs(self) -> list[KernelCost]:
        """What the simulated kernels did, and would take of a GPU."""
        return [kernel for executable in self._simulated() for kernel in executable.costs()]
