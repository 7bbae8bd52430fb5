"""Pipelines: `a,b{option=value}` to passes, and running them."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, get_pass_option_infos
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.arg_spec import parse_pipeline as parse_specs
from xdsl.utils.exceptions import ArgSpecParseError

from mlirhlo.diagnostics import error, wrong_type
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.module import Facts, HloModule
from mlirhlo.importing import LATE
from mlirhlo.rewrites.authors import is_foreign, run_foreign, verify_foreign
from mlirhlo.rewrites.control import PassControl, rewrites
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.registry import PassInfo, list_passes
from mlirhlo.rewrites.xla_names import instead_of, pass_meant

with LATE:
    from mlirhlo.formats import hlo_text


TRANSFORMS = "transforms_pipeline"
"""Name of a pipeline that was put together by hand, as in XLA's hlo-opt."""


class Instrumentation(Protocol):
    """Told of pipelines, and before and after every pass of theirs."""

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """A pipeline of this name is about to run these passes; it may be one inside a pass of
        another one. It ends with the last of its passes."""
        ...

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """`pass_` is about to run on `module`."""
        ...

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        """`pass_` ran; `changed` says whether it reports a change, `seconds` is wall time."""
        ...


@dataclass(slots=True)
class History:
    """What is known of a module while pipelines run on it: a pass that found nothing to do has
    nothing to do again before another one has changed the module."""

    changes: int = 0
    """How many passes changed the module."""
    idle: dict[ModulePass, int] = field(default_factory=dict[ModulePass, int])
    """By pass, with its options: `changes` when it last found nothing to do."""
    facts: Facts = field(default_factory=dict[Any, Any])
    """What passes asked since the last change."""
    kept: dict[Any, Any] | None = field(default_factory=dict[Any, Any])
    """What passes keep for their next run; they see to it that it is still true then. None = nothing."""

    def is_idle(self, pass_: ModulePass) -> bool:
        """Whether the module is still as it was when the pass found nothing to do."""
        return self.idle.get(pass_) == self.changes

    def ran(self, pass_: ModulePass, changed: bool) -> None:
        """Writes down what a pass did."""
        if changed:
            self.changes += 1
            self.facts.clear()
        else:
            self.idle[pass_] = self.changes


@dataclass(slots=True)
class PipelineResult:
    """What a pipeline did."""

    changed: bool = False
    trace: Trace = field(default_factory=Trace)
    seconds: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    """Pass name and wall time, in order."""
    control: PassControl = field(default_factory=PassControl)
    """Which passes run, and how far."""
    history: History = field(default_factory=History)
    """Spares passes inside of `PipelinePass` that have nothing to do."""


