"""One compilation and its runs, dumped: the observer that every compile path gives its stages to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mlirhlo.debug.dump import names
from mlirhlo.debug.dump.passes import PassDumper
from mlirhlo.debug.dump.writer import ModuleDump, start
from mlirhlo.debug.options import Flags, process_flags
from mlirhlo.debug.options.process import report
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.importing import LATE
from mlirhlo.lowering.observer import SILENT, Observer

with LATE:
    from mlirhlo.debug.dump import assignment, execution, fusions, gpu, kernels, mosaic, protos
    from mlirhlo.debug.dump import inputs as inputs_module


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.dump.assignment import Assignment
    from mlirhlo.debug.replay import Inputs
    from mlirhlo.lowering.gpu.devices import GpuDevice
    from mlirhlo.lowering.plan.plan import Plan
    from mlirhlo.lowering.plan.planner import Values
    from mlirhlo.rewrites.pipeline import Instrumentation


def flags_for(options: Mapping[str, object] | None) -> Flags:
    """The flags of one compilation: the environment's, under its compile options.

    Raises `HloError` HLO0520, HLO0521, HLO0524.
    """
    flags = process_flags()
    if options:
        flags = flags.with_compile_options(options)
        report(flags)
    return flags


def observe(
    module: ModuleOp,
    flags: Flags | None = None,
    target: str = "",
    program: ModuleOp | None = None,
    device: GpuDevice | None = None,
) -> Observer:
    """Who is told of the stages of a compilation for `target`: `cpu`, `gpu`, `interpreter`, or empty
    for a tool that only runs passes. `device`: the GPU.

    `flags` are those of the environment when None; `program` is the StableHLO that the module was
    made of. Raises `HloError` HLO0520, HLO0521.
    """
    found = dumping(module, flags, target, program, device)
    return SILENT if found is None else found


def dumping(
    module: ModuleOp,
    flags: Flags | None = None,
    target: str = "",
    program: ModuleOp | None = None,
    device: GpuDevice | None = None,
) -> CompilationDump | None:
    """The same as it is for those who have no use for one that does nothing. Kernels that the module
    calls are dumped at once.
    """
    flags = process_flags() if flags is None else flags
    mosaic.dump_kernels(module, flags.options)
    dump = start(HloModule(module).name, flags)
    return None if dump is None else CompilationDump(dump, target, program, device)


class CompilationDump(Observer):
    """Writes what it is told of."""

    def __init__(
        self,
        dump: ModuleDump,
        target: str,
        program: ModuleOp | None = None,
        device: GpuDevice | None = None,
    ) -> None:
        self.dump, self.target, self.program, self.device = dump, target, program, device
        self._units = 0
        """How many files of LLVM IR and PTX there are, by XLA's count."""
        self.pass_dumper = PassDumper(dump)
        self._is_given = False
        self.executions = execution.Executions(dump, target)

    def passes(self) -> Sequence[Instrumentation]:
        """As `Observer`."""
        return (self.pass_dumper,)

    def given(self, module: ModuleOp) -> None:
        """As `Observer`; only the first one counts, which passes of a tool may precede."""
        if self._is_given:
            return
        self._is_given = True
        if self.target:
            inputs_module.dump_inputs(self.dump, module, self.program)
        self.executions.given(module)
        self.dump.fixed(module, names.BEFORE_OPTIMIZATIONS)

    def optimized(self, module: ModuleOp) -> None:
        """The module after the last pass, where no plan is made of it."""
        self.executions.compiled(module)
        self.dump.fixed(module, self._after)
        self._fusions(module)
        self._metadata()

    def planned(self, module: ModuleOp, plan: Plan, values: Values) -> None:
        """As `Observer`."""

        def reports() -> Assignment:
            return assignment.assign(module, plan, values)

        self.executions.compiled(module)
        self.dump.fixed(module, self._after, reports)
        if self.device is None:
            kernels.dump_thunks(self.dump, plan)
        else:
            gpu.dump_plan(self.dump, plan, self.device)
        self._fusions(module)
        self._metadata()

    @property
    def _after(self) -> str:
        target = self.target
        if self.device is not None:
            major, minor = self.device.capability
            target = f"sm_{major}.{minor}{self.device.sm.lstrip('sm_0123456789')}_{target}"
        return "_".join(filter(None, (target, names.AFTER_OPTIMIZATIONS)))

    def _fusions(self, module: ModuleOp) -> None:
        before = self.pass_dumper.before_fusion
        if before is not None:
            fusions.dump_fusions(self.dump, *before, module)

    def _metadata(self) -> None:
        dump = self.dump
        if dump.options.xla_dump_module_metadata and dump.wants_files:
            name = f"module_{dump.number:04d}.metadata.textproto"
            runs = self.pass_dumper.runs
            dump.write(name, lambda: protos.metadata_text(dump.number, runs), is_text=False)

    def runs(self) -> Callable[[Sequence[object]], Callable[[object], None]] | None:
        """As `Observer`."""
        executions = self.executions
        return (lambda given: executions.starting([given])) if executions.is_wanted else None

    def run_of(self, inputs: Inputs) -> Callable[[object], None] | None:
        """A run on several devices is about to start; what is returned takes the first's result."""
        if not self.executions.is_wanted:
            return None
        sets = inputs.per_device
        count = max(inputs.partitions, 1)
        return self.executions.starting([sets[p if len(sets) > 1 else 0] for p in range(count)])

    def lowered(self, name: str, loops: ModuleOp, llvm: ModuleOp) -> None:
        """As `Observer`."""
        kernels.dump_stages(self.dump, name, loops, llvm)

    def assembled(self, name: str, text: str) -> None:
        """As `Observer`."""
        kernels.dump_assembly(self.dump, name, text)

    def translated(self, name: str, text: str, ptx: str) -> None:
        """As `Observer`."""
        if self.device is not None:
            gpu.dump_unit(self.dump, self._units, text, ptx, self.device)
            self._units += 2

    def compiled(self, name: str, text: str, code: bytes) -> None:
        """As `Observer`."""
        kernels.dump_object(self.dump, name, text, code)
