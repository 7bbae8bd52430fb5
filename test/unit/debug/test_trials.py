"""Modules tried in processes with limits: answers, deaths, temporary files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from mlirhlo.debug.trials import rounding
from mlirhlo.debug.trials.conditions import Condition, difference, judge
from mlirhlo.debug.trials.sides import Side
from mlirhlo.debug.trials.workers import Died, Limits, Workers
from mlirhlo.diagnostics import HloError

EVALUATE = "mlirhlo.debug.trials.conditions:evaluate"

ENDLESS = """HloModule endless
c { p = s32[] parameter(0)  ROOT t = pred[] constant(true) }
b { p = s32[] parameter(0)  ROOT o = s32[] add(p, p) }
ENTRY e { x = s32[] parameter(0)  ROOT w = s32[] while(x), condition=c, body=b }
"""
HUGE = """HloModule huge
ENTRY e { x = f32[] parameter(0)  ROOT b = f32[100000,100000] broadcast(x), dimensions={} }
"""
PLAIN = "HloModule plain\nENTRY e { x = f32[4] parameter(0)  ROOT n = f32[4] negate(x) }\n"


def request(text: str, condition: Condition) -> dict[str, object]:
    return {"text": text, "condition": condition.as_json()}


@pytest.mark.slow
def test_what_does_not_end_or_fit_is_an_answer() -> None:
    before = set(os.listdir(tempfile.gettempdir()))
    condition = Condition("differs", ("Interpreter", "Interpreter"))
    with Workers(1, Limits(1.0, 4 << 30)) as workers:
        assert workers.ask(EVALUATE, [request(ENDLESS, condition)]) == [Died("time")]
        (answer,) = workers.ask(EVALUATE, [request(HUGE, condition)])
        assert answer == Died("memory") or not answer["holds"]
        (answer,) = workers.ask(EVALUATE, [request(PLAIN, condition)])
        assert not answer["holds"]
    after = set(os.listdir(tempfile.gettempdir())) - before
    assert not [name for name in after if name.startswith("hlo-trials-")]


@pytest.mark.slow
def test_a_process_that_is_killed_is_an_answer() -> None:
    command = Condition("command", command="sh -c 'kill -SEGV $PPID'")
    with Workers(1) as workers:
        assert workers.ask(EVALUATE, [request(PLAIN, command)]) == [Died("signal 11")]
        (answer,) = workers.ask(
            EVALUATE, [request(PLAIN, Condition("command", command="grep -q negate"))]
        )
        assert answer["holds"]


@pytest.mark.parametrize(
    "text, passes", [("Interpreter", ""), ("cpu:algsimp,dce", "algsimp,dce"), ("CUDA", "")]
)
def test_sides(text: str, passes: str) -> None:
    assert Side.parse(text).passes == passes


def test_no_side() -> None:
    with pytest.raises(HloError, match="HLO0860"):
        Side.parse("Cuda9")


def test_a_command_is_a_side(tmp_path: Path) -> None:
    script = f"{tmp_path}/side.py"
    with open(script, "w") as file:
        file.write(
            "import sys, numpy as np\nx = np.load(sys.argv[2])['in0']\nnp.savez(sys.argv[3], out0=-x * FACTOR)\n"
        )
    text = Path(script).read_text()
    for factor, holds in ((1, False), (2, True)):
        with open(script, "w") as file:
            file.write(text.replace("FACTOR", str(factor)))
        sides = (f"command:python3 {script}", "Interpreter")
        assert judge(PLAIN, Condition("differs", sides)).holds is holds


def test_a_diagnostic_is_a_condition() -> None:
    text = PLAIN.replace("negate(x)", 'custom-call(x), custom_call_target="nobody"')
    assert judge(text, Condition("diagnostic", code="HLO0350")).holds
    assert not judge(PLAIN, Condition("diagnostic", code="HLO0350")).holds


def test_rounding_is_of_a_type_s_own_size() -> None:
    """A sum in bf16 may be off by bf16's units, one in f32 may not."""
    from mlirhlo.formats.hlo_text import parse_module
    from mlirhlo.interp import run_module

    x = np.linspace(-1, 1, 64, dtype=np.float32)
    text = """ENTRY e { x = f32[64] parameter(0)  c = T[64] convert(x)  s = T[64] sine(c)
      ROOT r = f32[64] convert(s) }"""
    for kind, is_allowed in (("bf16", True), ("f32", False)):
        module = parse_module(text.replace("T[", f"{kind}["), "m.hlo")
        results = [np.asarray(run_module(module, [x])[0])]
        off = [results[0] * np.float32(1.002)]
        found = difference(results, off, lambda m=module, r=results: rounding.movements(m, [x], r))
        assert (not found) is is_allowed


def test_many_elements_off_by_a_little_are_no_rounding() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=1000).astype(np.float32)
    movement = rounding.Movement(np.full(1000, 1e-5), 1e-6)
    assert movement.allows(x, x + rng.normal(size=1000).astype(np.float32) * np.float32(1e-6))
    assert not movement.allows(x, x + np.float32(2e-5))
