"""Per-pass files: the module at the boundaries of pipelines.

The rule is XLA's: at the start of every pipeline, and after each pass that changed the module (or every
pass, unless the expression is exactly `.*`), when the pass before or the one after is asked for.
Source: dumps reference, "When per-pass files are written".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirhlo.debug.dump import names
from mlirhlo.debug.dump.names import PIPELINE_END, PIPELINE_START
from mlirhlo.debug.dump.pass_run import PassRun
from mlirhlo.debug.dump.writer import ModuleDump
from mlirhlo.importing import LATE
from mlirhlo.rewrites.cloning import clone_module

with LATE:
    from mlirhlo.debug import graph


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass


@dataclass(slots=True)
class _Running:
    """A pipeline on its way."""

    name: str
    passes: Sequence[str]
    at: int = 0


class PassDumper:
    """An `Instrumentation` that dumps."""

    def __init__(self, dump: ModuleDump) -> None:
        self.dump = dump
        self.runs: list[PassRun] = []
        """Every pass in order, and a `pipeline-start` for every pipeline."""
        self.before_fusion: tuple[ModuleOp, ModulePass] | None = None
        """The module before the first pass that fuses, and that pass, for pages about fusions."""
        self._pipelines: list[_Running] = []

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """As `Instrumentation`."""
        found = tuple(pass_.name for pass_ in passes)
        run = PassRun(PIPELINE_START, pipeline, _now())
        run.files = self._boundary(pipeline, PIPELINE_START, [*found, PIPELINE_END][0], module)
        run.end_us = _now()
        self.runs.append(run)
        if found:
            self._pipelines.append(_Running(pipeline, found))

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """As `Instrumentation`."""
        pipeline = self._pipelines[-1].name if self._pipelines else ""
        self.runs.append(PassRun(pass_.name, pipeline, _now()))
        wants_fusions = self.dump.options.xla_dump_fusion_visualization and self.dump.wants_files
        if wants_fusions and "fusion" in pass_.name and self.before_fusion is None:
            self.before_fusion = clone_module(module), pass_

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        """As `Instrumentation`."""
        if not self._pipelines:
            return
        running = self._pipelines[-1]
        running.at += 1
        following = [*running.passes[running.at :], PIPELINE_END][0]
        if running.at == len(running.passes):
            self._pipelines.pop()
        run = next((r for r in reversed(self.runs) if not r.end_us), None)
        if run is not None:
            run.end_us, run.changed = run.start_us + int(seconds * 1e6), changed
        if changed or self.dump.settings.every_boundary:
            files = self._boundary(running.name, pass_.name, following, module)
            if run is not None:
                run.files = files

    def during(self, pass_name: str, what: str, module: ModuleOp) -> None:
        """The module in the middle of a pass; the expression for pipelines does not matter."""
        dump = self.dump
        if dump.wants_files and dump.settings.passes(pass_name):
            dump.hlo(module, names.during(self._step(), pass_name, what))

    def _boundary(self, pipeline: str, after: str, before: str, module: ModuleOp) -> list[str]:
        dump = self.dump
        settings = dump.settings
        asked = settings.passes(before) or settings.passes(after)
        if not (dump.wants_files and asked and settings.pipelines(pipeline)):
            return []
        suffix = names.boundary(self._step(), pipeline, after, before)
        files = dump.hlo(module, suffix)
        if settings.html:
            self._record_stage(module, suffix, after)
        return files

    def _record_stage(self, module: ModuleOp, suffix: str, after: str) -> None:
        """Keeps the module for the slider of the page that shows the last stage."""
        dump = self.dump
        file = f"{names.sanitized(dump.stem(suffix))}.txt" if dump.settings.text else ""
        dump.stages.append(graph.Stage(f"after {after}", module.clone(), file))

    def _step(self) -> int:
        self.dump.steps += 1
        return self.dump.steps - 1


def _now() -> int:
    return time.time_ns() // 1000
