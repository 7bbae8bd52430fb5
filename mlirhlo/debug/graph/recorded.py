"""The stages of a module: from a folder of dumps, or from passes that run now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.debug.graph.options import Stage
from mlirhlo.diagnostics import Diagnostic, HloError, Severity
from mlirhlo.formats import load
from mlirhlo.rewrites.cloning import clone_module
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

if TYPE_CHECKING:
    from mlirhlo.debug.index import DumpedModule


@dataclass(slots=True)
class StageRecorder:
    """An instrumentation of pipelines that keeps the module after every pass that changed it."""

    stages: list[Stage] = field(default_factory=list[Stage])

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """Keeps the module as it came."""
        if not self.stages:
            self.stages.append(Stage("before", clone_module(module)))

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Nothing to do."""

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        """Keeps the module after a change."""
        if changed:
            self.stages.append(Stage(f"after {pass_.name}", clone_module(module)))


def recorded_stages(module: ModuleOp, passes: str) -> tuple[Stage, ...]:
    """Runs passes on `module`, in place. Raises `HloError` HLO0400 to HLO0402 as `parse_pipeline`."""
    recorder = StageRecorder()
    run_pipeline(module, parse_pipeline(passes), (recorder,))
    *stages, last = recorder.stages
    return (*stages, replace(last, module=module))


def dumped_stages(module: DumpedModule) -> tuple[tuple[Stage, ...], list[Diagnostic]]:
    """Every stage of a dumped module that can be read, and a warning for each that cannot.

    A stage whose file has the bytes of the one before is left out.
    """
    stages: list[Stage] = []
    problems: list[Diagnostic] = []
    latest = b""
    for files in module.stages:
        file, name = files[0], files[0].name
        if name.kind == "kernel" or name.extension == ".dot":
            continue
        data = module.read(file)
        if data == latest and stages:
            continue
        try:
            found = load(data, name=file.path).module
        except HloError as problem:
            problems += [
                replace(diagnostic, severity=Severity.WARNING)
                for diagnostic in problem.diagnostics[:1]
            ]
            continue
        latest = data
        label = f"after {name.after}" if name.kind == "boundary" else name.suffix
        label += f" ({name.pipeline})" if name.pipeline else ""
        stages.append(Stage(label, found, file.path))
    return tuple(stages), problems