def parse_pipeline(
    text: str, known: Mapping[str, PassInfo] | None = None
) -> tuple[ModulePass, ...]:
    """Passes of `a,b{option=value other=1,2}`, looked up in `known`, the project's own by default.

    Raises `HloError`: HLO0400 for a syntax error, HLO0401 for an unknown pass, HLO0402 for wrong
    options, HLO0508 for what is no string.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  from outside
        raise wrong_type("passes", "a string", text, 'write "cse,dce{option=value}"')
    known = list_passes() if known is None else known
    try:
        specs = list(parse_specs(text))
    except ArgSpecParseError as problem:
        message = str(problem).strip().split("\n")[-1]
        raise error("HLO0400", f"cannot read the pipeline {text!r}: {message}") from None
    passes: list[ModulePass] = []
    for spec in specs:
        name = pass_meant(spec.name, known)
        if name is None:
            hint = instead_of(spec.name, known)
            raise error(
                "HLO0401", f"unknown pass {spec.name!r}", help=f"{hint}--list-passes shows all"
            )
        cls = known[name].factory()
        try:
            passes.append(cls.from_spec(_with_flags(cls, spec)))
        except (ValueError, TypeError) as problem:
            options = get_pass_option_infos(cls)
            listed = ", ".join(f"{o.name.replace('_', '-')}: {o.expected_type}" for o in options)
            raise error(
                "HLO0402",
                f"{spec.name}: {problem}",
                help=f"options of {spec.name}: {listed or 'none'}",
            ) from None
    return tuple(passes)


def _with_flags(cls: type[ModulePass], spec: ArgSpec) -> ArgSpec:
    """`{flag}` alone means `{flag=true}`, as `--flag` does."""
    flags = {f.name for f in dataclasses.fields(cls) if f.type in (bool, "bool")}
    given = {
        key: (True,) if values == () and key.replace("-", "_") in flags else values
        for key, values in spec.parameters.items()
    }
    return ArgSpec(cls.name, given)


def run_pipeline(
    module: ModuleOp,
    passes: Sequence[ModulePass],
    instrumentation: Sequence[Instrumentation] = (),
    context: Context | None = None,
    *,
    name: str = TRANSFORMS,
    trace: Trace | None = None,
    control: PassControl | None = None,
    history: History | None = None,
) -> PipelineResult:
    """Runs `passes` on `module` in place. xDSL's passes run too; they report a change always.

    `name` is the pipeline's, for dumps; `trace` is told what happens; `control` says which passes
    run, and how far; with a `history` only those run that may have something to do.

    Raises `HloError`: HLO0409, HLO0412, HLO0413, HLO0414, of passes from outside of the project HLO0415
    and HLO0512, and what passes raise.
    """
    result = PipelineResult(trace=trace or Trace(), control=control or PassControl())
    control = result.control
    result.history = history or result.history
    with control.filter.pipeline(name):
        _run_all(module, passes, instrumentation, context, name, result, spare=history is not None)
    return result


def _run_all(
    module: ModuleOp,
    passes: Sequence[ModulePass],
    instrumentation: Sequence[Instrumentation],
    context: Context | None,
    name: str,
    result: PipelineResult,
    *,
    spare: bool,
) -> None:
    control, history = result.control, result.history
    for watcher in instrumentation:
        watcher.started(name, passes, module)
    for pass_ in passes:
        is_pipeline = _is_pipeline(type(pass_))
        if is_pipeline:
            control.filter.entered()
        elif not control.filter.admits(pass_.name):
            continue
        for watcher in instrumentation:
            watcher.before(pass_, module)
        start = time.perf_counter()
        changed = False
        if not spare or not history.is_idle(pass_):
            changed = _run_one(module, pass_, instrumentation, context, result)
            if not is_pipeline:
                history.ran(pass_, changed)
        if control.verifies_foreign and not is_pipeline and is_foreign(type(pass_)):
            verify_foreign(pass_, module, result.trace)
        seconds = time.perf_counter() - start
        result.changed |= changed
        result.seconds.append((pass_.name, seconds))
        for watcher in instrumentation:
            watcher.after(pass_, module, changed, seconds)


@functools.lru_cache(maxsize=1024)
def _is_pipeline(kind: type[ModulePass]) -> bool:
    """Asked three times a pass: of abstract classes, `isinstance` takes longer than many a pass."""
    return issubclass(kind, PipelinePass)


def _run_one(
    module: ModuleOp,
    pass_: ModulePass,
    instrumentation: Sequence[Instrumentation],
    context: Context | None,
    result: PipelineResult,
) -> bool:
    """Whether the pass changed anything; whether it says so truthfully is checked where asked for."""
    control = result.control
    if _is_pipeline(type(pass_)):
        assert isinstance(pass_, PipelinePass)
        return pass_.run_watched(module, instrumentation, context, result)
    if not isinstance(pass_, HloPass):
        pass_.apply(context or Context(), module)
        return True
    checked = control.silent_change_is_error or control.false_change_is_error
    before = _fingerprint(module) if checked else ""
    done = rewrites(pass_.name, result.trace) if control.fuel else 0
    with paused_gc():
        view = HloModule(module, result.history.facts, result.history.kept)
        fuelled = control.fuelled(pass_)
        if is_foreign(type(pass_)):
            changed = run_foreign(pass_, lambda: fuelled.run(view, result.trace))
        else:
            changed = fuelled.run(view, result.trace)
    control.spent(pass_.name, done, result.trace)
    if checked:
        differs = _fingerprint(module) != before
        if differs and not changed and control.silent_change_is_error:
            raise error("HLO0412", f"pass '{pass_.name}' changed the module and says it did not")
        if changed and not differs and control.false_change_is_error:
            raise error("HLO0413", f"pass '{pass_.name}' says it changed the module and did not")
    return changed


def _fingerprint(module: ModuleOp) -> str:
    return hlo_text.print_module(module, hlo_text.PrintOptions.fingerprint())


def works_on_hlo(pass_: ModulePass) -> bool:
    """Whether a pass, or a pipeline with any such pass, needs a module of HLO, not of StableHLO."""
    if isinstance(pass_, PipelinePass):
        return any(map(works_on_hlo, pass_.passes))
    return isinstance(pass_, HloPass)


MOST_ROUNDS = 25
"""Rounds of a pipeline that runs until nothing changes, as in XLA."""


class PipelinePass(ModulePass):
    """Several passes under one name, a pass itself: XLA's `HloPassPipeline` and `HloPassFix`."""

    passes: tuple[ModulePass, ...]
    fix_point: bool
    """Whether it runs until nothing changes, 25 times at most."""

    def __init__(self, name: str, passes: Sequence[ModulePass], fix_point: bool = False) -> None:
        """`passes` may be pipelines too."""
        vars(self)["name"] = name  # each has its own, where xDSL has one a class
        self.passes, self.fix_point = tuple(passes), fix_point

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """As xDSL calls a pass."""
        self.run_watched(op, (), ctx, PipelineResult())

    def run_watched(
        self,
        module: ModuleOp,
        instrumentation: Sequence[Instrumentation],
        context: Context | None,
        result: PipelineResult,
    ) -> bool:
        """Runs the passes, telling the watchers; whether anything changed.

        Raises `HloError` HLO0414 where the flags make too many rounds an error.
        """
        changed = False
        for _ in range(MOST_ROUNDS if self.fix_point else 1):
            inner = run_pipeline(
                module,
                self.passes,
                instrumentation,
                context,
                name=self.name,
                trace=result.trace,
                control=result.control,
                history=result.history,
            )
            result.seconds += inner.seconds
            changed |= inner.changed
            if not inner.changed or not self.fix_point:
                return changed
        if result.control.most_rounds_is_error:
            raise error(
                "HLO0414",
                f"pipeline '{self.name}' still changes the module after {MOST_ROUNDS} rounds",
                help="bisect with --xla_enable_hlo_passes_only or --xla_fuel",
            )
        return False  # as in XLA, so that pipelines around it come to an end
