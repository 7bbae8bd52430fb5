"""A sample of what `hlo-fuzz` runs: mutants through formats, pipelines and both platforms."""

from __future__ import annotations

import random

import pytest
from unit.corpus import repository_texts

from mlirhlo.debug.fuzz.mutants import STAGES, judge, mutant, mutants

TEXTS = [text for _, text in repository_texts() if len(text) <= 1500]


def test_mutants_end_coded_or_equal() -> None:
    outcomes = {n: judge(text, STAGES) for n, text in mutants(7, TEXTS, iter(range(25)))}
    assert not {n: outcome for n, outcome in outcomes.items() if " " in outcome}
    assert "equal" in outcomes.values()
    assert any(outcome.startswith("HLO") for outcome in outcomes.values())


def test_a_mutant_follows_from_its_seed() -> None:
    (text, *_) = TEXTS
    assert mutant(random.Random(1), text) == mutant(random.Random(1), text)
    assert len({mutant(random.Random(n), text) for n in range(20)}) > 10


def test_what_goes_wrong_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is raised that is no diagnostic, with the place where it was."""

    def crash(*arguments: object, **named: object) -> None:
        raise KeyError("oh", arguments, named)

    monkeypatch.setattr("mlirhlo.rewrites.simplify.cse.CsePass.run", crash)
    outcome = judge(TEXTS[0], ("pipelines",))
    assert outcome.startswith("pipeline cpu: KeyError at ")


def test_a_loop_without_end_is_not_compared() -> None:
    text = """HloModule endless
body { s = s32[] parameter(0) ROOT n = s32[] negate(s) }
condition { s = s32[] parameter(0) ROOT t = pred[] constant(true) }
ENTRY e { x = s32[] parameter(0) ROOT w = s32[] while(x), condition=condition, body=body }
"""
    assert judge(text, ("values",)) == "verified"
