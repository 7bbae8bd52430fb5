"""Flags about passes: which of them run, how far, and what is made of pipelines that do not end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import HloModule
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.rewrites.control import Entry, PassControl, PassFilter
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.pipeline import MOST_ROUNDS, PipelinePass, run_pipeline

TEXT = "HloModule m\nENTRY e {\n  ROOT x = f32[4] parameter(0)\n  y = f32[4] negate(x)\n}\n"


@dataclass(frozen=True)
class Tick(HloPass):
    """Counts its runs as rewrites; changes nothing, and says what it is told."""

    name = "tick"
    says: bool = False
    fuel: int | None = None

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Counts."""
        if self.fuel is None or self.fuel > 0:
            trace.rule_counts[self.name, "rule"] += 1
        return self.says


class Tock(Tick):
    """Another one."""

    name = "tock"


@dataclass(frozen=True)
class Silent(HloPass):
    """Erases the last instruction before the root, and says nothing."""

    name = "silent"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Erases."""
        (*_, unread), _ = module.instructions, trace
        unread.detach()
        unread.erase()
        return False


class Watcher:
    """Writes down which passes run."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """Nothing."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        if not isinstance(pass_, PipelinePass):
            self.ran.append(pass_.name)

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        """Nothing."""


PIPELINE = (
    Tick(),
    PipelinePass("inner", (Tick(), Tock())),
    Tock(),
    PipelinePass("inner", (Tock(), Tick())),
)
"""Reached as 1 tick, 2 inner, 3 tick, 4 tock, 5 tock, 6 inner, 7 tock, 8 tick."""


@pytest.mark.parametrize(
    "entries, ran",
    [
        (("tick",), "tick tick tick"),
        (("tick:1",), "tick"),
        (("inner",), "tick tock tock tick"),
        (("inner:1",), "tock tick"),
        (("inner/tick",), "tick tick"),
        (("inner/tick:0", "@5"), "tick tock tick"),
        (("outer",), "tick tick tock tock tock tick"),
        (("@3",), "tick"),
        (("@2",), ""),
        (("nothing",), ""),
    ],
)
def test_entries_pick_passes(entries: tuple[str, ...], ran: str) -> None:
    for only in (True, False):
        watcher = Watcher()
        chosen = PassFilter(only=entries) if only else PassFilter(entries)
        control = PassControl(chosen)
        run_pipeline(parse_module(TEXT), PIPELINE, [watcher], name="outer", control=control)
        if only:
            assert " ".join(watcher.ran) == ran
        else:
            assert len(watcher.ran) == 6 - len(ran.split())


@pytest.mark.parametrize("text", ["", "x:", "x:abc", "x:1:2", "@", "@abc", "a/b/c", "/x"])
def test_what_is_no_entry_is_refused(text: str) -> None:
    with pytest.raises(HloError) as caught:
        Entry.parse(text, "xla_enable_hlo_passes_only")
    assert caught.value.code == "HLO0407"


def test_one_list_at_a_time() -> None:
    with pytest.raises(HloError) as caught:
        PassFilter(["a"], ["b"])
    assert caught.value.code == "HLO0408"


def test_fuel_is_one_for_all_runs_of_a_pass() -> None:
    control = PassControl(fuel={"tick": 2})
    tick, tock = Tick(says=True), Tock(says=True)
    pipeline = (
        tick,
        PipelinePass("inner", (tick, tock)),
        tock,
        PipelinePass("inner", (tock, tick)),
    )
    result = run_pipeline(parse_module(TEXT), pipeline, control=control)
    assert result.trace.rule_counts == {("tick", "rule"): 2, ("tock", "rule"): 3}
    assert control.fuel == {"tick": 0}


def test_a_pass_in_a_pipeline_waits_for_a_change_when_it_found_nothing_to_do() -> None:
    idle, busy = Tick(), Tock(says=True)
    inner = PipelinePass("inner", (idle, idle, busy, idle))
    result = run_pipeline(parse_module(TEXT), [inner, inner, idle])
    assert result.trace.rule_counts == {("tick", "rule"): 4, ("tock", "rule"): 2}


def test_a_pipeline_that_does_not_end_says_it_changed_nothing_or_fails() -> None:
    module = parse_module(TEXT)
    endless = PipelinePass("endless", (Tick(says=True),), fix_point=True)
    result = run_pipeline(module, [endless])
    assert not result.changed
    assert result.trace.rule_counts["tick", "rule"] == MOST_ROUNDS
    with pytest.raises(HloError) as caught:
        run_pipeline(module, [endless], control=PassControl(most_rounds_is_error=True))
    assert caught.value.code == "HLO0414"


def test_passes_that_do_not_tell_the_truth_fail_where_that_is_asked() -> None:
    module = parse_module(TEXT)
    run_pipeline(module, [Tick(says=True)])
    with pytest.raises(HloError) as caught:
        run_pipeline(module, [Tick(says=True)], control=PassControl(false_change_is_error=True))
    assert caught.value.code == "HLO0413"
    with pytest.raises(HloError) as caught:
        run_pipeline(module, [Silent()], control=PassControl(silent_change_is_error=True))
    assert caught.value.code == "HLO0412"
