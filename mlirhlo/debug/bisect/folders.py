"""The first recorded stage of a dump that computes something else than the one before.

One stage may be wrong and all later ones right, so every stage is run: searching by halves would miss it. Stages that
cannot be run here are passed over; when the next one differs, the culprit is one of several passes, and all are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from mlirhlo.debug.bisect.compare import DIFFERS, SEEDS, UNKNOWN, Comparison, Given
from mlirhlo.debug.bisect.instructions import Suspect
from mlirhlo.debug.bisect.stages import RecordedModule, Stage
from mlirhlo.debug.reduce.driver import Verdicts
from mlirhlo.debug.trials.conditions import Condition, Verdict
from mlirhlo.debug.trials.workers import Died, Limits, Workers

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with stages compared, all stages, and the one at hand."""

_COMPARE = "mlirhlo.debug.bisect.compare:compare_stages"
_LOCATE = "mlirhlo.debug.bisect.instructions:locate"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A stage that was not compared."""

    stage: Stage
    reason: str


@dataclass(frozen=True, slots=True)
class Culprit:
    """The stage that computes something else."""

    stage: Stage
    before: Stage
    """The last stage that computes the same."""
    detail: str
    """How results differ."""
    between: tuple[Stage, ...] = ()
    """Stages between the two that could not be run: their passes may be at fault instead."""
    suspects: tuple[Suspect, ...] = ()
    """Instructions whose values differ though what they read agrees."""


@dataclass(frozen=True, slots=True)
class FolderBisection:
    """What a search through recorded stages found."""

    module: str
    stages: tuple[Stage, ...]
    compared: int
    skipped: tuple[Skipped, ...]
    culprit: Culprit | None


def bisect_folder(
    module: RecordedModule,
    *,
    seeds: Sequence[int] = SEEDS,
    npz: str = "",
    jobs: int = 1,
    limits: Limits | None = None,
    verdicts: str | None = None,
    progress: Progress | None = None,
) -> FolderBisection:
    """Runs every recorded stage until one differs from the one before.

    `seeds`: of made-up inputs; `npz`: a file of inputs instead. `verdicts`: a file that keeps what is known, for a
    run that is interrupted.
    """
    with Workers(jobs, limits or Limits(120.0)) as workers:
        search = _Search(module, tuple(seeds), npz, jobs, workers, Verdicts(verdicts), progress)
        return search.run()


class _Search:
    """One walk over the stages."""

    def __init__(
        self,
        module: RecordedModule,
        seeds: tuple[int, ...],
        npz: str,
        jobs: int,
        workers: Workers,
        verdicts: Verdicts,
        progress: Progress | None,
    ) -> None:
        self.module, self.jobs, self.workers = module, jobs, workers
        self.verdicts, self.progress = verdicts, progress
        self.given = Given(module.stages[0].text, seeds, npz)
        self.skipped: list[Skipped] = []

    def run(self) -> FolderBisection:
        """Compares stages in pairs, several at once."""
        stages = self.module.stages
        last, at = 0, 1  # the last stage that could be run, the next one to compare
        culprit = None
        while at < len(stages) and culprit is None:
            pairs = [(last, at)]
            pairs += [(k - 1, k) for k in range(at + 1, min(at + self.jobs, len(stages)))]
            for (before, after), found in zip(pairs, self._compare(pairs), strict=True):
                if before != last:
                    break  # the stage that this one was compared with could not be run
                at = after + 1
                if found.outcome == DIFFERS:
                    culprit = self._culprit(before, after, found)
                    break
                if found.outcome == UNKNOWN:
                    self.skipped.append(Skipped(stages[after], found.detail))
                if found.outcome != UNKNOWN or found.side == "before" or found.is_resized:
                    last = after
                if found.is_resized:
                    # What follows has parameters of these sizes, and pairs of this batch had others.
                    self.given = replace(self.given, reference=stages[after].text)
                    break
        compared = at - 1 - len(self.skipped)
        return FolderBisection(self.module.name, stages, compared, tuple(self.skipped), culprit)

    def _compare(self, pairs: Sequence[tuple[int, int]]) -> list[Comparison]:
        stages = self.module.stages
        requests: list[dict[str, Any]] = [
            {"before": stages[a].text, "after": stages[b].text, "given": asdict(self.given)}
            for a, b in pairs
        ]
        keys = [Verdicts.key(repr(sorted(r.items())), _KEY) for r in requests]
        unknown = [k for k, key in enumerate(keys) if self.verdicts.get(key) is None]
        if unknown:
            answers = self.workers.ask(_COMPARE, [requests[k] for k in unknown])
            for k, answer in zip(unknown, answers, strict=True):
                self.verdicts.add(keys[k], _as_verdict(answer))
        if self.progress is not None:
            self.progress(pairs[-1][1], len(stages) - 1, stages[pairs[-1][1]].label)
        found = [self.verdicts.get(key) for key in keys]
        return [_as_comparison(verdict) for verdict in found if verdict is not None]

    def _culprit(self, before: int, after: int, found: Comparison) -> Culprit:
        stages = self.module.stages
        request = {
            "before": stages[before].text,
            "after": stages[after].text,
            "given": asdict(self.given),
        }
        (answer,) = self.workers.ask(_LOCATE, [request])
        suspects = () if isinstance(answer, Died) else tuple(Suspect(**row) for row in answer)
        between = stages[before + 1 : after]
        return Culprit(stages[after], stages[before], found.detail, between, suspects)


_KEY = Condition("differs")
"""Verdicts on pairs of stages are kept in the same file as those on modules, under other keys."""


def _as_verdict(answer: Any) -> Verdict:
    if isinstance(answer, Died):
        return Verdict(False, f"{UNKNOWN}:after:", str(answer))
    mark = "resized" if answer["is_resized"] else ""
    cause = f"{answer['outcome']}:{answer['side']}:{mark}"
    return Verdict(answer["outcome"] == DIFFERS, cause, answer["detail"])


def _as_comparison(verdict: Verdict) -> Comparison:
    outcome, side, mark = verdict.cause.split(":")
    return Comparison(outcome, verdict.detail, side, bool(mark))
