"""The passes that set schedules, one after the other as GPU code runs them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.dialects.structured import KernelOp
from mlirhlo.lowering.gpu.devices import DEFAULT, GpuDevice, device
from mlirhlo.lowering.schedule.attributes import SCHEDULE
from mlirhlo.lowering.schedule.contractions import map_contractions
from mlirhlo.lowering.schedule.flat_columns import flatten_columns
from mlirhlo.lowering.schedule.map_to_grid import map_to_grid
from mlirhlo.lowering.schedule.persistent_rows import persist_rows
from mlirhlo.lowering.schedule.quotients import approximate_quotients
from mlirhlo.lowering.schedule.row_chains import map_columns, map_rows
from mlirhlo.lowering.schedule.staged_elements import stage_elements
from mlirhlo.lowering.schedule.staged_rows import stage_rows
from mlirhlo.lowering.schedule.transposes.mapping import map_transposes
from mlirhlo.lowering.schedule.vectorize import vectorize


@dataclass(frozen=True)
class _SchedulePass(ModulePass):
    gpu: str = DEFAULT
    """The device, as `device` knows it."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """As xDSL calls a pass."""
        del ctx
        found = device(self.gpu)
        for kernel in op.ops:
            if isinstance(kernel, KernelOp):
                self.run(kernel, found)

    @abstractmethod
    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """Sets the schedules of one kernel."""


@dataclass(frozen=True)
class GpuMapRowsPass(_SchedulePass):
    """Schedules kernels that fold rows, and what follows, as launches that read each row once.

    Before:  `%m = structured.fold ins(%x) …`, `%r = structured.map ins(%x, %m) …` over rows and their elements
    After:   `%r = structured.map … {structured.schedule = {launch = 0, kind = "rows", row_threads = 64, …}}`
    Keeps: results, but for the order of sums. Needs: `structured-merge-maps`.
    """

    name = "gpu-map-rows"

    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """As the class says."""
        map_rows(kernel, gpu)


@dataclass(frozen=True)
class GpuStageRowsPass(_SchedulePass):
    """Lets blocks bring short rows to shared memory together, in whole sectors.

    Before:  `%r = structured.fold … {structured.schedule = {launch = 0, kind = "rows", row_threads = 4, …}}`
    After:   `%r = structured.fold … {structured.schedule = {launch = 0, kind = "staged_rows", …}}`
    Keeps: results, but for the order of sums. Needs: `gpu-map-rows`.
    """

    name = "gpu-stage-rows"

    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """As the class says."""
        stage_rows(kernel, gpu)


@dataclass(frozen=True)
class GpuPersistRowsPass(_SchedulePass):
    """Lets blocks compute several rows in turn, where all rows read the same, as the scales of a norm.

    Before:  `%r = structured.map … {structured.schedule = {launch = 0, kind = "rows", threads = 256, …}}`
    After:   `%r = structured.map … {structured.schedule = {launch = 0, kind = "rows", threads = 1024, …, rounds = 3}}`
    Keeps: results, bit for bit. Needs: `gpu-map-rows`, `gpu-stage-rows`, which takes the short ones.
    """

    name = "gpu-persist-rows"

    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """As the class says."""
        persist_rows(kernel, gpu)


@dataclass(frozen=True)
class GpuMapColumnsPass(_SchedulePass):
    """Schedules kernels that fold outer dimensions: neighbouring columns by neighbouring threads.

    Before:  `%r = structured.fold ins(%x) maps [affine_map<(d0, d1) -> (d1, d0)>] …`
    After:   `%r = structured.fold … {structured.schedule = {launch = 0, kind = "columns", …}}`
    Keeps: results, but for the order of sums. Needs: `gpu-map-rows`, which leaves these kernels alone.
    """

    name = "gpu-map-columns"

    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """As the class says."""
        map_columns(kernel, gpu)


@dataclass(frozen=True)
class GpuFlattenColumnsPass(_SchedulePass):
    """Lets blocks read whole rows as they lie in memory, where rows of the columns end within sectors.

    Before:  `%r = structured.fold … {structured.schedule = {launch = 0, kind = "columns", …}}`
    After:   `%r = structured.fold … {structured.schedule = {launch = 0, kind = "flat_columns", …}}`
    Keeps: results, but for the order of sums. Needs: `gpu-map-columns`.
    """

    name = "gpu-flatten-columns"

    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """As the class says."""
        flatten_columns(kernel, gpu)


@dataclass(frozen=True)
class GpuMapToGridPass(_SchedulePass):
    """Decides which ops are launched, a thread an element; others are computed where they are read.

    Before:  `%r = structured.map ins(%x) …`
    After:   `%r = structured.map … {structured.schedule = {launch = 0, kind = "elements"}}`
    Keeps: results, bit for bit. Needs: nothing; leaves kernels alone that have schedules.
    """

    name = "gpu-map-to-grid"

    deterministic: bool = False
    """Whether results must not depend on the order in which threads run."""

    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """As the class says."""
        map_to_grid(kernel, gpu, deterministic=self.deterministic or gpu.is_deterministic)


@dataclass(frozen=True)
class GpuMapContractionsPass(_SchedulePass):
    """Makes launches of large contractions launches of tiles, on matrix units where the types allow.

    Before:  `%r = structured.contract … {structured.schedule = {launch = 0, kind = "elements"}}`
    After:   `%r = structured.contract … {structured.schedule = {launch = 0, kind = "mma", rows = 64, columns = 64, …}}`
    Keeps: results, but for the order of sums. Needs: `gpu-map-to-grid`.
    """

    name = "gpu-map-contractions"

    tf32: bool = False
    """Whether factors of f32 may be rounded to tf32, as cuBLAS does for XLA at the default precision."""

    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """As the class says."""
        map_contractions(kernel, gpu, tf32=self.tf32)


@dataclass(frozen=True)
class GpuMapTransposesPass(_SchedulePass):
    """Makes elementwise launches that read across rows go through boxes of shared memory.

    `pitches` and `swizzle` say where elements of a box are, so that no warp accesses a bank twice at once. Where no
    layout does that, boxes are copied to a second array (`written`), by `lanes` of a warp along each dimension.

    Before:  `%r = structured.map ins(%x) maps [affine_map<(d0, d1) -> (d1, d0)>] {… kind = "elements"}`
    After:   `%r = structured.map … {… kind = "transpose", threads = 256, tile = array<i64: 32, 32>}`
    Keeps: results, bit for bit. Needs: `gpu-map-to-grid`.
    """

    name = "gpu-map-transposes"

    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """As the class says."""
        map_transposes(kernel, gpu)


@dataclass(frozen=True)
class GpuStageElementsPass(_SchedulePass):
    """Stages what elements read in shared memory, where reads begin within sectors or overlap.

    Before:  `%r = structured.assemble … offsets [array<i64: 1, 1>] … {… kind = "elements"}`
    After:   `%r = structured.assemble … {… kind = "staged_elements", threads = 256, tile = array<i64: 8, 128>}`
    Keeps: results, bit for bit. Needs: `gpu-map-to-grid`, `gpu-map-transposes`, which reads across memory.
    """

    name = "gpu-stage-elements"

    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """As the class says."""
        del gpu
        stage_elements(kernel)


@dataclass(frozen=True)
class GpuVectorizePass(_SchedulePass):
    """Lets threads of elementwise launches compute neighbours of 16 bytes, where all reads allow it.

    Before:  `%r = structured.map … {structured.schedule = {launch = 0, kind = "elements"}}`
    After:   `%r = structured.map … {structured.schedule = {launch = 0, kind = "elements", vector = 4}}`
    Keeps: results, bit for bit. Needs: `gpu-map-to-grid`.
    """

    name = "gpu-vectorize"

    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """As the class says."""
        del gpu
        vectorize(kernel)


@dataclass(frozen=True)
class GpuApproximateQuotientsPass(_SchedulePass):
    """Divides approximately, to two units in the last place, where an operand is a rounded number.

    Before:  `%e = hlo.exponential %x`, `%q = hlo.divide %e, %s`
    After:   `%q = hlo.divide %e, %s {structured.ulp = 2 : i64}`
    Keeps: results, but for rounding of what is rounded already. Needs: nothing to have run.
    """

    name = "gpu-approximate-quotients"

    def run(self, kernel: KernelOp, gpu: GpuDevice) -> None:
        """As the class says."""
        del gpu
        approximate_quotients(kernel)


SCHEDULE_PASSES: tuple[type[_SchedulePass], ...] = (
    GpuApproximateQuotientsPass,
    GpuMapRowsPass,
    GpuStageRowsPass,
    GpuPersistRowsPass,
    GpuMapColumnsPass,
    GpuFlattenColumnsPass,
    GpuMapToGridPass,
    GpuMapContractionsPass,
    GpuMapTransposesPass,
    GpuStageElementsPass,
    GpuVectorizePass,
)
"""In the order in which they run."""


def schedule(kernel: KernelOp, gpu: GpuDevice) -> None:
    """Runs the passes on a kernel; leaves one alone in which an op has a schedule."""
    if any(SCHEDULE in op.attributes for op in kernel.block.ops):
        return
    for pass_ in SCHEDULE_PASSES:
        pass_().run(kernel, gpu)
