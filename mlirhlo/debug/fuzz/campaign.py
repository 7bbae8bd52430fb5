"""A run of the fuzzer: cases in processes with limits, findings by cause, reduced, kept in a folder.

Every case follows from the seed and its number. The folder has `state.json`, from which a run that was stopped goes
on, and for every cause a module that shows it and a smaller one.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mlirhlo.debug.fuzz import checks, mutants, partitioning, passes, texts
from mlirhlo.debug.fuzz.generators.instructions import GENERATORS
from mlirhlo.debug.fuzz.generators.modules import Module
from mlirhlo.debug.fuzz.generators.sharded import OPCODES
from mlirhlo.debug.reduce import reduce
from mlirhlo.debug.trials.conditions import Condition, fields_of, load_module, load_passes
from mlirhlo.debug.trials.workers import Died, Limits, Workers
from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.module import HloModule

WHAT = ("passes", "sides", "formats", "mutants", "reader", "partitioner")
MAX_REDUCED = 3
"""Findings of one cause that are reduced: they may have others beneath."""
_TASK = "mlirhlo.debug.fuzz.campaign:run_cases"
_BATCH = 8
"""Cases of a request to a process."""
_SAVE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What cases are made of."""

    seed: int = 1
    what: tuple[str, ...] = ("passes", "sides", "formats", "reader")
    sides: tuple[str, ...] = ("CPU",)
    """Tested against the interpreter."""
    passes: tuple[str, ...] = ()
    """Pipelines to choose from; none: each pass alone, random sequences, platforms."""
    size: int = 0
    """Instructions of the entry, about; 0: small and large ones in turn."""
    files: tuple[str, ...] = ()
    """Texts to damage, for `mutants` and `reader`; none: random modules."""
    load_passes: tuple[str, ...] = ()

    def checked(self) -> Settings:
        """The settings themselves. Raises `HloError` HLO0860 for what is no kind of case, and what passes raise."""
        load_passes(self.load_passes)
        for what in self.what:
            if what not in WHAT:
                raise error("HLO0860", f"'{what}' is no kind of case", help=f"{', '.join(WHAT)}")
        for side in self.sides:
            Condition("differs", (side, "Interpreter")).checked()
        for pipeline in self.passes:
            passes.passes_of(pipeline)
        return self


@dataclass(slots=True)
class Group:
    """Findings of one cause."""

    culprit: str
    cause: str
    opcodes: tuple[str, ...]
    """Of the reduced module, which tells causes apart that read the same."""
    cases: list[int] = field(default_factory=list[int])
    check: str = ""
    text: str = ""
    reduced: str = ""
    detail: str = ""

    @property
    def key(self) -> tuple[str, str, tuple[str, ...]]:
        """What makes it one cause."""
        return self.culprit, self.cause, self.opcodes


@dataclass(slots=True)
class Result:
    """What is known after a run."""

    settings: Settings
    next: int = 0
    """Number of the first case that has not run."""
    counts: dict[str, int] = field(default_factory=dict[str, int])
    groups: list[Group] = field(default_factory=list[Group])
    seconds: float = 0.0


# ---------------------------------------------------------------- cases, in worker processes


