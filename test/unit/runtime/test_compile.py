"""Compiled modules as users get them: `mlirhlo.compile` and the tools."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import run

import mlirhlo
from mlirhlo.diagnostics import HloError

pytest.importorskip("llvmlite")

TEXT = """HloModule m
ENTRY e {
  x = f32[3,5] parameter(0)
  y = f32[3,5] parameter(1)
  s = f32[3,5] add(x, y)
  t = f32[5,3] transpose(s), dimensions={1,0}
  ROOT r = (f32[3,5], f32[5,3]) tuple(s, t)
}
"""


@pytest.fixture(autouse=True)
def _cache_of_its_own(  # pyright: ignore[reportUnusedFunction]
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLIRHLO_CACHE_DIR", str(tmp_path / "objects"))


@pytest.mark.parametrize("cached", [True, False])
def test_compile(cached: bool, tmp_path: Path) -> None:
    module = mlirhlo.parse(TEXT)
    executable = mlirhlo.compile(module, cached=cached)
    x = np.arange(15, dtype="f4").reshape(3, 5)
    s, t = executable(x, x)
    np.testing.assert_array_equal(s, x + x)
    np.testing.assert_array_equal(t, (x + x).T)
    assert executable.memory.parameters == 2 * 60
    assert executable.memory.results == 2 * 60
    assert executable.memory.temporaries == executable.temp_bytes
    assert (tmp_path / "objects").exists() == cached


def test_compile_takes_files_and_stablehlo(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(
        "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %r = stablehlo.negate %x : tensor<4xf32>\n  return %r : tensor<4xf32>\n}\n"
    )
    np.testing.assert_array_equal(mlirhlo.compile(path)([1, 2, 3, 4]), [-1, -2, -3, -4])


@pytest.mark.parametrize(
    ("text", "platform", "code"),
    [
        ("f32[2] negate(f32[2] x)", "tpu", "HLO0437"),
        ("f32[2] constant({...})", "CPU", "HLO0301"),
        ("f32[2] slice(f32[?] x), slice={[0:2]}", "cpu", "HLO0435"),
    ],
)
def test_what_has_no_code(text: str, platform: str, code: str) -> None:
    with pytest.raises(HloError) as caught:
        mlirhlo.compile(mlirhlo.parse(text), platform)
    assert caught.value.code == code


def test_sizes_unknown_before_the_call_have_no_code() -> None:
    text = (
        "func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
        "  %r = stablehlo.negate %x : tensor<?xf32>\n  return %r : tensor<?xf32>\n}\n"
    )
    with pytest.raises(HloError, match="HLO0435"):
        mlirhlo.compile(mlirhlo.parse(text))


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("hlo", "transpose(%s)"),
        ("loops", "memref<15xf32>"),
        ("llvm-dialect", "llvm.func"),
        ("llvm", "fadd"),
        ("asm", "main:"),
        ("obj", "ELF"),
    ],
)
def test_hlo_opt_prints_stages(stage: str, expected: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    done = run("hlo-opt", "--platform=cpu", f"--stage={stage}", "-o", made, "-", stdin=TEXT)
    assert (done.code, done.err) == (0, "")
    assert expected.encode() in made.read_bytes()


STAGES = ["hlo", "fused", "structured", "scheduled", "loops", "llvm-dialect", "llvm", "asm", "obj"]


def test_hlo_opt_says_what_has_no_stage() -> None:
    done = run("hlo-opt", "--platform=cpu", "--stage=ptx", "-", stdin=TEXT)
    assert done.code == 2
    assert f"its stages are {', '.join(STAGES)}" in done.err
    done = run("hlo-opt", "--platform=cpu", "--list-stages")
    assert done.out.split() == STAGES


def test_stages_of_several_modules() -> None:
    several = f"{TEXT}\n// -----\n{TEXT}"
    flags = ("hlo-opt", "--platform=cpu", "--split-input-file", "-")
    assert run(*flags, "--stage=llvm", stdin=several).out.count("define void @main") == 2
    assert run(*flags, "--stage=obj", stdin=several).code == 2


def test_run_hlo_module_compares_with_the_interpreter() -> None:
    flags = ("run_hlo_module", "--platform=cpu")
    done = run(*flags, "--iterations=2", "--print_literals", "-", stdin=TEXT)
    assert done.code == 0, done.err
    assert done.err.count("** Results on CPU and Interpreter are close enough. **") == 2
    assert "** Result with test runner CPU **" in done.out
    assert "** Result with reference runner Interpreter **" in done.out
    done = run(*flags, "--isolate_instructions", "-", stdin=TEXT)
    assert done.code == 0, done.err
    assert "0/2 runs miscompared." in done.err


def test_run_hlo_module_on_several_devices() -> None:
    flags = ("run_hlo_module", "--platform=CPU", "--num_replicas=2", "-")
    done = run(*flags, stdin="f32[4] add(f32[4] x, f32[4] y)")
    assert done.code == 0, done.err
    meeting = """HloModule m, replica_count=2
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }
ENTRY e {
  x = f32[4] parameter(0)
  ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add
}
"""
    done = run(*flags, stdin=meeting)
    assert done.code == 0, done.err
    assert "are close enough" in done.err


def test_run_hlo_module_takes_threads() -> None:
    assert run("run_hlo_module", "--platform=CPU", "--threads=2", "-", stdin=TEXT).code == 0
    done = run("run_hlo_module", "--platform=CPU", "--threads=-2", "-", stdin=TEXT)
    assert done.code == 2
    assert "at least 0 is wanted" in done.err


def test_run_hlo_module_has_no_trace_of_machine_code() -> None:
    done = run("run_hlo_module", "--platform=CPU", "--trace", "-", stdin=TEXT)
    assert done.code == 2
    assert "--trace and --step need --platform=Interpreter" in done.err
