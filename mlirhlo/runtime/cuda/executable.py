"""Modules compiled for a GPU: numpy arrays in, numpy arrays out, as `runtime.executable`'s for the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlirhlo.debug.options import wanted_passes
from mlirhlo.diagnostics import Diagnostic
from mlirhlo.formats import read_file
from mlirhlo.lowering.gpu.compiler import Edited, GpuProgram, compile_gpu
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.observer import SILENT, Observer
from mlirhlo.runtime.callbacks import Callbacks
from mlirhlo.runtime.cuda.arrays import Bound, run_on_device
from mlirhlo.runtime.cuda.driver import Driver
from mlirhlo.runtime.cuda.figures import KernelCost, KernelFigures, by_kernel, costs
from mlirhlo.runtime.cuda.libraries import library_meanings
from mlirhlo.runtime.cuda.runner import GpuRunner
from mlirhlo.runtime.cuda.simulated import SimulatedDriver
from mlirhlo.runtime.executable import Executable

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.options import Flags
    from mlirhlo.lowering.gpu.kernel import Launch
    from mlirhlo.simulator.report import Figures


def _texts(paths: Sequence[str]) -> list[str]:
    """Contents of files. Raises `HloError` HLO0503."""
    return [read_file(path)[0].decode(errors="replace") for path in paths]


class GpuExecutable(Executable):
    """PTX of a module on a driver, called as the module is."""

    __slots__ = ("_runner", "driver", "program")

    def __init__(self, program: GpuProgram, driver: Driver) -> None:
        """Loads the code."""
        self.program = program
        """What was compiled: PTX, kernels, steps."""
        self.driver = driver
        plan = program.plan
        meanings = library_meanings(plan, driver)
        callbacks = Callbacks(plan, warns=False, meanings=meanings) if plan.sites else None
        self._runner = GpuRunner(program, driver)
        self._start(plan, self._runner, callbacks)

    def on_device(self, *arguments: object, donate: bool = False) -> Any:
        """Runs on arrays in the GPU's memory, and leaves the result there: a `DeviceArray`, or a tuple of them.

        `arguments` are the leaves of the parameters: arrays that other libraries have on the same GPU are used where
        they are, others are copied there. `donate`: results that the module lets share a parameter's memory do so,
        and the array that was given there is overwritten; else they get a copy of it first. Raises `HloError`
        HLO0508 for what does not fit a parameter, HLO0822 and HLO0507 as the GPU's driver has it.
        """
        return run_on_device(self._runner, arguments, donate=donate)

    def bind(self, *arguments: object) -> Bound:
        """The program on arrays that stay the same, to be called often: `run = compiled.bind(x); run()`.

        Arguments as of `on_device`. From the second call on a program without control flow on the host replays a CUDA
        graph. Results that the module lets share a parameter's memory do.
        """
        return Bound(self._runner, arguments)

    @property
    def figures(self) -> list[KernelFigures]:
        """What kernels did on a simulated GPU so far, by entry point."""
        return by_kernel(self._launched())

    def costs(self) -> list[KernelCost]:
        """The same with registers, resident blocks and a modelled time; ptxas is called where it is installed."""
        return costs(self._launched(), self.program.ptx, self.program.device)

    def _launched(self) -> list[tuple[Launch, Figures]]:
        reports = getattr(self.driver, "reports", ())
        return [(launch, report.figures) for launch, report in reports]

    @property
    def findings(self) -> list[Diagnostic]:
        """What a simulated GPU found wrong with the kernels that ran so far."""
        reports = getattr(self.driver, "reports", ())
        return [
            self._runner.about(found, launch.entry)
            for launch, report in reports
            for found in report.findings
        ]


def compile_for_gpu(
    module: ModuleOp,
    device: GpuDevice,
    *,
    flags: Flags,
    observer: Observer = SILENT,
    checks: bool = True,
    seed: int = 0,
    driver: Driver | None = None,
) -> GpuExecutable:
    """An HLO module as PTX for a device, run by a driver, the simulator's where none is given.

    Errors as of `compile_gpu`.
    """
    options = flags.options
    edited = Edited(_texts(options.xla_gpu_llvm_ir_file), _texts(options.xla_gpu_ptx_file))
    program = compile_gpu(module, device, observer, wanted_passes(flags), edited)
    return GpuExecutable(program, driver or SimulatedDriver(device, checks=checks, seed=seed))
