"""Machine code sets the modes of floating point that it counts on, and gives callers back theirs."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator

import numpy as np
import pytest

import mlirhlo
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.threads import set_thread_count

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="MXCSR is x86's")

TEXT = """\
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define i32 @modes() {
  %p = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %v = load i32, ptr %p
  ret i32 %v
}
define void @set(i32 %v) {
  %p = alloca i32
  store i32 %v, ptr %p
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret void
}
"""
USUAL = 0x1F80
FLUSHING = 0x8040
UPWARDS, TO_ZERO = 0x4000, 0x6000


class Modes:
    """MXCSR of this thread."""

    def __init__(self) -> None:
        self._library = Library([compile_object(TEXT)], ["modes", "set"])
        self._get = ctypes.CFUNCTYPE(ctypes.c_uint32)(self._library.address("modes"))
        self.set = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(self._library.address("set"))

    def get(self) -> int:
        return int(self._get()) & 0xFFC0


@pytest.fixture
def modes() -> Iterator[Modes]:
    found = Modes()
    yield found
    found.set(USUAL)


@pytest.mark.parametrize("bits", [FLUSHING, UPWARDS, TO_ZERO, FLUSHING | UPWARDS, 0x8000, 0x0040])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [3, 1 << 18])
def test_results_do_not_depend_on_the_callers_modes(
    modes: Modes, bits: int, threads: int, size: int
) -> None:
    text = (
        f"ENTRY e {{ x = f32[{size}] parameter(0)  y = f32[{size}] parameter(1)"
        f"  p = f32[{size}] multiply(x, y)  s = f32[{size}] add(x, y)  q = f32[{size}] divide(p, s)"
        f"  ROOT t = (f32[{size}], f32[{size}], f32[{size}]) tuple(p, s, q) }}"
    )
    generator = np.random.default_rng(1)
    x = (generator.random(size) * 1e-20).astype(np.float32)
    y = (generator.random(size) * 1e-20).astype(np.float32)
    set_thread_count(threads)
    try:
        run = mlirhlo.compile(mlirhlo.parse(text))
        want = run(x, y)
        modes.set(USUAL | bits)
        got = run(x, y)
        assert modes.get() == USUAL | bits
        slow = run(
            x[::-1][::-1], y, out=tuple(np.empty((2, size), np.float32)[0] for _ in range(3))
        )
    finally:
        modes.set(USUAL)
        set_thread_count(0)
    assert (want[0] != 0).any()
    for one, other, third in zip(want, got, slow, strict=True):
        assert one.tobytes() == other.tobytes() == third.tobytes()
