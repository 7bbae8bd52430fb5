"""What is different between two modules: edits that are known, and what is no difference."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
from planted.edits import edit
from support import DATA

from mlirhlo.cli.hlo_diff import main
from mlirhlo.debug.diff import diff_folders, diff_modules
from mlirhlo.debug.diff.page import print_page

BEFORE = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
mul { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] multiply(a, b) }
ENTRY e {
  x = f32[8,4] parameter(0)
  y = f32[8,4] parameter(1)
  s = f32[8,4] sine(x), metadata={op_name="s"}
  t = f32[4,8] transpose(s), dimensions={1,0}
  d = f32[8,8] dot(y, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[] constant(0)
  r = f32[8] reduce(d, z), dimensions={1}, to_apply=add
  q = f32[8] reduce(d, z), dimensions={0}, to_apply=mul
  ROOT o = f32[8] add(r, q)
}
"""


def kinds(before: str, after: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in diff_modules(before, after).instructions:
        if each.kind != "unchanged":
            found.setdefault(each.kind, []).append(each.name_before or each.name_after)
    return found


def test_names_orders_and_metadata_are_no_difference() -> None:
    after = (
        BEFORE.replace(" s = ", " sine.77 = ").replace("(s)", "(sine.77)").replace('"s"', '"other"')
    )
    lines = after.splitlines()
    lines[4], lines[5] = lines[5], lines[4]
    after = "\n".join(lines).replace("add {", "add.9 {").replace("to_apply=add", "to_apply=add.9")
    assert diff_modules(BEFORE, after).is_same


@pytest.mark.parametrize(
    "old, new, key",
    [
        ("sine(x)", "cosine(x)", "opcode"),
        ("constant(0)", "constant(1)", "literal"),
        ("f32[4,8] transpose", "f32[4,8]{0,1} transpose", "layout"),
        ("to_apply=mul", "to_apply=add", "calls"),
        ("add(r, q)", "add(q, r)", "operands"),
        ('metadata={op_name="s"}', "sharding={replicated}", "sharding"),
    ],
)
def test_attributes(old: str, new: str, key: str) -> None:
    diff = diff_modules(BEFORE, BEFORE.replace(old, new))
    changes = [change.key for each in diff.instructions for change in each.changes]
    assert changes == [key]


def test_added_and_removed() -> None:
    added = BEFORE.replace("reduce(d, z), dimensions={1}", "reduce(n, z), dimensions={1}").replace(
        "  r =", "  n = f32[8,8] negate(d)\n  r ="
    )
    assert kinds(BEFORE, added) == {"added": ["n"], "changed": ["r"]}
    assert kinds(added, BEFORE) == {"removed": ["n"], "changed": ["r"]}


def test_what_moves_into_a_fusion() -> None:
    after = (
        BEFORE.replace(
            "ENTRY e {", "fused { p = f32[8,4] parameter(0)  ROOT s = f32[8,4] sine(p) }\nENTRY e {"
        )
        .replace(
            's = f32[8,4] sine(x), metadata={op_name="s"}',
            "f = f32[8,4] fusion(x), kind=kLoop, calls=fused",
        )
        .replace("transpose(s)", "transpose(f)")
    )
    found = kinds(BEFORE, after)
    assert found["moved"] == ["s"]
    assert "removed" not in found


def test_planted_edits() -> None:
    files = sorted((DATA / "programs").glob("*/*.hlo"))[:12]
    draw = random.Random(3)
    hits = said = truth = 0
    for file in files:
        case = edit(file.read_text(), draw.randrange(1 << 30))
        diff = diff_modules(case.before, case.after)
        found = {
            (each.kind, each.name_after if each.kind == "added" else each.name_before)
            for each in diff.instructions
            if each.kind not in ("unchanged", "moved")
        }
        hits, said, truth = (
            hits + len(found & case.truth),
            said + len(found),
            truth + len(case.truth),
        )
    assert truth > 20
    assert hits >= 0.95 * max(said, truth)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "a.hlo", tmp_path / "b.hlo"
    one.write_text(BEFORE)
    other.write_text(BEFORE.replace("sine(x)", "cosine(x)"))
    page = tmp_path / "d.html"
    assert main([str(one), str(other), f"--html={page}"]) == 255
    assert "opcode: sine -> cosine" in capsys.readouterr().out
    assert "cosine" in page.read_text()
    assert main([str(one), str(one)]) == 0
    capsys.readouterr()
    assert main([str(one), str(other), "--json"]) == 255
    assert json.loads(capsys.readouterr().out)["counts"]["changed"] == 1
    assert main([str(one)]) == 2
    assert main([str(one), str(tmp_path)]) == 2


def test_names_are_text_on_the_page() -> None:
    after = BEFORE.replace('custom_call_target="a"', "")
    page = print_page(diff_modules(BEFORE, after), ("<script>", "b"))
    assert "<script>" not in page


def test_folders(tmp_path: Path) -> None:
    shutil.copytree(DATA / "dumps" / "cpu", tmp_path / "cpu")
    assert diff_folders(str(DATA / "dumps" / "cpu"), str(tmp_path / "cpu")).is_same
    for file in tmp_path.glob("cpu/*after_optimizations.txt"):
        file.write_text(file.read_text().replace(" exponential(", " negate("))
    (program,) = diff_folders(str(DATA / "dumps" / "cpu"), str(tmp_path / "cpu")).programs
    assert "differing" in program.changed
