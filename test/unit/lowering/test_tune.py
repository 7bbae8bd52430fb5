"""`tools/tune.py`: what it says is the fastest schedule is one that `hlo-opt` takes and that compiles."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from mlirhlo.cli.hlo_opt import main as hlo_opt

pytest.importorskip("llvmlite")

SORT = """HloModule rows
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[3,9] parameter(0)
 ROOT r = f32[3,9] sort(x), dimensions={1}, to_apply=less }
"""


def tuned(path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    """What the tool prints."""
    script = str(ROOT / "tools" / "tune.py")
    monkeypatch.setattr(sys, "argv", [script, str(path), "--rounds", "2", *options])
    assert runpy.run_path(script)["main"]() == 0
    return capsys.readouterr().out


def test_sorts(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an HLO file, then of what was written: equal schedules are tried once, those that do not fit not at all."""
    path, best = tmp_path / "sort.hlo", tmp_path / "best.mlir"
    path.write_text(SORT)
    options = ("--lanes", "12", "--chunk", "2", "--schedules", "40")
    out = tuned(path, capsys, monkeypatch, *options, "--output", str(best))
    *rows, _, passes = out.splitlines()
    schedules = [row.split("us")[1].split("  ")[1] for row in rows]
    assert len(set(schedules)) == len(schedules)
    assert sum("passes' own" in row for row in rows) == 1
    assert not any("lanes = 12" in row for row in rows)
    assert {"counting", "radix", "merge"} == set(re.findall(r'kind = "(\w+)"', out))
    pipeline = passes.removeprefix("--passes='").removesuffix("'")
    assert hlo_opt(["--platform=cpu", "--stage=structured", str(path), f"--passes={pipeline}"]) == 0
    assert schedules[0] in capsys.readouterr().out
    assert schedules[0] in best.read_text()
    assert tuned(best, capsys, monkeypatch, "--schedules", "1")


def test_kernels_without_schedules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "product.hlo"
    path.write_text(
        "ENTRY e { x = f32[4,4] parameter(0)\n"
        " ROOT r = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"
    )
    monkeypatch.setattr(sys, "argv", ["tune.py", str(path)])
    with pytest.raises(SystemExit, match="no kernel with a schedule"):
        runpy.run_path(str(ROOT / "tools" / "tune.py"))["main"]()
