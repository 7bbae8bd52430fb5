"""Wrong passes and wrong recorded stages are found."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
from planted.bugs import WRONG_PASSES
from planted.dumps import archives, plant, unpack
from support import DATA, SHARED

from mlirhlo.cli.hlo_bisect import main
from mlirhlo.debug.bisect.compare import DIFFERS, SAME, UNKNOWN, Given, compare
from mlirhlo.debug.bisect.folders import bisect_folder
from mlirhlo.debug.bisect.instructions import locate
from mlirhlo.debug.bisect.limited import Ran, run_limited
from mlirhlo.debug.bisect.pipelines import bisect_pipeline
from mlirhlo.debug.bisect.stages import read_stages
from mlirhlo.debug.trials.conditions import Condition, load_module
from mlirhlo.diagnostics import HloError
from mlirhlo.rewrites.pipeline import parse_pipeline

PROGRAM = """HloModule program
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[4,8] parameter(0)
  z = f32[] constant(0)
  e = f32[4,8] exponential(x)
  f = f32[4,8] floor(e)
  g = f32[4,8] floor(x)
  m = f32[4,8] multiply(f, g)
  n = f32[4,8] negate(m)
  o = f32[4,8] negate(n)
  ROOT r = f32[4] reduce(o, z), dimensions={1}, to_apply=add
}
"""


@pytest.mark.parametrize("limit, count", [(0, 0), (2, 2), (None, 3)])
def test_passes_are_counted(limit: int | None, count: int) -> None:
    ran = run_limited(load_module(PROGRAM, "m"), parse_pipeline("algsimp,cse,dce"), limit)
    assert ran.count == count


def test_the_last_pass_has_fuel() -> None:
    ran = Ran()
    module = load_module(PROGRAM, "m")
    run_limited(module, parse_pipeline("cse,algsimp"), 2, 1, ran)
    assert (ran.name, ran.rewrites, ran.counts_rewrites) == ("algsimp", 1, True)
    assert ran.rule


@pytest.mark.slow
def test_the_rewrite_of_a_wrong_rule() -> None:
    sides = ("Interpreter:algsimp,wrong{only=floor_is_lost},cse,dce", "Interpreter")
    found = bisect_pipeline(
        PROGRAM, Condition("differs", sides, load_passes=(WRONG_PASSES,)), jobs=2
    )
    assert (found.passes, found.number, found.pass_name) == (4, 2, "wrong")
    assert (found.rule, found.equation) == ("floor_is_lost", "floor(x) => x")
    assert found.applications == 2
    assert "floor" in found.matched
    assert found.before.count("floor(") == found.after.count("floor(") + 1


@pytest.mark.slow
def test_the_pass_that_raises() -> None:
    text = PROGRAM.replace("floor(e)", "log(g0)").replace("  f =", "  g0 = f32[4,8] abs(e)\n  f =")
    sides = ("Interpreter:cse,wrong{only=crash_on_log_of_abs},dce", "Interpreter")
    found = bisect_pipeline(text, Condition("crashes", sides, load_passes=(WRONG_PASSES,)))
    assert (found.number, found.pass_name, found.after) == (2, "wrong", "")


@pytest.mark.slow
def test_nothing_to_find() -> None:
    with pytest.raises(HloError, match="HLO0862"):
        bisect_pipeline(PROGRAM, Condition("differs", ("Interpreter:cpu", "Interpreter")))
    with pytest.raises(HloError, match="HLO0864"):
        bisect_pipeline(PROGRAM, Condition("differs", ("Interpreter", "Interpreter")))


# ---------------------------------------------------------------- two stages

BF16 = """HloModule m
ENTRY e { x = f32[64,64] parameter(0)  y = f32[64,64] sine(x)
  ROOT d = f32[64,64] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""


def narrowed(text: str) -> str:
    """The same product in bf16."""
    return text.replace(
        "  ROOT d = f32[64,64] dot(y, y)",
        "  c = bf16[64,64] convert(y)\n  p = bf16[64,64] dot(c, c)",
    ).replace(
        "rhs_contracting_dims={0} }", "rhs_contracting_dims={0}\n  ROOT d = f32[64,64] convert(p) }"
    )


def test_bf16_is_not_blamed_for_rounding() -> None:
    given = Given(BF16, (42, 43))
    assert compare(BF16, narrowed(BF16), given).outcome == SAME
    wrong = narrowed(BF16).replace("sine", "cosine")
    assert compare(BF16, wrong, given).outcome == DIFFERS


def test_constants_that_the_text_leaves_out_are_the_same_in_all_stages() -> None:
    one = """HloModule m
ENTRY e { x = f32[32] parameter(0)  k = f32[32] constant({...})  ROOT a = f32[32] add(x, k) }
"""
    other = (
        one.replace("f32[32] constant({...})", "f32[4,8] constant({...})")
        .replace("  ROOT", "  l = f32[32] reshape(k)\n  ROOT")
        .replace("add(x, k)", "add(l, x)")
    )
    given = Given(one, (42,))
    assert compare(one, other, given).outcome == SAME
    folded = one.replace("add(x, k)", "subtract(x, k)").replace("k = f32[32]", "k = f32[32]")
    assert compare(one, folded, given).outcome == DIFFERS
    gone = folded.replace("constant({...})", "iota(), iota_dimension=0")
    assert compare(one, gone, given).outcome == UNKNOWN


def test_where_results_are_no_numbers_says_nothing() -> None:
    text = """HloModule m
ENTRY e { x = f32[32] parameter(0)  ROOT r = f32[32] log(x) }
"""
    given = Given(text, (42,))
    filled = text.replace("ROOT r = f32[32] log(x)", "a = f32[32] abs(x)  ROOT r = f32[32] log(a)")
    assert compare(text, filled, given).outcome == SAME
    assert compare(text, filled.replace("log(a)", "exponential(a)"), given).outcome == DIFFERS


def test_random_numbers_are_not_compared() -> None:
    text = """HloModule m
ENTRY e { a = f32[] constant(0)  b = f32[] constant(1)
  ROOT r = f32[8] rng(a, b), distribution=rng_uniform }
"""
    other = text.replace("constant(1)", "constant(2)")
    assert compare(text, other, Given(text)).outcome == UNKNOWN


def test_partitioned_stages_are_compared_with_whole_ones() -> None:
    before = """HloModule m, num_partitions=2
ENTRY e { x = f32[4,6] parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT n = f32[4,6] negate(x), sharding={devices=[2,1]<=[2]} }
"""
    after = "HloModule m, num_partitions=2\nENTRY e { x = f32[2,6] parameter(0)  ROOT n = f32[2,6] negate(x) }\n"
    given = Given(before, (42,))
    found = compare(before, after, given)
    assert (found.outcome, found.is_resized) == (SAME, True)
    assert compare(before, after.replace("negate", "abs"), given).outcome == DIFFERS


# ---------------------------------------------------------------- folders


@pytest.mark.slow
def test_one_wrong_stage_of_a_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "dump"
    shutil.copytree(DATA / "dumps" / "cpu", folder)
    assert bisect_folder(read_stages(str(folder))).culprit is None
    stage = next(folder.glob("*.0001.*"))
    text = stage.read_text()
    assert " maximum(" in text
    stage.write_text(text.replace(" maximum(", " minimum("))
    found = bisect_folder(read_stages(str(folder)), jobs=2)
    assert found.culprit is not None
    assert found.culprit.stage.file == stage.name
    assert not found.culprit.between
    report = tmp_path / "report.tar.gz"
    assert main([str(folder), "-o", str(report)]) == 255
    assert main([str(report), "-o", str(tmp_path / "again.tar.gz")]) == 255
    assert capsys.readouterr().out.count("culprit: fusion") == 2
    assert not list(tmp_path.glob("*.tries"))


LOOP = """HloModule loop
body {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[4] get-tuple-element(s), index=1
  b = f32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  t = f32[4] tanh(a)
  c = f32[4] cosine(b)
  ROOT r = (s32[], f32[4], f32[4]) tuple(n, t, c)
}
condition {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  end = s32[] constant(3)
  ROOT l = pred[] compare(i, end), direction=LT
}
ENTRY main {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  y = f32[4] exponential(x)
  z = (s32[], f32[4], f32[4]) tuple(zero, x, y)
  w = (s32[], f32[4], f32[4]) while(z), condition=condition, body=body
  u = f32[4] get-tuple-element(w), index=1
  v = f32[4] get-tuple-element(w), index=2
  ROOT d = f32[4] divide(u, v)
}
"""


@pytest.mark.parametrize(
    "edits, name",
    [
        ({"tuple(n, t, c)": "tuple(n, c, t)"}, "r"),
        ({"tanh(a)": "tanh(b)"}, "t"),
        ({"tuple(zero, x, y)": "tuple(zero, y, x)"}, "z"),
        ({"divide(u, v)": "divide(v, u)"}, "d"),
        # New instructions on the way from the culprit to others are not blamed for its values.
        ({"exponential(x)": "sine(x)\n  k = f32[4] copy(y)", "(zero, x, y)": "(zero, x, k)"}, "y"),
    ],
)  # fmt: skip
def test_the_instruction_at_fault_is_named_alone(edits: dict[str, str], name: str) -> None:
    """In a loop all values differ in the end: those of the first iteration tell where that began."""
    after = LOOP
    for old, new in edits.items():
        after = after.replace(old, new)
    suspects = locate(LOOP, after, asdict(Given(LOOP, (1,))))
    assert [s["name"] for s in suspects] == [name]


@pytest.mark.slow
def test_a_stage_that_cannot_be_run_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "dump"
    shutil.copytree(DATA / "dumps" / "cpu", folder)
    next(folder.glob("*.0000.*")).write_text(
        "HloModule broken\nENTRY e { ROOT x = f32[] nonsense() }\n"
    )
    found = bisect_folder(read_stages(str(folder)))
    assert found.culprit is None
    assert [s.stage.step for s in found.skipped] == [0]


def test_too_few_stages(tmp_path: Path) -> None:
    (tmp_path / "module_0000.m.before_optimizations.txt").write_text(PROGRAM)
    with pytest.raises(HloError, match="HLO0863"):
        read_stages(str(tmp_path))


def test_a_damaged_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.tar.gz").write_bytes(b"nothing")
    assert main([str(tmp_path / "x.tar.gz")]) == 1
    assert "HLO0866" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("number", range(6))
def test_planted_stages_of_the_corpus(number: int, tmp_path: Path) -> None:
    sources = archives(SHARED / "corpus")
    if not sources:
        pytest.skip("no corpus")
    source = sources[number * 7 % len(sources)]
    folder = unpack(source, tmp_path / source.name.split(".pass")[0])
    planted = plant(folder, number)
    if planted is None:
        pytest.skip("no edit changes what it computes")
    found = bisect_folder(read_stages(str(folder)), jobs=2)
    assert found.culprit is not None, planted
    assert found.culprit.stage.file == planted.file, planted
