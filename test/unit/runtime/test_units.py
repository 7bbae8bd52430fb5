"""Modules in units: kernels compiled, and kept, one by one, by workers."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.runtime import cache, compiler, jit
from mlirhlo.runtime.object_code import workers
from mlirhlo.runtime.object_code.units import halves, split

pytest.importorskip("llvmlite")

TWO = """HloModule two
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[64,128] parameter(0)
  y = f32[128,256] parameter(1)
  d = f32[64,256] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[4] constant({1, 3, 2, 4})
  r = f32[256,64] transpose(d), dimensions={1,0}
  q = f32[4] sort(c), to_apply=less, dimensions={0}
  ROOT t = (f32[64,256], f32[256,64], f32[4]) tuple(d, r, q)
}
"""
OTHER = """ENTRY e {
  w = f32[3] parameter(2)
  x = f32[64,128] parameter(0)
  y = f32[128,256] parameter(1)
  z = f32[3] cosine(w)
  d = f32[64,256] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[3], f32[64,256]) tuple(z, d)
}
"""


@pytest.fixture
def in_units(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(compiler, "_LARGE", 0)
    monkeypatch.setenv("MLIRHLO_CACHE_DIR", str(tmp_path))
    return tmp_path


def units_of(text: str) -> list[str]:
    return split(lower(mlirhlo.parse(text).op).text, "main")


def test_the_same_kernel_is_the_same_unit_in_other_modules() -> None:
    one, other = units_of(TWO), units_of(OTHER)
    shared = set(one) & set(other)
    assert any("fma" in unit for unit in shared)  # the dot's
    assert "@main(" in one[-1]
    assert one[-1] not in shared
    assert not any("@main(" in unit for unit in one[:-1])


def test_units_together_are_the_module(in_units: Path) -> None:
    module = mlirhlo.parse(TWO)
    rng = np.random.default_rng(0)
    x, y = rng.random((64, 128), np.float32), rng.random((128, 256), np.float32)
    for _ in range(2):  # the second time out of the cache
        for got, wanted in zip(mlirhlo.compile(module)(x, y), module(x, y), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert len(list(in_units.glob("*.o"))) > 3


def test_a_kernel_of_two_modules_is_compiled_once(
    in_units: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlirhlo.compile(mlirhlo.parse(TWO))
    compiled: list[str] = []

    def noted(texts: list[str], level: int) -> list[bytes]:
        compiled.extend(texts)
        return [jit.compile_object(text, level=level) for text in texts]

    monkeypatch.setattr(cache, "compile_all", noted)
    mlirhlo.compile(mlirhlo.parse(OTHER))
    assert len(compiled) == 2  # the cosine, and what calls both
    assert not any("fma.v" in text and "sitofp" not in text for text in compiled[1:])


def test_what_cannot_be_taken_apart_stays_whole() -> None:
    circle = "\n".join(
        f"define void @{a}(ptr %a0) {{\nb0:\n  call void @{b}(ptr %a0)\n  ret void\n}}"
        for a, b in (("one", "two"), ("two", "one"), ("main", "one"))
    )
    shared = "@word = internal global i64 0\n" + "\n".join(
        f"define void @{name}(ptr %a0) {{\nb0:\n  store i64 1, ptr @word\n  ret void\n}}"
        for name in ("one", "main")
    )
    for text in (circle, shared, "not assembly", ""):
        assert split(text, "main") == [text]


@pytest.mark.slow
def test_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once give what this process gives; one that dies costs its unit alone."""
    monkeypatch.setenv(workers.WORKERS, "2")
    texts = units_of(OTHER)
    expected = [jit.compile_object(text) for text in texts]
    assert workers.compile_all(texts, 2) == expected
    # An intrinsic that instruction selection knows nothing of ends LLVM's process.
    deadly = (
        "declare void @llvm.x86.tilezero(i8 immarg)\n"
        "define void @f() {\n  call void @llvm.x86.tilezero(i8 99)\n  ret void\n}\n"
    )
    with pytest.raises(HloError) as problem:
        workers.compile_all([texts[0], deadly], 2)
    assert problem.value.code == "HLO0441"
    with pytest.raises(HloError) as problem:
        workers.compile_all(["define nonsense"], 2)
    assert problem.value.code == "HLO0433"
    assert workers.compile_all(texts, 2) == expected
    assert os.environ[workers.WORKERS] == "2"


TWINS = """define internal void @a_rounds_0(ptr %a0) #0 {
b0:
  store i64 7, ptr %a0, align 8
  ret void
}
define void @a(ptr %a0) #1 {
b0:
  call void @a_rounds_0(ptr %a0)
  ret void
}
define internal void @b_rounds_0(ptr %a0) #0 {
b0:
  store i64 7, ptr %a0, align 8
  ret void
}
define void @b(ptr %a0) #1 {
b0:
  call void @b_rounds_0(ptr %a0)
  ret void
}
define void @main(ptr %a0) #1 {
b0:
  %v1 = getelementptr inbounds i8, ptr %a0, i64 8
  call void @a(ptr %a0)
  call void @b(ptr %v1)
  ret void
}
attributes #0 = { nounwind }
attributes #1 = { nounwind noinline optnone }
"""


def test_kernels_of_one_content_are_one_unit() -> None:
    *units, entry = split(TWINS, "main")
    assert len(units) == 1
    assert entry.count("declare") == 1
    assert run_word_pair([*units, entry]) == [7, 7]


def test_what_llvm_leaves_alone_stands_apart() -> None:
    parts = [part for unit in split(TWINS, "main") for part in halves(unit, least=0)]
    light = [part for part in parts if part.startswith(jit.LIGHT)]
    assert len(parts) == 3  # the rounds, their kernel, main
    assert [part for part in parts if "store" in part] == [p for p in parts if p not in light]
    assert run_word_pair(parts) == [7, 7]


def test_writable_variables_are_not_parted() -> None:
    text = "@x = internal global i64 0\n" + TWINS.replace(
        "store i64 7, ptr %a0", "store i64 7, ptr @x"
    )
    text = text.replace("call void @a(ptr %a0)", "call void @a(ptr @x)")
    assert halves(text, least=0) == [text]


def test_a_few_lines_that_llvm_leaves_alone_stay_with_the_others() -> None:
    first, last = split(TWINS, "main")
    assert halves(first) == [first]
    assert halves(last) == [f"{jit.LIGHT}{last}"]  # there is nothing else in it
    assert run_word_pair([*halves(first), *halves(last)]) == [7, 7]


def run_word_pair(texts: list[str]) -> list[int]:
    words = (ctypes.c_int64 * 2)()
    library = jit.Library([jit.compile_object(t) for t in texts], ["main"])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("main"))(ctypes.addressof(words))
    return list(words)
