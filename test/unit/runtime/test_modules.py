"""Compiled modules out of the cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import mlirhlo
from mlirhlo.debug.options import resolve
from mlirhlo.lowering.cpu import compiler as lowering
from mlirhlo.runtime import compiler, jit
from mlirhlo.runtime.object_code import modules

pytest.importorskip("llvmlite")

LARGE = 1 << 16
TEXT = """HloModule kept
ENTRY e {
  x = (f32[2,3]{0,1}, s32[]) parameter(0)
  y = f32[65536] parameter(1)
  a = f32[2,3]{0,1} get-tuple-element(x), index=0
  n = s32[] get-tuple-element(x), index=1
  c = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}})
  b = f32[2,3]{0,1} add(a, c)
  z = f32[65536] sine(y)
  r = f32[65536] reverse(z), dimensions={0}
  w = f32[65536] multiply(r, z)
  p = (f32[2,3]{0,1}, s32[]) tuple(b, n)
  ROOT t = ((f32[2,3]{0,1}, s32[]), f32[65536]) tuple(p, w)
}
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLIRHLO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on nothing may be lowered."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("lowered again")

    monkeypatch.setattr(lowering, "lower", refuse)


def test_a_kept_module_is_neither_lowered_nor_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    first = mlirhlo.compile(mlirhlo.parse(TEXT))
    forbid(monkeypatch)
    again = mlirhlo.compile(mlirhlo.parse(TEXT.replace("HloModule kept", "HloModule other_name")))
    rng = np.random.default_rng(0)
    x = (rng.random((2, 3), np.float32), np.int32(7))
    y = rng.random(LARGE, np.float32)
    for executable in (first, again):
        (a, n), w = executable(x, y)
        np.testing.assert_allclose(a, x[0] + np.arange(1, 7).reshape(2, 3))
        assert n == 7
        np.testing.assert_allclose(w, np.sin(y)[::-1] * np.sin(y), rtol=1e-5)
    assert first.memory == again.memory


@pytest.mark.slow
def test_a_process_that_only_loads_may_use_all_registers() -> None:
    """Tile registers have to be asked for by every process."""
    program = """if True:
        import mlirhlo, numpy as np
        from mlirhlo.lowering.cpu import compiler
        module = mlirhlo.parse("bf16[32,64] dot(bf16[32,64] x, bf16[64,64] y),"
            " lhs_contracting_dims={1}, rhs_contracting_dims={0}")
        from mlirhlo.dialects.hlo.element_types import BF16
        x = np.ones((32, 64), BF16.dtype)
        y = np.ones((64, 64), BF16.dtype)
        if LOADS:
            compiler.lower = None
        print(float(np.asarray(mlirhlo.compile(module)(x, y)).astype("f4").sum()))
    """
    for loads in ("False", "True"):
        command = [sys.executable, "-c", program.replace("LOADS", loads)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stdout.strip() == str(64.0 * 64 * 32), (loads, done.returncode, done.stderr)


@pytest.mark.parametrize(
    ("before", "after"),
    [("{{1, 2, 3}", "{{1, 2, 4}"), ("sine", "cosine"), ("f32[2,3]{0,1} add", "f32[2,3]{1,0} add")],
)
def test_what_changes_code_changes_the_key(before: str, after: str) -> None:
    keys = [
        modules.module_key(mlirhlo.parse(t).op, 2, "")
        for t in (TEXT, TEXT.replace(before, after, 1))
    ]
    assert None not in keys
    assert keys[0] != keys[1]


def test_without_a_cache_there_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRHLO_CACHE_DIR", "off")
    assert modules.module_key(mlirhlo.parse(TEXT).op, 2, "") is None


def test_without_images_objects_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "link", lambda *_: None)
    monkeypatch.setattr(jit, "link", lambda *_: None)
    mlirhlo.compile(mlirhlo.parse(TEXT))
    forbid(monkeypatch)
    x = (np.ones((2, 3), np.float32), np.int32(7))
    (a, _), _ = mlirhlo.compile(mlirhlo.parse(TEXT))(x, np.ones(LARGE, np.float32))
    np.testing.assert_allclose(a, np.arange(2, 8).reshape(2, 3))


ALONE = """
import sys
import mlirhlo
module = mlirhlo.parse("f32[3] sine(f32[3] x)")
executable = mlirhlo.compile(module)
print(float(executable([0.0, 0.0, 0.0])[0]))
print([n for n in ("planner", "emit", "pipeline") if f"mlirhlo.lowering.cpu.{n}" in sys.modules])
print("mlirhlo.interp.engine" in sys.modules)
"""


def test_a_process_that_only_loads_imports_nothing_that_lowers() -> None:
    said: list[list[str]] = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", ALONE], capture_output=True, text=True, check=False
        )
        said.append(run.stdout.splitlines())
    assert said[0][:2] == ["0.0", "['planner', 'emit', 'pipeline']"]
    assert said[1] == ["0.0", "[]", "False"]


def test_runs_of_passes_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key must not ask the filter, which counts what it is asked."""
    answers: list[bool] = []

    def ask(*given: object, **_: object) -> None:
        wanted = cast("Callable[[str], bool]", given[2])
        answers.extend(wanted("tuple-simplifier") for _ in range(3))
        raise KeyError

    monkeypatch.setattr(lowering, "lower", ask)
    flags = resolve([("xla_disable_hlo_passes", "tuple-simplifier:0")], environ={})
    with pytest.raises(KeyError):
        compiler.compile_module(mlirhlo.parse(TEXT).op, flags=flags)
    assert answers == [False, True, True]


def test_left_out_passes_are_left_out_though_the_module_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = mlirhlo.parse(TEXT)
    compiler.compile_module(module.op, flags=resolve([], environ={}))
    forbid(monkeypatch)
    compiler.compile_module(module.op, flags=resolve([], environ={}))
    for flag in ("xla_disable_hlo_passes", "xla_enable_hlo_passes_only"):
        with pytest.raises(AssertionError, match="lowered again"):
            compiler.compile_module(module.op, flags=resolve([(flag, "cse")], environ={}))
    with pytest.raises(AssertionError, match="lowered again"):
        compiler.compile_module(
            module.op, flags=resolve([("xla_disable_all_hlo_passes", None)], environ={})
        )
