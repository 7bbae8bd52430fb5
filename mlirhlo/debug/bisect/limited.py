"""A pipeline that stops: after so many passes, and in the last of them after so many rewrites."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.rewrites.control import PassControl, PassFilter, rewrites
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.pipeline import PipelinePass, run_pipeline

PassT = TypeVar("PassT", bound=ModulePass)


@dataclass(slots=True)
class Ran:
    """What a pipeline that may have stopped has done."""

    count: int = 0
    """Passes that ran; of the whole pipeline, when nothing stopped it."""
    name: str = ""
    """The last of them."""
    pipeline: str = ""
    """The innermost pipeline it belongs to."""
    rewrites: int = 0
    """Rewrites of the last pass; 0 where it does not count any."""
    counts_rewrites: bool = False
    rule: str = ""
    """The last rule that was applied."""
    matched: str = ""
    """The instruction that it matched."""


class _Filter(PassFilter):
    """Admits the first passes only."""

    def __init__(self, limit: int | None, ran: Ran) -> None:
        super().__init__()
        self.limit, self.ran, self.pipelines = limit, ran, list[str]()

    def admits(self, name: str) -> bool:
        if self.limit is not None and self.ran.count >= self.limit:
            return False
        self.ran.count += 1
        self.ran.name = name
        self.ran.pipeline = self._frames[-1].name if self._frames else ""
        return True


@dataclass(slots=True)
class _Control(PassControl):
    """Gives the last pass fuel."""

    ran: Ran = field(default_factory=Ran)
    limit: int | None = None
    last_fuel: int | None = None
    trace: Trace = field(default_factory=Trace)
    before: int = 0

    def fuelled(self, pass_: PassT) -> PassT:
        self.before = rewrites(pass_.name, self.trace)
        self.ran.counts_rewrites = hasattr(pass_, "fuel")
        self.ran.rule = self.ran.matched = ""
        if self.ran.count == self.limit and self.last_fuel is not None and self.ran.counts_rewrites:
            return cast(PassT, dataclasses.replace(cast(Any, pass_), fuel=self.last_fuel))
        return pass_


def run_limited(
    module: ModuleOp,
    passes: Sequence[ModulePass],
    limit: int | None = None,
    fuel: int | None = None,
    ran: Ran | None = None,
) -> Ran:
    """Runs `passes` on a module, `limit` of them at the most, and `fuel` rewrites of the last one.

    Passes of pipelines inside count one by one, as often as they are run. `ran` is filled in while they run, so
    that it says which pass raised. Raises what passes raise.
    """
    ran = Ran() if ran is None else ran
    trace = Trace()

    def listen(text: str, op: Instruction) -> None:
        rule, _, matched = text.partition(": ")
        ran.rule, ran.matched = rule, matched.replace("\n", " ")
        del op

    trace.listeners.append(listen)
    control = _Control(
        filter=_Filter(limit, ran), ran=ran, limit=limit, last_fuel=fuel, trace=trace
    )
    if all(isinstance(p, PipelinePass) for p in passes):
        for pipeline in passes:
            run_pipeline(module, [pipeline], trace=trace, control=control)
    else:
        run_pipeline(module, passes, trace=trace, control=control)
    ran.rewrites = rewrites(ran.name, trace) - control.before if ran.count else 0
    return ran
