"""Modules compiled for a GPU: numpy arrays in, numpy arrays out, as `runtime.executable`'s for the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.debug.options import wanted_passes
from mlirhlo.lowering.gpu.compiler import GpuProgram, compile_gpu
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.observer import SILENT, Observer
from mlirhlo.runtime.callbacks import Callbacks
from mlirhlo.runtime.cuda.driver import Driver
from mlirhlo.runtime.cuda.runner import GpuRunner
from mlirhlo.runtime.cuda.simulated import SimulatedDriver
from mlirhlo.runtime.executable import Executable

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.options import Flags


class GpuExecutable(Executable):
    """PTX of a module on a driver, called as the module is."""

    __slots__ = ("driver", "program")

    def __init__(self, program: GpuProgram, driver: Driver) -> None:
        self.program = program
        """What was compiled: PTX, kernels, steps."""
        self.driver = driver
        plan = program.plan
        callbacks = Callbacks(plan, warns=False) if plan.sites else None
        self._start(plan, GpuRunner(program, driver), callbacks)


def compile_for_gpu(
    module: ModuleOp,
    device: GpuDevice,
    *,
    flags: Flags,
    observer: Observer = SILENT,
    checks: bool = True,
    seed: int = 0,
) -> GpuExecutable:
    """An HLO module as PTX for a device, on the simulator. Errors as of `compile_gpu`."""
    program = compile_gpu(module, device, observer, wanted_passes(flags))
    return GpuExecutable(program, SimulatedDriver(device, checks=checks, seed=seed))