def run_cases(settings: Mapping[str, Any], numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Cases as `run_case` has them."""
    chosen = Settings(**fields_of(settings))
    load_passes(chosen.load_passes)
    return [run_case(chosen, number) for number in numbers]


def run_case(chosen: Settings, number: int) -> dict[str, Any]:
    """One case as plain data: `outcome`, and of a finding its text, check, culprit, cause and detail."""
    draw = random.Random(f"what {chosen.seed}:{number}")
    what = draw.choice(chosen.what)
    if what == "partitioner":
        return _partitioned(chosen, number, draw.choice(OPCODES))
    inputs: Sequence[Any] | None = None
    if what in ("mutants", "reader"):
        text, name = _damaged(chosen, number, what, draw)
    else:
        is_special = what == "passes" and draw.random() < 0.2
        name = _check(chosen, what, draw, is_special)
        module = Module(
            f"{what} {chosen.seed}:{number}",
            special=is_special,
            steps=chosen.size or draw.choice((3, 10, 20)),
            opcodes=_opcodes(name, draw),
        )
        text, inputs = module.text, module.inputs
    found = checks.check(text, name, inputs)
    if found is None:
        return {"outcome": f"{what}: nothing found"}
    if inputs is not None and checks.check(text, name) is None:
        text = checks.with_inputs(text, inputs)
    return {"outcome": f"{what}: found", "text": text, "check": name, **asdict(found)}


def _check(settings: Settings, what: str, draw: random.Random, is_special: bool) -> str:
    if what == "passes":
        return f"passes:{_pipeline(settings, draw, is_special)}"
    return "formats" if what == "formats" else f"side:{draw.choice(settings.sides)}"


def _opcodes(name: str, draw: random.Random) -> Sequence[str]:
    """All opcodes, or a few: any, or of those that the code of a rule, or of a pass without rules, names."""
    known = sorted(GENERATORS)
    if name.startswith("passes:") and draw.random() < 0.8:
        groups = passes.opcodes_named(passes.passes_of(name.removeprefix("passes:")))
        if groups:
            named = draw.choice(groups)
            chosen = draw.sample(named, min(draw.choice((2, 4, 8)), len(named)))
            return chosen + draw.sample(known, draw.choice((0, 0, 2, 6)))
    return draw.sample(known, draw.choice((0, 3, 10)))


def _pipeline(settings: Settings, draw: random.Random, exact: bool) -> str:
    """A pass alone, a sequence, or a platform's; where numbers are special, an exact pass."""
    names = settings.passes or passes.pass_names()
    if exact:
        exact_ones = [n for n in names if passes.is_exact(passes.passes_of(n))]
        return draw.choice(exact_ones or names)
    kind = draw.choice(("one", "one", "several", "platform"))
    if settings.passes or kind == "one":
        return draw.choice(names)
    if kind == "platform":
        return draw.choice(passes.PLATFORMS)
    return ",".join(draw.choices(names, k=draw.randint(2, 6)))


def _damaged(settings: Settings, number: int, what: str, draw: random.Random) -> tuple[str, str]:
    if settings.files:
        with open(draw.choice(settings.files), encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    else:
        text = Module(f"text {settings.seed}:{number}", steps=settings.size or 5).text
    choose = random.Random(f"{settings.seed}:{number}")
    if what == "mutants":
        return mutants.mutant(choose, text), "mutant"
    return texts.make_case(settings.seed, number, [text]), "reader"


def _partitioned(settings: Settings, number: int, opcode: str) -> dict[str, Any]:
    drawn = partitioning.random_program(settings.seed, opcode, number)
    detail = partitioning.difference(drawn)
    if not detail:
        return {"outcome": "partitioner: nothing found"}
    cause = re.sub(r"\d+", "#", detail.split("\n")[0])[:80]
    return {"outcome": "partitioner: found", "text": drawn.text, "check": "", "culprit": f"partitioner of {opcode}",
            "cause": cause, "detail": detail}  # fmt: skip


# ---------------------------------------------------------------- the run


def fuzz(
    settings: Settings,
    *,
    cases: int = 1000,
    seconds: float = float("inf"),
    jobs: int = 1,
    limits: Limits | None = None,
    folder: str | None = None,
    progress: Callable[[Result], None] | None = None,
    reduces: bool = True,
    until: Callable[[Result], bool] = lambda result: False,
) -> Result:
    """Runs cases up to a number, for some seconds at most, or until a condition holds.

    `folder` keeps the state and what is found; a run with the same settings goes on there. Raises `HloError` HLO0872
    for a folder of other settings.
    """
    run = _Run(settings.checked(), jobs, limits or Limits(), folder, progress, reduces)
    run.go(cases, seconds, until)
    return run.result


class _Run:
    """One run."""

    def __init__(
        self,
        settings: Settings,
        jobs: int,
        limits: Limits,
        folder: str | None,
        progress: Callable[[Result], None] | None,
        reduces: bool,
    ) -> None:
        self.jobs, self.limits, self.folder = jobs, limits, folder
        self.progress, self.reduces = progress, reduces
        self.result = _loaded(settings, folder)
        self.saved = time.monotonic()

    def go(self, cases: int, seconds: float, until: Callable[[Result], bool]) -> None:
        """Runs batches of cases; the state is saved also when it is interrupted."""
        start, result = time.monotonic(), self.result
        before = result.seconds
        try:
            with Workers(self.jobs, self.limits) as workers:
                while result.next < cases and time.monotonic() - start < seconds:
                    numbers = range(result.next, min(result.next + _BATCH * self.jobs, cases))
                    for number, answer in self._answers(workers, numbers):
                        self._take(number, answer)
                    result.seconds = before + time.monotonic() - start
                    self._save(always=False)
                    if self.progress is not None:
                        self.progress(result)
                    if until(result):
                        break
        finally:
            self._save(always=True)

    def _answers(self, workers: Workers, numbers: range) -> Iterator[tuple[int, Any]]:
        """Cases run side by side; those of a process that ends are run again alone."""
        settings = asdict(self.result.settings)
        shares = [list(numbers[k :: self.jobs]) for k in range(self.jobs)]
        shares = [share for share in shares if share]
        requests = [{"settings": settings, "numbers": share} for share in shares]
        found: dict[int, Any] = {}
        for share, answers in zip(shares, workers.ask(_TASK, requests), strict=True):
            if isinstance(answers, Died):
                answers = [
                    (workers.ask(_TASK, [{"settings": settings, "numbers": [number]}])[0], 0)
                    for number in share
                ]
                answers = [a if isinstance(a, Died) else a[0] for a, _ in answers]
            found |= dict(zip(share, answers, strict=True))
        return iter(sorted(found.items()))

    def _take(self, number: int, answer: Any) -> None:
        """Counts a case and adds a finding to the group of its cause; interrupted, it has counted nothing."""
        if isinstance(answer, Died):
            answer = {"outcome": "process ended", "culprit": "process", "cause": str(answer)}
            answer |= {"text": "", "check": "", "detail": ""}
        group = self._group_of(number, answer) if "cause" in answer else None
        counts, outcome = self.result.counts, answer["outcome"]
        counts[outcome] = counts.get(outcome, 0) + 1
        self.result.next = number + 1
        if group is not None and number not in group.cases:
            group.cases.append(number)

    def _group_of(self, number: int, answer: Mapping[str, Any]) -> Group:
        """The group of a finding, which is reduced where few of its cause were; a new one is written."""
        group = Group(answer["culprit"], answer["cause"], (), [number], answer["check"])
        group.text, group.detail = answer["text"], answer["detail"]
        alike = [g for g in self.result.groups if g.key[:2] == group.key[:2]]
        if sum(len(g.cases) for g in alike) >= MAX_REDUCED:
            return alike[0]
        if self.reduces and group.check and group.check != "reader":
            self._reduce(group)
        known = next((g for g in alike if g.key == group.key), None)
        if known is None:
            self._write(group, len(self.result.groups) + 1)
            self.result.groups.append(group)
        return known or group

    def _reduce(self, group: Group) -> None:
        condition = Condition(
            "finding", command=group.check, load_passes=self.result.settings.load_passes
        )
        try:
            done = reduce(group.text, condition, jobs=self.jobs, limits=self.limits)
        except (HloError, ValueError):
            return  # it is no module, or shows the fault with these inputs alone
        group.reduced = done.text
        view = HloModule(load_module(done.text, "reduced.hlo"))
        names = {op.opcode.name for op in view.instructions} - {"parameter", "constant", "tuple"}
        group.opcodes = tuple(sorted(names))

    # ------------------------------------------------------------ the folder

    def _write(self, group: Group, number: int) -> None:
        if self.folder is None:
            return
        for kind, text in (("found", group.text), ("reduced", group.reduced)):
            if text:
                path = os.path.join(self.folder, f"{number:03}.{kind}.hlo")
                with open(path, "wb") as file:
                    file.write(text.encode("utf-8", "surrogateescape"))

    def _save(self, *, always: bool) -> None:
        now = time.monotonic()
        if self.folder is None or (not always and now - self.saved < _SAVE_SECONDS):
            return
        self.saved = now
        path = os.path.join(self.folder, "state.json")
        with open(f"{path}.new", "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump(asdict(self.result), file)
        os.replace(f"{path}.new", path)


def _group(data: Mapping[str, Any]) -> Group:
    found = Group(**data)
    found.opcodes = tuple(found.opcodes)
    return found


def _loaded(settings: Settings, folder: str | None) -> Result:
    """The state of an earlier run in a folder; a new one elsewhere."""
    if folder is None:
        return Result(settings)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "state.json")
    if not os.path.exists(path):
        return Result(settings)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            state = json.load(file)
        known = Settings(**fields_of(state["settings"]))
        groups = [_group(g) for g in state["groups"]]
        result = Result(settings, state["next"], state["counts"], groups, state["seconds"])
    except (OSError, ValueError, TypeError, KeyError) as problem:
        raise error("HLO0872", f"{path} is no state of a run: {problem}") from None
    if known != settings:
        raise error(
            "HLO0872",
            f"{folder} is of a run with other settings",
            help="give the same options, or another folder",
        )
    return result
