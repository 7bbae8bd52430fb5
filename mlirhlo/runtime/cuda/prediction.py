"""Predicted times of a program's kernels at sizes that no simulator runs: a few blocks of each launch are simulated.

    for kernel in predicted(executable.program):
        print(kernel.kernel.entry, kernel.nanoseconds, kernel.bound)

The figures of these blocks, times the blocks of the grid, are what `simulator.performance` models. Values are zeros:
programs whose control flow depends on values are not for this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from mlirhlo.lowering.gpu.compiler import GpuProgram
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.kernel import Launch
from mlirhlo.runtime.cuda.driver import Bytes
from mlirhlo.runtime.cuda.figures import KernelCost, costs
from mlirhlo.runtime.cuda.runner import GpuRunner
from mlirhlo.runtime.cuda.simulated import SimulatedDriver
from mlirhlo.simulator.memory import GLOBAL_BASE, INITIALISED
from mlirhlo.simulator.program import Program
from mlirhlo.simulator.report import Figures, LaunchReport, Traffic


class SampledDriver(SimulatedDriver):
    """A simulated GPU that runs the first blocks of each launch, and reports the figures of all."""

    def __init__(self, device: GpuDevice, blocks: int) -> None:
        """`blocks`: of a launch, at most, but a whole cluster."""
        super().__init__(device)
        self._blocks = blocks

    def allocate(self, size: int, name: str) -> int:
        """As `Driver`; memory holds zeros."""
        return self.machine.arena.allocate(max(size, 1), name, INITIALISED) + GLOBAL_BASE

    def write(self, address: int, data: Bytes) -> None:
        """As `Driver`: values do not matter."""

    def launch(self, code: Program, launch: Launch, addresses: Sequence[int]) -> None:
        """As `Driver`."""
        wide = launch.cluster[0] * max(1, self._blocks // prod(launch.cluster))
        grid = (min(launch.grid[0], wide), launch.cluster[1], launch.cluster[2])
        super().launch(code, replace(launch, grid=grid), addresses)
        _, report = self.reports.pop()
        scale = prod(launch.grid) / prod(grid)
        self.reports.append((launch, LaunchReport((), scaled(report.figures, scale))))


def scaled(figures: Figures, scale: float) -> Figures:
    """Figures of more blocks of the same kind; the buffers stay what they are."""

    def more(traffic: Traffic) -> Traffic:
        return Traffic(
            *(
                round(count * scale)
                for count in (
                    traffic.requests,
                    traffic.sectors,
                    traffic.bank_conflicts,
                    traffic.bytes_read,
                    traffic.bytes_written,
                )
            )
        )

    return Figures(
        {name: round(count * scale) for name, count in figures.instructions.items()},
        round(figures.warp_instructions * scale),
        more(figures.global_memory),
        more(figures.shared_memory),
        {name: count * scale for name, count in figures.units.items()},
        round(figures.warps * scale),
        figures.buffer_bytes,
    )


def predicted(program: GpuProgram, blocks: int = 4) -> list[KernelCost]:
    """The costs of a program's kernels, by the first `blocks` blocks of each launch."""
    driver = SampledDriver(program.device, blocks)
    plan = program.plan
    parameters = [driver.allocate(one.size, "parameter") for one in plan.parameters]
    results = [
        parameters[one.alias.parameter]
        if one.alias is not None and one.alias.parameter is not None
        else driver.allocate(one.size, "result")
        for one in plan.results
    ]
    GpuRunner(program, driver).run_in_memory(parameters, results)
    return costs(
        [(launch, report.figures) for launch, report in driver.reports], program.ptx, program.device
    )


def predicted_launch(
    ptx: str, launch: Launch, sizes: Sequence[int], device: GpuDevice, blocks: int = 4
) -> list[KernelCost]:
    """The cost of one launch, whose parameters are buffers of so many bytes."""
    driver = SampledDriver(device, blocks)
    addresses = [driver.allocate(size, "parameter") for size in sizes]
    driver.launch(driver.load(ptx, "kernel.ptx"), launch, addresses)
    ((_, report),) = driver.reports
    return costs([(launch, report.figures)], {launch.entry: ptx}, device)
