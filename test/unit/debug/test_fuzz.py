"""Random modules through what is checked: findings are reduced, told by cause, and kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from planted.bugs import WRONG_PASSES
from support import SEED

from mlirhlo.debug.fuzz import passes
from mlirhlo.debug.fuzz.campaign import WHAT, Settings, fuzz, run_case
from mlirhlo.debug.fuzz.checks import check, with_inputs
from mlirhlo.debug.fuzz.generators.modules import Module
from mlirhlo.debug.trials.conditions import load_module, load_passes
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.interp import run_module

WRONG = Settings(3, ("passes",), passes=("wrong{only=floor_is_lost}",), load_passes=(WRONG_PASSES,))


@pytest.mark.parametrize("what", WHAT)
def test_a_case_follows_from_its_seed_and_number(what: str) -> None:
    settings = Settings(SEED, (what,))
    for number in range(4):
        assert run_case(settings, number) == run_case(settings, number)
        assert run_case(settings, number)["outcome"].startswith(what)


@pytest.mark.slow
def test_a_wrong_rule_is_found_reduced_and_kept(tmp_path: Path) -> None:
    folder = str(tmp_path / "corpus")
    result = fuzz(WRONG, cases=4000, jobs=2, folder=folder, until=lambda r: bool(r.groups))
    (group,) = result.groups
    assert (group.culprit, group.cause) == ("wrong", "values differ")
    assert "floor" in group.opcodes
    assert len(group.opcodes) <= 2
    assert " floor(" in (tmp_path / "corpus" / "001.reduced.hlo").read_text()
    again = fuzz(WRONG, cases=result.next, folder=folder)
    assert (again.next, again.groups) == (result.next, result.groups)
    with pytest.raises(HloError) as raised:
        fuzz(Settings(4), cases=1, folder=folder)
    assert raised.value.code == "HLO0872"
    Path(folder, "state.json").write_text(json.dumps({"settings": {}}))
    with pytest.raises(HloError) as raised:
        fuzz(WRONG, cases=1, folder=folder)
    assert raised.value.code == "HLO0872"


def test_inputs_become_constants() -> None:
    for number in range(5):
        module = Module(f"constants {SEED}:{number}", steps=5)
        closed = load_module(with_inputs(module.text, module.inputs), "closed.hlo")
        assert not HloModule(closed).entry.parameters
        results = [str(r) for r in run_module(load_module(module.text, "m.hlo"), module.inputs)]
        assert [str(r) for r in run_module(closed, [])] == results


def test_modules_of_few_opcodes_and_a_size() -> None:
    texts = [Module(f"few {SEED}:{n}", steps=20, opcodes=("add", "sort")).text for n in range(4)]
    assert all(load_module(text, "few.hlo") for text in texts)


def test_checks() -> None:
    load_passes((WRONG_PASSES,))
    text = "HloModule m\nENTRY e { x = f32[8] parameter(0)\n ROOT f = f32[8] floor(x) }\n"
    found = check(text, "passes:wrong{only=floor_is_lost}")
    assert found is not None
    assert found.cause == "values differ"
    for name in ("passes:algsimp,cse", "side:CPU", "formats", "reader"):
        assert check(text, name) is None
    assert check("HloModule", "passes:cse") is None
    with pytest.raises(HloError) as raised:
        check(text, "nothing")
    assert raised.value.code == "HLO0860"


def test_opcodes_of_a_rule_are_those_that_its_code_names() -> None:
    (named,) = passes.opcodes_named(
        passes.passes_of("tuple-simplifier{only=get_tuple_element_of_tuple}")
    )
    assert named == ["get-tuple-element", "tuple"]
    assert len(passes.opcodes_named(passes.passes_of("algsimp"))) > 100
    assert passes.opcodes_named(passes.passes_of("dce"))
