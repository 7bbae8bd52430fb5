"""The pass, the rule, the rewrite and the instruction of one of our pipelines that first meet a condition.

Passes are numbered as they run, those of pipelines that run until nothing changes as often as they do. The number
after which the condition holds is searched by halves, then the number of rewrites of that pass.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.debug.bisect.compare import DIFFERS, Given, compare
from mlirhlo.debug.bisect.instructions import Suspect
from mlirhlo.debug.bisect.limited import Ran, run_limited
from mlirhlo.debug.reduce.driver import Verdicts
from mlirhlo.debug.trials import rounding
from mlirhlo.debug.trials.conditions import (
    Condition,
    Verdict,
    difference,
    failure_of,
    fake_arguments,
    judge,
    load_module,
    load_passes,
)
from mlirhlo.debug.trials.sides import Side
from mlirhlo.debug.trials.texts import module_text
from mlirhlo.debug.trials.workers import Died, Limits, Workers
from mlirhlo.diagnostics import HloError, error
from mlirhlo.importing import LATE
from mlirhlo.rewrites.registry import list_passes

with LATE:
    from mlirhlo.analysis import verifier
    from mlirhlo.lowering.cpu import pipeline as cpu_pipeline
    from mlirhlo.lowering.gpu import pipeline as gpu_pipeline


Progress: TypeAlias = Callable[[int, int, str], None]
_TRY = "mlirhlo.debug.bisect.pipelines:attempt"
_LOCATE = "mlirhlo.debug.bisect.instructions:locate"


@dataclass(frozen=True, slots=True)
class PipelineBisection:
    """What a search through a pipeline found."""

    passes: int
    """Passes that run in all."""
    number: int
    """The pass after which the condition first holds, counted from 1; 0 when it holds before any pass, which leaves
    the side that runs the module."""
    pass_name: str
    pipeline: str
    rule: str = ""
    """Empty where the pass is no list of rules."""
    equation: str = ""
    application: int = 0
    """The rewrite of this run of the pass, counted from 1."""
    applications: int = 0
    matched: str = ""
    """The instruction that the rule matched."""
    detail: str = ""
    """Why the condition holds."""
    before: str = field(default="", repr=False)
    """The last module for which it does not hold."""
    after: str = field(default="", repr=False)
    """The first for which it does; empty when there is none, because the pass raises."""
    suspects: tuple[Suspect, ...] = ()
    attempts: int = 0


def passes_of(side: Side) -> Sequence[ModulePass]:
    """The passes of a side, which are those of its compiler where it names none. Raises as `Side.pipeline` does."""
    if side.passes:
        return side.pipeline()
    if side.platform == "cpu":
        return cpu_pipeline.passes()
    if side.platform == "gpu":
        return gpu_pipeline.passes()
    return ()


def bisect_pipeline(
    text: str,
    condition: Condition,
    *,
    name: str = "module.hlo",
    jobs: int = 1,
    limits: Limits | None = None,
    verdicts: str | None = None,
    progress: Progress | None = None,
) -> PipelineBisection:
    """Finds what in the passes of the tested side makes `condition` hold.

    Raises `HloError` HLO0862 when it does not hold after all passes, HLO0864 for a side without passes.
    """
    condition.checked()
    if not passes_of(Side.parse(condition.sides[0])):
        raise error(
            "HLO0864",
            f"side '{condition.sides[0]}' has no passes to search",
            help="name them, as in --bad=Interpreter:cpu or --bad=Interpreter:algsimp,dce",
        )
    with Workers(jobs, limits or Limits(120.0)) as workers:
        search = _Search(text, condition, name, jobs, workers, Verdicts(verdicts), progress)
        return search.run()


class _Search:
    """One search: first over passes, then over rewrites."""

    def __init__(
        self,
        text: str,
        condition: Condition,
        name: str,
        jobs: int,
        workers: Workers,
        verdicts: Verdicts,
        progress: Progress | None,
    ) -> None:
        self.text, self.condition, self.name, self.jobs = text, condition, name, jobs
        self.workers, self.verdicts, self.progress = workers, verdicts, progress
        self.attempts = 0

    def run(self) -> PipelineBisection:
        """Raises as `bisect_pipeline` does."""
        (whole,) = self._try([(None, None)])
        if not whole["holds"]:
            raise error(
                "HLO0862",
                f"{self.name}: the condition '{self.condition.kind}' does not hold after all passes"
                + (f": {whole['detail']}" if whole["detail"] else ""),
                help="the generated code may be at fault: run_hlo_module --isolate_instructions",
            )
        total = whole["ran"]["count"]
        (none,) = self._try([(0, None)])
        if none["holds"]:
            return PipelineBisection(
                total, 0, "", "", detail=none["detail"], attempts=self.attempts
            )
        number = self._first(total, lambda limit: (limit, None), "passes")
        (at,) = self._try([(number, None)])
        ran = Ran(**at["ran"])
        fuel = None
        if ran.counts_rewrites and ran.rewrites > 0:
            fuel = self._first(ran.rewrites, lambda f: (number, f), f"rewrites of {ran.name}")
        return self._described(total, number, ran, fuel)

    def _described(self, total: int, number: int, ran: Ran, fuel: int | None) -> PipelineBisection:
        good, bad = (
            ((number, fuel - 1), (number, fuel)) if fuel else ((number - 1, None), (number, None))
        )
        before, after = self._texts([good, bad])
        (last,) = self._try([bad])
        found = Ran(**last["ran"])
        suspects: tuple[Suspect, ...] = ()
        if before and after:
            given = asdict(Given(self.text, self.condition.seeds))
            (answer,) = self.workers.ask(
                _LOCATE, [{"before": before, "after": after, "given": given}]
            )
            suspects = () if isinstance(answer, Died) else tuple(Suspect(**row) for row in answer)
        return PipelineBisection(
            total,
            number,
            ran.name,
            ran.pipeline,
            found.rule if fuel or not after else "",
            equation_of(ran.name, found.rule),
            fuel or 0,
            ran.rewrites if fuel else 0,
            found.matched if fuel or not after else "",
            last["detail"],
            before,
            after,
            suspects,
            self.attempts,
        )

    def _first(self, high: int, point: Callable[[int], tuple[int, int | None]], what: str) -> int:
        """The smallest number at which the condition holds, which it does at `high` and not at 0."""
        low = 0
        while high - low > 1:
            count = min(self.jobs, high - low - 1)
            probes = [low + (high - low) * (k + 1) // (count + 1) for k in range(count)]
            if self.progress is not None:
                self.progress(low, high, what)
            answers = self._try([point(p) for p in probes])
            best = next((k for k, answer in enumerate(answers) if answer["holds"]), None)
            if best is None:
                low = probes[-1]
            else:
                low, high = (probes[best - 1] if best else low), probes[best]
        return high

    def _try(self, points: Sequence[tuple[int | None, int | None]]) -> list[dict[str, Any]]:
        requests = [self._request(point) for point in points]
        keys = [Verdicts.key(f"{point}\0{self.text}", self.condition) for point in points]
        unknown = [k for k, key in enumerate(keys) if self.verdicts.get(key) is None]
        if unknown:
            self.attempts += len(unknown)
            answers = self.workers.ask(_TRY, [requests[k] for k in unknown])
            for k, answer in zip(unknown, answers, strict=True):
                self.verdicts.add(keys[k], _as_verdict(answer, self.condition))
        known = [self.verdicts.get(key) for key in keys]
        return [_as_answer(verdict) for verdict in known if verdict is not None]

    def _texts(self, points: Sequence[tuple[int | None, int | None]]) -> list[str]:
        found: list[str] = []
        for point in points:
            (answer,) = self.workers.ask(_TRY, [{**self._request(point), "with_text": True}])
            found.append("" if isinstance(answer, Died) else answer["text"])
        return found

    def _request(self, point: tuple[int | None, int | None]) -> dict[str, Any]:
        limit, fuel = point
        return {
            "text": self.text,
            "condition": self.condition.as_json(),
            "limit": limit,
            "fuel": fuel,
            "name": self.name,
        }


def _as_verdict(answer: Any, condition: Condition) -> Verdict:
    if isinstance(answer, Died):
        holds = condition.kind == "crashes"
        return Verdict(holds, json.dumps(asdict(Ran())), str(answer))
    return Verdict(answer["holds"], json.dumps(answer["ran"]), answer["detail"])


def _as_answer(verdict: Verdict) -> dict[str, Any]:
    return {"holds": verdict.holds, "ran": json.loads(verdict.cause), "detail": verdict.detail}


def equation_of(pass_name: str, rule: str) -> str:
    """The equation of a rule of a pass; empty for none."""
    info = list_passes().get(pass_name)
    if info is None or not rule:
        return ""
    rules = getattr(info.factory(), "rules", ())
    return next((each.equation for each in rules if each.name == rule), "")


# ---------------------------------------------------------------- in workers


def attempt(
    text: str,
    condition: Mapping[str, Any],
    limit: int | None,
    fuel: int | None,
    name: str,
    with_text: bool = False,
) -> dict[str, Any]:
    """Whether the condition holds after some passes, and which these were; what worker processes run."""
    asked = Condition.from_json(condition)
    load_passes(asked.load_passes)
    module = load_module(text, name)
    ran = Ran()
    try:
        run_limited(module, passes_of(Side.parse(asked.sides[0])), limit, fuel, ran)
        after = module_text(module)
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001  what passes raise may be what is looked for
        holds, detail = failure_of(problem, asked)
        return {"holds": holds, "ran": asdict(ran), "detail": detail, "text": ""}
    holds, detail = _judged(text, after, module, asked, name)
    return {
        "holds": holds,
        "ran": asdict(ran),
        "detail": detail,
        "text": after if with_text else "",
    }


def _judged(
    text: str, after: str, module: ModuleOp, condition: Condition, name: str
) -> tuple[bool, str]:
    del module
    if condition.kind == "differs":
        if not _is_interpreted(condition):
            return _on_platform(text, after, condition)
        found = compare(text, after, Given(text, condition.seeds))
        return found.outcome == DIFFERS, found.detail
    if condition.kind == "command":
        verdict = judge(after, condition, name)
        return verdict.holds, verdict.cause
    if condition.kind == "diagnostic":
        problems = [
            d for d in verifier.verify_module(load_module(after, name)) if d.code == condition.code
        ]
        return bool(problems), str(problems[0]) if problems else ""
    return False, ""


def _is_interpreted(condition: Condition) -> bool:
    """Whether results of passes are looked at on the interpreter: also of compilers' own passes."""
    tested = Side.parse(condition.sides[0])
    return tested.platform == "interpreter" or not tested.passes


def _on_platform(text: str, after: str, condition: Condition) -> tuple[bool, str]:
    tested = Side.parse(condition.sides[0])
    module = load_module(text, "module.hlo")
    arguments = fake_arguments(module, condition.seeds[0])
    try:
        actual = Side(tested.name, tested.platform).run(load_module(after, "m.hlo"), arguments)
    except HloError as problem:
        return False, str(problem)
    expected = _reference(text, condition.sides[1], condition.seeds[0])
    found = difference(expected, actual, lambda: rounding.movements(module, arguments, expected))
    return bool(found), found


@lru_cache(maxsize=2)
def _reference(text: str, side: str, seed: int) -> list[Any]:
    module = load_module(text, "module.hlo")
    return Side.parse(side).run(module, fake_arguments(module, seed))


__all__ = ["PipelineBisection", "attempt", "bisect_pipeline"]
