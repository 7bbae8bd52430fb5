"""The search for a smaller module: attempts in order, several at once, each verdict kept.

Attempts are deterministic: a batch goes to the worker processes at once, and the first of it that meets the condition
is taken, whichever ended first. So a run that is started again with the verdicts of an interrupted one (`verdicts`)
goes the same way, without evaluating anything twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.debug.reduce import cuts, hlo, mlir, sizes
from mlirhlo.debug.trials.conditions import Condition, Verdict
from mlirhlo.debug.trials.texts import is_hlo, module_text, read_module
from mlirhlo.debug.trials.workers import Died, Limits, Workers
from mlirhlo.diagnostics import HloError, error

MAX_ROUNDS = 12
_TIME_FACTOR, _LEAST_SECONDS = 4.0, 2.0
"""What an attempt may take: so many times as long as the whole module. Attempts make loops endless."""
P = ParamSpec("P")
_TASK = "mlirhlo.debug.trials.conditions:evaluate"

Size: TypeAlias = tuple[int, int, int]
"""Instructions, elements of all shapes, characters."""


@dataclass(frozen=True, slots=True)
class Event:
    """How far a reduction is."""

    reducer: str
    instructions: int
    evaluated: int
    is_smaller: bool
    """Whether a smaller module was just found."""
    text: str = field(default="", repr=False)
    """The smallest module so far."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """The smallest module that was found."""

    text: str
    verdict: Verdict
    instructions_before: int
    instructions: int
    evaluated: int
    """Modules that were evaluated."""
    cached: int
    """Modules whose verdict was known."""
    seconds: float
    rounds: int


def reduce(
    text: str,
    condition: Condition,
    *,
    name: str = "module.hlo",
    jobs: int = 1,
    limits: Limits | None = None,
    verdicts: str | None = None,
    seed: int = 0,
    progress: Callable[[Event], None] | None = None,
) -> Reduction:
    """The smallest module that can be found for which `condition` holds as it does for `text`.

    `jobs`: processes. `limits`: of one evaluation. `verdicts`: a file that keeps what is known, for a run that is
    interrupted. `seed`: another order of attempts. Raises `HloError` HLO0862 when the condition does not hold for
    `text`, and what reading it raises.
    """
    condition.checked()
    with Workers(jobs, limits or Limits()) as workers:
        search = _Search(workers, condition, name, jobs, Verdicts(verdicts), seed, progress)
        return search.run(text)


class Verdicts:
    """Verdicts by module and condition, in a file that only grows."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._known: dict[str, Verdict] = {}
        if path is not None and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    try:
                        key, holds, cause, detail = json.loads(line)
                    except ValueError:
                        continue  # the line that an interrupted run was writing
                    self._known[key] = Verdict(holds, cause, detail)

    @staticmethod
    def key(text: str, condition: Condition) -> str:
        """What verdicts are kept under."""
        whole = json.dumps(condition.as_json(), sort_keys=True) + "\0" + text
        return hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()

    def get(self, key: str) -> Verdict | None:
        """A known verdict."""
        return self._known.get(key)

    def add(self, key: str, verdict: Verdict) -> None:
        """Keeps a verdict."""
        self._known[key] = verdict
        if self._path is not None:
            row = json.dumps([key, verdict.holds, verdict.cause, verdict.detail[:2000]])
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(row + "\n")


