"""Values that no tool can use are told as the user's mistakes, never as ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support import ROOT

from mlirhlo.cli import hlo_dump, hlo_view, mosaic_run, run_hlo_module

KERNEL = """\
func.func @main(%x: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  return
}
"""
HUGE = "f32[1000000,1000000,1000] broadcast(f32[] x), dimensions={}"
UNCOUNTED = "f32[9000000000,9000000000] broadcast(f32[] x), dimensions={}"
SMALL = "f32[] negate(f32[] x)"

Main = Callable[[Sequence[str]], int]


@pytest.mark.parametrize(
    ("main", "text", "flag", "code", "said"),
    [
        (run_hlo_module.main, HUGE, "--platform=Interpreter", 1, "error[HLO0507]: Unable to"),
        (
            run_hlo_module.main,
            HUGE,
            "--platform=CPU",
            1,
            "error[HLO0507]: no memory can hold f32[1000000,1000000,1000]",
        ),
        *(
            (run_hlo_module.main, UNCOUNTED, f"--platform={p}", 1, "error[HLO0507]: no memory can")
            for p in ("CPU", "CUDA")
        ),
        (run_hlo_module.main, SMALL, "--num_partitions=-1", 2, "at least 0 is wanted"),
        (run_hlo_module.main, SMALL, f"--num_replicas={1 << 62}", 1, "error[HLO0507]"),
        (run_hlo_module.main, SMALL, "--iterations=0", 2, "at least 1 is wanted"),
        (run_hlo_module.main, SMALL, "--seed=-1", 2, "--seed=-1: at least 0 is wanted"),
        (mosaic_run.main, KERNEL, "--seed=-1", 2, "at least 0 is wanted"),
        (mosaic_run.main, KERNEL, "--devices=0", 2, "at least 1 is wanted"),
        (
            mosaic_run.main,
            KERNEL,
            "--inputs=missing.npz",
            1,
            "error[HLO0503]: cannot read 'missing",
        ),
        (mosaic_run.main, KERNEL, "--inputs=/dev/null", 1, "error[HLO0506]: not an npz file"),
        (mosaic_run.main, KERNEL, "--compile=v99", 2, "--compile=v99: no generation of TPUs"),
    ],
)
def test_value(
    main: Main,
    text: str,
    flag: str,
    code: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "input"
    file.write_text(text)
    assert main(["--platform=Interpreter", flag, str(file)][main is mosaic_run.main :]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("list", "'list' wants more arguments"),
        ("info x y", "'info' wants other arguments"),
        ("infoo x", "did you mean 'info'?"),
    ],
)
def test_commands_of_hlo_view(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.hlo").write_text(SMALL)
    assert hlo_view.main([str(tmp_path / "m.hlo"), *words.split()]) == 2
    assert said in capsys.readouterr().err


def test_hlo_dump_asks_what_to_find(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hlo_dump.main(["find", str(tmp_path)]) == 2
    assert "find what?" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--list-passes"], ["-p", "algsimp", "-"]])
def test_without_docstrings(words: list[str]) -> None:
    """`python -OO` has no pages of passes, but the passes."""
    command = [sys.executable, "-OO", "-m", "mlirhlo.cli.hlo_opt", *words]
    done = subprocess.run(command, input=SMALL, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "negate" in done.stdout or "algsimp" in done.stdout
