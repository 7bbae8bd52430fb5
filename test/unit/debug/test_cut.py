"""Parts of modules replay to the values of the whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support import DATA

import mlirhlo
from mlirhlo.cli.hlo_cut import main
from mlirhlo.cli.run_hlo_module import main as run_hlo_module
from mlirhlo.debug.cut import cut, record, replays
from mlirhlo.debug.isolate import candidates
from mlirhlo.debug.trials.conditions import fake_arguments, load_module
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction

LOOP = """HloModule loop
cond { s = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  three = s32[] constant(3)
  ROOT c = pred[] compare(i, three), direction=LT }
body { s = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  one = s32[] constant(1)
  j = s32[] add(i, one)  x = f32[4] get-tuple-element(s), index=1  y = f32[4] add(x, x)
  ROOT t = (s32[], f32[4]) tuple(j, y) }
ENTRY e { x = f32[4] parameter(0)  z = s32[] constant(0)  t = (s32[], f32[4]) tuple(z, x)
  w = (s32[], f32[4]) while(t), condition=cond, body=body  o = f32[4] get-tuple-element(w), index=1
  tok = token[] after-all()  a = f32[4] add-dependency(o, tok)  ROOT n = f32[4] negate(a) }
"""


def named(view: HloModule, name: str) -> Instruction:
    return next(op for op in view.instructions if op.instruction_name == name)


@pytest.mark.parametrize("program", ["attention_causal", "cond_switch", "scan_rnn"])
def test_every_instruction_replays(program: str) -> None:
    files = sorted((DATA / "programs" / program).glob("*.hlo"))
    if not files:
        pytest.skip("no such program")
    module = load_module(files[0].read_text(), program)
    view, arguments = HloModule(module), fake_arguments(module, 42)
    for op in list(candidates(view))[:12]:
        part = cut(view, [op], height=2)
        try:
            recording = record(view, part, arguments)
        except HloError as problem:
            assert problem.code == "HLO0869"  # noqa: PT017  a branch that is not taken
            continue
        assert replays(part, recording) == ""


@pytest.mark.parametrize("execution, factor", [(1, 1), (3, 4)])
def test_one_run_of_a_loop(execution: int, factor: int) -> None:
    view = HloModule(load_module(LOOP, "l"))
    part = cut(view, [named(view, "y")], height=1)
    x = np.arange(4, dtype=np.float32)
    recording = record(view, part, [x], execution)
    assert recording.executions == 3
    np.testing.assert_array_equal(np.asarray(recording.inputs[0]), x * factor)


def test_between_two_frontiers() -> None:
    view = HloModule(load_module(LOOP, "l"))
    part = cut(view, [named(view, "n")], frontier=[named(view, "o")])
    assert [op.instruction_name for op in part.parameters] == ["o"]
    assert [op.opcode.name for op in HloModule(part.module).entry.instructions] == [
        *("parameter", "after-all", "add-dependency", "negate")
    ]


def test_what_cannot_be_cut() -> None:
    view = HloModule(load_module(LOOP, "l"))
    with pytest.raises(HloError, match="HLO0867"):
        cut(view, [named(view, "y"), named(view, "n")])
    with pytest.raises(HloError, match="HLO0868"):
        cut(view, [named(view, "a")], frontier=[named(view, "tok")])
    with pytest.raises(HloError, match="HLO0869"):
        record(view, cut(view, [named(view, "y")], height=1), [np.zeros(4, np.float32)], 9)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop.hlo").write_text(LOOP)
    assert main(["loop.hlo", "n", "--since=w", "--benchmark", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["differs"] == ""
    assert facts["microseconds"] > 0
    assert run_hlo_module(["--platform=CPU", "--input_npz=n.npz", "n.hlo"]) == 0
    assert main(["loop.hlo", "nn"]) == 1
    assert "did you mean 'n'" in capsys.readouterr().err


def test_values_are_written_beside_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    (there / "loop.hlo").write_text(LOOP)
    assert main([str(there / "loop.hlo"), "y", "-o", str(there / "part.hlo")]) == 0
    assert {path.name for path in there.iterdir()} == {"loop.hlo", "part.hlo", "part.npz"}
    assert not list(here.iterdir())


ENDLESS = """
body { s = s32[2] parameter(0) ROOT n = s32[2] negate(s) }
condition { s = s32[2] parameter(0) ROOT t = pred[] constant(true) }
ENTRY e { x = s32[2] parameter(0) w = s32[2] while(x), condition=condition, body=body ROOT r = s32[2] abs(w) }
"""


def test_a_module_that_does_not_end_is_stopped() -> None:
    module = mlirhlo.parse(ENDLESS)
    by_name = {op.instruction_name: op for op in module.hlo.instructions}
    arguments = [np.array([1, 2], np.int32)]
    part = cut(module.hlo, [by_name["n"]], height=0)
    recording = record(module.hlo, part, arguments, 3, timeout=0.2)
    assert not recording.ended
    assert recording.executions > 3
    np.testing.assert_array_equal(np.asarray(recording.outputs[0]), [-1, -2])
    part = cut(module.hlo, [by_name["r"]], height=0)
    with pytest.raises(HloError, match="has not ended") as caught:
        record(module.hlo, part, arguments, timeout=0.2)
    assert caught.value.code == "HLO0869"
