"""`--passes` at each stage: this project's on HLO and structured kernels, xDSL's on structured kernels and below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirhlo.cli.opt import stages
from mlirhlo.cli.opt.gpu_stages import context
from mlirhlo.cli.report import UsageError
from mlirhlo.diagnostics import Diagnostic, HloError, error
from mlirhlo.rewrites.control import PassControl
from mlirhlo.rewrites.pipeline import PipelinePass, parse_pipeline, run_pipeline
from mlirhlo.rewrites.registry import (
    HLO,
    LOWERED,
    STRUCTURED,
    described,
    level_of,
    list_lowered_passes,
    list_passes,
)

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from mlirhlo.rewrites.passes import Trace
    from mlirhlo.rewrites.pipeline import Instrumentation

_LEVELS = {
    stages.HLO: HLO,
    stages.FUSED: HLO,
    "structured": STRUCTURED,
    "scheduled": STRUCTURED,
    **dict.fromkeys(("loops", "llvm-dialect", "gpu", "nvvm"), LOWERED),
}
"""What the module at a stage holds; stages that are text or object code have no passes."""

_WHERE = {
    HLO: "HLO (stages hlo and fused)",
    STRUCTURED: "structured kernels (stages structured and scheduled)",
    LOWERED: "MLIR's own dialects (stages loops, llvm-dialect, gpu, nvvm)",
}

_RUN_AT = {HLO: (HLO,), STRUCTURED: (STRUCTURED, LOWERED), LOWERED: (LOWERED,)}
"""By what a module holds, the passes that run on it: xDSL's run on structured kernels, too."""


def passes_at(stage: str, text: str) -> tuple[ModulePass, ...]:
    """The passes of a pipeline that runs on the module at `stage`.

    A file at stage `hlo` may hold structured kernels too: `check_level` judges when it is read.

    Raises `UsageError`: HLO0418 for passes of another stage and for stages without passes, else what
    `parse_pipeline` raises.
    """
    level = _LEVELS.get(stage)
    if level is None:
        message = f"no passes run at stage '{stage}', which is no module of operations"
        raise UsageError(
            Diagnostic("HLO0418", message, help=f"stages with passes: {', '.join(_LEVELS)}")
        )

    try:
        if level != HLO:
            passes = parse_pipeline(text, {**list_passes(), **list_lowered_passes()})
        else:
            passes = _parsed_for_hlo(text)
    except HloError as problem:
        raise UsageError(*problem.diagnostics) from None
    if stage != stages.HLO:
        check_level(passes, level)
    return passes


def _parsed_for_hlo(text: str) -> tuple[ModulePass, ...]:
    """The passes of a pipeline on HLO or structured kernels; xDSL's are imported only to refuse them."""
    try:
        return parse_pipeline(text)
    except HloError as problem:
        try:
            passes = parse_pipeline(text, {**list_lowered_passes(), **list_passes()})
        except HloError as other:
            raise (other if other.code == "HLO0402" else problem) from None
    check_level(passes, HLO)
    return passes


def check_level(passes: Sequence[ModulePass], level: str) -> None:
    """Raises `UsageError` HLO0418 for a pass that runs on something else than `level`."""
    for pass_ in passes:
        own = "" if isinstance(pass_, PipelinePass) else level_of(type(pass_))
        if own and own not in _RUN_AT[level]:
            message = f"pass '{pass_.name}' runs on {_WHERE[own]}, not on {_WHERE[level]}"
            advice = "run it on a print of its stage, which later stages take as input"
            raise UsageError(Diagnostic("HLO0418", message, help=advice))


class _Watch:
    """Verifies the module after each pass, and remembers which pass runs."""

    name = ""

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """As `Instrumentation`."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """As `Instrumentation`."""
        del module
        self.name = pass_.name

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        """As `Instrumentation`."""
        from xdsl.utils.exceptions import VerifyException

        del changed, seconds
        try:
            module.verify()
        except VerifyException as problem:
            message = f"the module is not valid any more after {pass_.name}"
            raise error("HLO0512", f"{message}: {str(problem).splitlines()[0]}") from None


def run_passes(
    module: ModuleOp,
    passes: Sequence[ModulePass],
    watchers: Sequence[Instrumentation],
    trace: Trace,
    control: PassControl | None,
) -> list[tuple[str, float]]:
    """Runs passes on a module below `fused`, in place; names and seconds.

    Raises `HloError`: HLO0415 where a pass of xDSL's raises, HLO0512 where a pass leaves an invalid module.
    """
    control = control or PassControl()
    control.verifies_foreign = False  # as HLO, which this is not
    watch = _Watch()
    try:
        result = run_pipeline(
            module, passes, [*watchers, watch], context(), trace=trace, control=control
        )
    except HloError:
        raise
    except Exception as problem:
        if any(level_of(type(p)) == "" for p in passes if p.name == watch.name):
            raise  # of a file of passes: the tool shows its line
        message = f"pass '{watch.name}' raised {described(problem)}"
        raise error("HLO0415", message, help="--debug shows the traceback") from problem
    return result.seconds
