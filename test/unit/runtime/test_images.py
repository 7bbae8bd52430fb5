"""Objects become images, and images run wherever they are loaded."""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path

import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.runtime import jit
from mlirhlo.runtime.object_code import images

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux"
    or images.link([jit.compile_object("define void @f() { ret void }")], ["f"]) is None,
    reason="no images on this machine",
)

# Constants, zeros and numbers that are written, pointers to code and data in each of them, and calls
# inside of an object, between two, to the process and to what is given.
FIRST = """
@weights = internal constant [3 x double] [double 1.0, double 2.0, double 4.0], align 64
@count = internal global i64 40, align 64
@zeros = internal global [3 x i64] zeroinitializer, align 4096
@called = internal constant [2 x ptr] [ptr @inner, ptr @labs]
@where = internal global ptr getelementptr (i8, ptr @zeros, i64 16)
@shared = global i64 5

declare i64 @labs(i64)
declare i64 @given(i64)
declare i64 @other(i64)

define internal i64 @inner(i64 %i) noinline {
  %c = load i64, ptr @count
  %d = add i64 %c, %i
  store i64 %d, ptr @count
  ret i64 %d
}
define double @weight(i64 %i) {
  %p = getelementptr [3 x double], ptr @weights, i64 0, i64 %i
  %v = load double, ptr %p
  ret double %v
}
define i64 @choose(i64 %i, i64 %x) {
  %p = getelementptr [2 x ptr], ptr @called, i64 0, i64 %i
  %f = load ptr, ptr %p
  %r = call i64 %f(i64 %x)
  ret i64 %r
}
define i64 @last(i64 %x) {
  %p = load ptr, ptr @where
  %old = load i64, ptr %p
  store i64 %x, ptr %p
  ret i64 %old
}
define i64 @all(i64 %x) {
  %a = call i64 @given(i64 %x)
  %b = call i64 @other(i64 %a)
  ret i64 %b
}
"""
SECOND = """
@shared = external global i64
declare i64 @choose(i64, i64)

define i64 @other(i64 %x) {
  %s = load i64, ptr @shared
  %y = add i64 %x, %s
  %z = call i64 @choose(i64 1, i64 %y)
  ret i64 %z
}
"""
FUNCTIONS = ["weight", "choose", "last", "all", "shared"]


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
def minus_ten(x: int) -> int:
    return x - 10


def library() -> jit.Library:
    given = ctypes.cast(minus_ten, ctypes.c_void_p).value
    assert given is not None
    return jit.Library(list(map(jit.compile_object, (FIRST, SECOND))), FUNCTIONS, {"given": given})


def check(code: jit.Library) -> None:
    number, wide = ctypes.c_double, ctypes.c_int64
    weight = ctypes.CFUNCTYPE(number, wide)(code.address("weight"))
    choose = ctypes.CFUNCTYPE(wide, wide, wide)(code.address("choose"))
    last = ctypes.CFUNCTYPE(wide, wide)(code.address("last"))
    whole = ctypes.CFUNCTYPE(wide, wide)(code.address("all"))
    assert [weight(i) for i in range(3)] == [1.0, 2.0, 4.0]
    assert [choose(0, 2), choose(0, 3), choose(1, -9)] == [42, 45, 9]
    assert [last(7), last(8), last(9)] == [0, 7, 8]
    assert whole(1) == abs(1 - 10 + 5)
    assert wide.from_address(code.address("shared")).value == 5


def test_an_image_does_what_its_objects_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_session", lambda: pytest.fail("LLVM's linker was asked"))
    both = library(), library()
    for code in both:
        check(code)  # each has numbers of its own


def test_llvm_links_what_has_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "link", lambda *_: None)
    check(library())


@pytest.mark.parametrize(
    "text",
    [
        "@x = thread_local global i64 3\ndefine ptr @f() { ret ptr @x }",
        "define weak void @f() { ret void }",
        "$f = comdat any\ndefine void @f() comdat { ret void }",
        "@x = constant i64 1, align 8192\ndefine ptr @f() { ret ptr @x }",
    ],
)
def test_other_objects_have_no_image(text: str) -> None:
    assert images.link([jit.compile_object(text)], ["f"]) is None


def test_damaged_objects_have_no_image() -> None:
    whole = jit.compile_object(FIRST)
    assert images.link([whole], FUNCTIONS) is not None
    for data in (b"", whole[:70], b"\x7fELF", whole.replace(b"ELF", b"FLE"), whole[:-200]):
        assert images.link([data], FUNCTIONS) is None


def test_two_definitions_and_none_are_refused() -> None:
    twice = [jit.compile_object("define void @f() { ret void }")] * 2
    assert images.link(twice, ["f"]) is None
    assert images.link(twice[:1], ["g"]) is None
    needs = jit.compile_object(
        "declare void @nowhere()\ndefine void @f() { call void @nowhere() ret void }"
    )
    for objects, function in ((twice, "f"), (twice[:1], "g"), ([needs], "f")):
        with pytest.raises(HloError, match="HLO0434"):
            jit.Library(objects, [function])


def rights_at(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights = line.split()[:2]
        start, end = (int(at, 16) for at in span.split("-"))
        if start <= address < end:
            return rights
    return ""


def test_code_is_not_written_data_does_not_run_and_both_go() -> None:
    code = library()
    place, data = code.address("weight"), code.address("shared")
    assert rights_at(place) == "r-xp"
    assert rights_at(data) == "rw-p"
    del code
    gc.collect()
    assert (rights_at(place), rights_at(data)) == ("", "")
