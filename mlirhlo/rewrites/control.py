"""Which passes of a compilation run, and how far: XLA's flags about passes.

`--xla_disable_hlo_passes` and `--xla_enable_hlo_passes_only` take entries between commas:

    algsimp                     the pass of that name, or all passes of the pipeline of that name
    algsimp:2                   its run number 2, counted from 0
    simplification/algsimp      the pass in that pipeline only
    simplification/algsimp:1    its run number 1 in each run of the pipeline
    @17                         the pass that is the 17th to be reached, pipelines counted, from 1

Pipelines are entered whatever the entries say. Source: the filter observed in libtpu (reference of
the passes, "Pass filters").
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.rewrites import xla_names

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from mlirhlo.rewrites.passes import Trace
    from mlirhlo.rewrites.rules import RulePass

PassT = TypeVar("PassT", bound="ModulePass")

_ENTRY = re.compile(r"@(?P<id>\d+)|(?:(?P<pipeline>[^@/:]+)/)?(?P<name>[^@/:]+)(?::(?P<run>\d+))?")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a flag."""

    name: str = ""
    pipeline: str = ""
    run: int | None = None
    id: int | None = None

    @staticmethod
    def parse(text: str, flag: str) -> Entry:
        """Raises `HloError` HLO0407 for what is no entry."""
        match = _ENTRY.fullmatch(text.strip())
        if match is None:
            raise error(
                "HLO0407",
                f"--{flag}: '{text}' names no pass",
                help="entries are NAME, NAME:RUN, PIPELINE/NAME, PIPELINE/NAME:RUN, @ID",
            )
        if match["id"] is not None:
            return Entry(id=int(match["id"]))
        run = None if match["run"] is None else int(match["run"])
        name = xla_names.ALIASES.get(match["name"], match["name"])
        return Entry(name, match["pipeline"] or "", run)


@dataclass(slots=True)
class _Frame:
    """A pipeline that is running."""

    name: str
    number: int
    """Which of its runs this is."""
    passes: Counter[str] = field(default_factory=Counter[str])


class PassFilter:
    """Says of each pass, when it is reached, whether it runs; one object a module."""

    def __init__(
        self, disabled: Iterable[str] = (), only: Iterable[str] = (), *, none: bool = False
    ) -> None:
        """`none`: no pass runs. Raises `HloError`: HLO0407, HLO0408 when both lists are given."""
        self._disabled = [Entry.parse(e, "xla_disable_hlo_passes") for e in disabled]
        self._only = [Entry.parse(e, "xla_enable_hlo_passes_only") for e in only]
        if self._disabled and self._only:
            raise error(
                "HLO0408",
                "--xla_disable_hlo_passes and --xla_enable_hlo_passes_only are both given",
                help="give one of them",
            )
        self._none = none
        self._frames: list[_Frame] = []
        self._runs: Counter[str] = Counter()
        self._reached = 0

    @contextmanager
    def pipeline(self, name: str) -> Generator[None]:
        """While the pipeline of this name runs."""
        self._frames.append(_Frame(name, self._runs[f"{name}/"]))
        self._runs[f"{name}/"] += 1
        try:
            yield
        finally:
            self._frames.pop()

    def entered(self) -> None:
        """A pipeline among the passes of another has been reached."""
        self._reached += 1

    def admits(self, name: str) -> bool:
        """Whether the pass of this name, reached now, runs."""
        self._reached += 1
        if self._only:
            found = any(self._matches(e, name) for e in self._only)
        else:
            found = not any(self._matches(e, name) for e in self._disabled)
        self._runs[name] += 1
        for frame in self._frames:
            frame.passes[name] += 1
        return found and not self._none

    def _matches(self, entry: Entry, name: str) -> bool:
        if entry.id is not None:
            return entry.id == self._reached
        if entry.pipeline:
            return entry.name == name and any(
                frame.name == entry.pipeline and entry.run in (None, frame.passes[name])
                for frame in self._frames
            )
        if entry.name == name and entry.run in (None, self._runs[name]):
            return True
        return any(f.name == entry.name and entry.run in (None, f.number) for f in self._frames)


@dataclass(slots=True)
class PassControl:
    """What the flags say about the passes of one module."""

    filter: PassFilter = field(default_factory=PassFilter)
    fuel: dict[str, int] = field(default_factory=dict[str, int])
    """`--xla_fuel=PASS=N`: rewrites left to all runs of a pass together."""
    most_rounds_is_error: bool = False
    """`--xla_unsupported_crash_on_hlo_pass_fix_max_iterations`."""
    silent_change_is_error: bool = False
    """`--xla_unsupported_crash_on_hlo_pass_silent_hlo_change`."""
    false_change_is_error: bool = False
    """`--xla_unsupported_crash_on_hlo_pass_noop_change`."""

    verifies_foreign: bool = True
    """Whether the module is verified after passes from outside of the project."""

    def fuelled(self, pass_: PassT) -> PassT:
        """The pass with no more rewrites than are left to it.

        Raises `HloError` HLO0409 for a pass that does not count its rewrites.
        """
        left = self.fuel.get(pass_.name)
        if left is None:
            return pass_
        if not hasattr(pass_, "fuel"):
            raise error(
                "HLO0409",
                f"--xla_fuel: pass '{pass_.name}' does not count its rewrites",
                help="passes with an option `fuel` do: --help-pass NAME",
            )
        counting = cast("RulePass", pass_)
        limit = left if counting.fuel is None else min(left, counting.fuel)
        return cast(PassT, dataclasses.replace(counting, fuel=limit))

    def spent(self, name: str, before: int, trace: Trace) -> None:
        """Takes off what a pass did since its count of rewrites was `before`."""
        if name in self.fuel:
            self.fuel[name] -= rewrites(name, trace) - before


def rewrites(name: str, trace: Trace) -> int:
    """Rewrites of all rules of a pass so far."""
    return sum(count for (pass_name, _), count in trace.rule_counts.items() if pass_name == name)