class _Search:
    """One reduction."""

    def __init__(
        self,
        workers: Workers,
        condition: Condition,
        name: str,
        jobs: int,
        verdicts: Verdicts,
        seed: int,
        progress: Callable[[Event], None] | None,
    ) -> None:
        self.workers, self.condition, self.name, self.jobs = workers, condition, name, jobs
        self.verdicts, self.seed, self.progress = verdicts, seed, progress
        self.evaluated = self.cached = 0
        self.reducer = "start"
        self.is_hlo = True
        self.text = ""
        self.size: Size = (0, 0, 0)
        self.verdict = Verdict(False)

    def run(self, text: str) -> Reduction:
        """Reduces until nothing gets smaller."""
        start = time.perf_counter()
        first = self._read(text)
        self.is_hlo = is_hlo(first)
        before = self._count(first)
        self._start(text, first)
        rounds = 0
        while rounds < MAX_ROUNDS:
            rounds += 1
            size = self.size
            self._round()
            if self.size >= size:
                break
        after = self._count(self._read(self.text))
        seconds = time.perf_counter() - start
        return Reduction(
            self.text, self.verdict, before, after, self.evaluated, self.cached, seconds, rounds
        )

    def _start(self, text: str, module: ModuleOp) -> None:
        # Evaluated also where its verdict is known: how long that takes is the limit of attempts.
        verdict = self._evaluated([text])[0]
        self.verdicts.add(Verdicts.key(text, self.condition), verdict)
        if not verdict.holds:
            raise error(
                "HLO0862",
                f"{self.name}: the condition '{self.condition.kind}' does not hold for the module"
                + (f": {verdict.detail or verdict.cause}" if verdict.cause else ""),
                help="what is to be reduced must show the fault with the same options",
            )
        self.workers.tighten(_TIME_FACTOR, _LEAST_SECONDS)
        self.text, self.verdict, self.size = text, verdict, (1 << 60, 0, 0)
        if self.is_hlo:
            hlo.drop_metadata(module)
        plain = module_text(module)
        self._accept_first([plain])
        if self.size[0] == 1 << 60:  # the condition is about the text itself
            self.size = self._size(self._read(text), text)

    def _round(self) -> None:
        """Every reducer once."""
        if self.is_hlo:
            self._search("cut behind", cuts.keep_before, smallest=True)
            self._search("cut before", cuts.keep_behind, smallest=False)
            for reducer in _ordered(hlo.REDUCERS, self.seed):
                self._run(reducer)
            self._shrink()
        else:
            for reducer in _ordered(mlir.MLIR_REDUCERS, self.seed):
                self._run(reducer)

    # ------------------------------------------------------------ reducers

    def _search(self, name: str, cut: Callable[[ModuleOp, int], None], *, smallest: bool) -> None:
        """Finds the smallest (or largest) position at which a cut module meets the condition, by halves."""
        self.reducer = name
        original = self.text
        low, high = 0, cuts.positions(self._read(original))  # bad at one end, good at the other
        while high - low > 1:
            count = min(self.jobs, high - low - 1)
            probes = [low + (high - low) * (k + 1) // (count + 1) for k in range(count)]
            texts = [self._changed(original, cut, p) for p in probes]
            known = self._verdicts([t or original for t in texts])
            holds = [bool(t) and self._is_same(v) for t, v in zip(texts, known, strict=True)]
            order = range(count) if smallest else reversed(range(count))
            best = next((k for k in order if holds[k]), None)
            if best is not None:
                self._accept_first([texts[best] or ""])
            if smallest:
                low, high = _narrowed(low, high, probes, best)
            else:
                flipped = None if best is None else count - 1 - best
                mirror = [high + low - p for p in reversed(probes)]
                a, b = _narrowed(low, high, mirror, flipped)
                low, high = high + low - b, high + low - a

    def _run(self, reducer: hlo.Reducer) -> None:
        """Changes many places at once, then fewer, from the last to the first."""
        self.reducer = reducer.name
        count = reducer.places(self._read(self.text))
        chunk = count
        while chunk:
            end = count
            while end > 0:
                ranges = list(_ranges(end, chunk, self.jobs))
                original = self.text
                texts = [self._changed(original, reducer.apply, r) for r in ranges]
                taken = self._accept_first([t for t in texts if t])
                if taken is None:
                    end = ranges[-1].start
                    continue
                start = ranges[[k for k, t in enumerate(texts) if t][taken]].start
                count = reducer.places(self._read(self.text))
                end = min(start, count)
            chunk = min(chunk // 2, count)

    def _shrink(self) -> None:
        """Makes dimensions smaller, size by size."""
        self.reducer = "shrink dimensions"
        for size in sizes.sizes_of(self.text):
            texts = [self._changed(t, _as_it_is) for t in sizes.smaller(self.text, size)]
            pending = [t for t in texts if t]
            while pending:
                if self._accept_first(pending[: self.jobs]) is not None:
                    break
                pending = pending[self.jobs :]

    # ------------------------------------------------------------ modules

    def _read(self, text: str) -> ModuleOp:
        return read_module(text.encode("utf-8", "surrogateescape"), self.name)

    def _changed(
        self,
        text: str,
        change: Callable[Concatenate[ModuleOp, P], None],
        *places: P.args,
        **rest: P.kwargs,
    ) -> str | None:
        """A changed module without what is dead then; None when it cannot be changed so, or is not smaller."""
        try:
            module = self._read(text)
            change(module, *places, **rest)
            (hlo.tidy if self.is_hlo else mlir.tidy)(module)
            new = module_text(module)
            return new if self._size(module, new) < self.size else None
        except Exception:  # noqa: BLE001  an attempt: what does not fit a module is no error
            return None

    def _size(self, module: ModuleOp, text: str) -> Size:
        elements = sizes.elements_of(text) if self.is_hlo else 0
        return self._count(module), elements, len(text)

    def _count(self, module: ModuleOp) -> int:
        if not self.is_hlo:
            return sum(1 for _ in module.walk())
        return sum(1 for op in module.walk() if op.name not in _STRUCTURE)

    # ------------------------------------------------------------ verdicts

    def _is_same(self, verdict: Verdict) -> bool:
        return verdict.holds and verdict.cause == self.verdict.cause

    def _accept_first(self, texts: Sequence[str]) -> int | None:
        """Takes the first text that meets the condition and is smaller; its index."""
        for start in range(0, len(texts), self.jobs):
            batch = texts[start : start + self.jobs]
            for k, verdict in enumerate(self._verdicts(batch)):
                size = (
                    self._size(self._read(batch[k]), batch[k]) if self._is_same(verdict) else None
                )
                if size is not None and size < self.size:
                    self.text, self.size, self.verdict = batch[k], size, verdict
                    self._tell(is_smaller=True)
                    return start + k
        return None

    def _verdicts(self, texts: Sequence[str]) -> list[Verdict]:
        keys = [Verdicts.key(text, self.condition) for text in texts]
        unknown = [k for k, key in enumerate(keys) if self.verdicts.get(key) is None]
        unknown = [
            k for n, k in enumerate(unknown) if keys[k] not in [keys[j] for j in unknown[:n]]
        ]
        self.cached += len(texts) - len(unknown)
        if unknown:
            for k, verdict in zip(
                unknown, self._evaluated([texts[k] for k in unknown]), strict=True
            ):
                self.verdicts.add(keys[k], verdict)
            self._tell(is_smaller=False)
        found = [self.verdicts.get(key) for key in keys]
        return [verdict for verdict in found if verdict is not None]

    def _evaluated(self, texts: Sequence[str]) -> list[Verdict]:
        """Verdicts of worker processes, side by side."""
        requests: list[dict[str, Any]] = [
            {"text": text, "condition": self.condition.as_json(), "name": self.name}
            for text in texts
        ]
        self.evaluated += len(texts)
        return [self._verdict(answer) for answer in self.workers.ask(_TASK, requests)]

    def _verdict(self, answer: Any) -> Verdict:
        if isinstance(answer, Died):
            is_crash = answer.cause.startswith(("signal", "exit"))
            return Verdict(self.condition.kind == "crashes" and is_crash, answer.cause, str(answer))
        return Verdict(**answer)

    def _tell(self, *, is_smaller: bool) -> None:
        if self.progress is not None:
            count = min(self.size[0], 1 << 40)
            self.progress(Event(self.reducer, count, self.evaluated, is_smaller, self.text))


_STRUCTURE = frozenset({"builtin.module", "hlo.computation", "hlo.return"})


def _as_it_is(_: ModuleOp) -> None:
    """For texts that were changed already."""


def _ordered(reducers: Sequence[hlo.Reducer], seed: int) -> Sequence[hlo.Reducer]:
    """The reducers in the order of a seed; 0 is their own."""
    shift = seed % len(reducers)
    return [*reducers[shift:], *reducers[:shift]]


def _ranges(end: int, chunk: int, jobs: int) -> Iterator[range]:
    """Up to `jobs` ranges of `chunk` places before `end`, the last first."""
    for _ in range(jobs):
        if end <= 0:
            return
        yield range(max(end - chunk, 0), end)
        end -= chunk


def _narrowed(low: int, high: int, probes: Sequence[int], best: int | None) -> tuple[int, int]:
    """Where the smallest good position is now known to be: above `low`, at most `high`."""
    if best is None:
        return probes[-1], high
    return (probes[best - 1] if best else low), probes[best]


__all__ = ["Event", "HloError", "Reduction", "Verdicts", "reduce"]
