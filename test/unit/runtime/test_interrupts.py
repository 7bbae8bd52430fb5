"""Ctrl-C ends machine code and long compilations, and leaves the process usable."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import numpy as np
import pytest

import mlirhlo
from mlirhlo.lowering.llvm_builder import LlvmBuilder
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.runtime_symbols import STOP
from mlirhlo.runtime.generated import pool_ir, run_ir
from mlirhlo.runtime.jit import Library, compile_object, interruptible

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals are Linux's")

ENDLESS = """
c { p = s32[] parameter(0)  ROOT t = pred[] constant(true) }
b { p = s32[] parameter(0)  k = s32[] constant(1)  ROOT r = s32[] add(p, k) }
ENTRY e { a = s32[] parameter(0)  ROOT w = s32[] while(a), condition=c, body=b }
"""
NESTED = """
in { q = (s32[], f32[64]) parameter(0)  ROOT t = pred[] constant(true) }
inb { q = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(q), index=0
  x = f32[64] get-tuple-element(q), index=1  y = f32[64] sine(x)  ROOT r = (s32[], f32[64]) tuple(i, y) }
c { p = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(2000000000)  ROOT t = pred[] compare(i, n), direction=LT }
b { p = (s32[], f32[64]) parameter(0)  ROOT w = (s32[], f32[64]) while(p), condition=in, body=inb }
ENTRY e { a = s32[] parameter(0)  x = f32[64] parameter(1)  t = (s32[], f32[64]) tuple(a, x)
  w = (s32[], f32[64]) while(t), condition=c, body=b  ROOT y = f32[64] get-tuple-element(w), index=1 }
"""
SECONDS = 5.0
"""Far more than it takes, on a machine that does other things."""


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """Python's own handler: shells start background jobs with SIGINT ignored, and then nothing ends the loops."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def interrupted(after: float = 0.3) -> Iterator[list[float]]:
    """SIGINT comes after some time; when it came."""
    when: list[float] = []

    def interrupt() -> None:
        time.sleep(after)
        when.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield when
    finally:
        thread.join()


def is_usable() -> bool:
    module = mlirhlo.parse("ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }")
    return bool((mlirhlo.compile(module)(np.ones(4, np.float32)) == -1).all())


@pytest.mark.parametrize("text", [ENDLESS, NESTED], ids=["scalar", "nested"])
@pytest.mark.parametrize("threads", [1, 2])
def test_loops_end(text: str, threads: int) -> None:
    from mlirhlo.runtime.threads import set_thread_count

    arguments = [np.int32(0)] + ([np.ones(64, np.float32)] if text is NESTED else [])
    set_thread_count(threads)
    try:
        run = mlirhlo.compile(mlirhlo.parse(text))
        # As they are, and by way of the call that converts.
        for given in (arguments, [x.tolist() for x in arguments]):
            with interrupted() as when, pytest.raises(KeyboardInterrupt):
                run(*given)
            assert time.monotonic() - when[0] < SECONDS
    finally:
        set_thread_count(0)
    assert is_usable()


LOOP_S = 0.02
"""Processor time of a thread that has come to its endless loop: all before it takes far less."""


class Running:
    """A module on a thread; `ended` gets what it raises, or its result."""

    def __init__(self, run: Callable[..., object], ended: Queue[object], argument: int = 0) -> None:
        def work() -> None:
            try:
                ended.put(run(np.int32(argument)))
            except BaseException as problem:  # noqa: BLE001  what it is, is tested
                ended.put(type(problem))

        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()

    def wait_for_loop(self) -> None:
        """Returns once machine code is in its loop."""
        assert self.thread.ident is not None
        clock = time.pthread_getcpuclockid(self.thread.ident)
        while time.clock_gettime(clock) < LOOP_S:
            time.sleep(0.01)


def interrupt_loops(run: Callable[..., object], count: int) -> Queue[object]:
    """Interrupts the process when so many threads are in the loop of `run`; how they end."""
    ended: Queue[object] = Queue()
    for running in [Running(run, ended) for _ in range(count)]:
        running.wait_for_loop()
    with pytest.raises(KeyboardInterrupt), interrupted(0.0):
        time.sleep(SECONDS)
    return ended


def test_loops_on_several_threads_end() -> None:
    """A queue waits for them: `Thread.join` takes a thread as ended once an interrupt has ended an earlier one."""
    ended = interrupt_loops(mlirhlo.compile(mlirhlo.parse(ENDLESS)), 3)
    assert [ended.get(timeout=SECONDS) for _ in range(3)] == [KeyboardInterrupt] * 3
    assert is_usable()


def test_runs_that_begin_after_an_interrupt_are_whole_and_can_be_interrupted() -> None:
    endless = mlirhlo.compile(mlirhlo.parse(ENDLESS))
    finite = mlirhlo.compile(
        mlirhlo.parse(ENDLESS.replace("constant(true)", "compare(p, p), direction=NE"))
    )
    for _ in range(3):
        ended = interrupt_loops(endless, 2)
        assert [ended.get(timeout=SECONDS) for _ in range(2)] == [KeyboardInterrupt] * 2
        after: Queue[object] = Queue()
        for number in range(3):
            Running(finite, after, number)
        results = [after.get(timeout=SECONDS) for _ in range(3)]
        assert sorted(results, key=str) == [0, 1, 2]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="code for x86-64")
def test_every_run_begins_behind_the_handler() -> None:
    """A run that begins while another one installs the handler does not count on it."""
    m = LlvmBuilder()
    pool_ir.add_pool(m)
    run_ir.add_run(m, "x86_64", is_linux=True)
    f = m.function("start", [], is_public=True)
    f.call("begin")
    f.ret()
    events: list[str] = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def sigaction(_: int, new: int | None, old: int | None) -> int:
        if new is not None:
            events.append("installed")
        elif old is not None:
            ctypes.c_int64.from_address(old).value = 2  # some handler
            events.append("read")
            if len(events) == 1:
                start()
                events.append("begun")
        return 0

    replaced = kind(sigaction)
    address = ctypes.cast(replaced, ctypes.c_void_p).value or 0
    code = [compile_object(print_llvm(m.module()))]
    library = Library(code, ["start", STOP], {"sigaction": address})
    start = ctypes.CFUNCTYPE(None)(library.address("start"))
    start()
    assert events == ["read", "read", "installed", "begun", "installed"]
    assert ctypes.c_int64.from_address(library.address(STOP)).value == 2 << 8


def test_the_parts_of_a_parallel_loop_that_are_left_are_not_run() -> None:
    from mlirhlo.runtime.threads import set_thread_count

    size = 6000
    text = (
        f"ENTRY e {{ x = f32[{size},{size}] parameter(0)  ROOT r = f32[{size},{size}] dot(x, x),"
        " lhs_contracting_dims={1}, rhs_contracting_dims={0} }"
    )
    set_thread_count(2)
    try:
        run, x = mlirhlo.compile(mlirhlo.parse(text)), np.zeros((size, size), np.float32)
        with interrupted(0.5), pytest.raises(KeyboardInterrupt):
            all(run(x) is not None for _ in range(100))
    finally:
        set_thread_count(0)
    assert is_usable()


@pytest.mark.parametrize("threads", [1, 2])
def test_one_kernel_ends(threads: int) -> None:
    from mlirhlo.runtime.threads import set_thread_count

    lines = [f"  x{i + 1} = f64[1000,200000] tan(x{i})" for i in range(10)]
    text = "\n".join(
        [
            "add { a = f64[] parameter(0)  b = f64[] parameter(1)  ROOT c = f64[] add(a, b) }",
            "ENTRY e {",
            "  p = f64[1000] parameter(0)",
            "  q = f64[1000,200000] broadcast(p), dimensions={0}",
            "  i = f64[1000,200000] iota(), iota_dimension=1",
            "  x0 = f64[1000,200000] add(q, i)",
            *lines,
            "  z = f64[] constant(0)",
            "  ROOT r = f64[1000] reduce(x10, z), dimensions={1}, to_apply=add",
            "}",
        ]
    )
    set_thread_count(threads)
    try:
        run, x = mlirhlo.compile(mlirhlo.parse(text)), np.ones(1000)
        with interrupted() as when, pytest.raises(KeyboardInterrupt):
            run(x)
        assert time.monotonic() - when[0] < SECONDS
    finally:
        set_thread_count(0)
    assert is_usable()


def test_an_interrupt_between_runs_does_not_end_the_next_one() -> None:
    text = ENDLESS.replace("constant(true)", "compare(p, p), direction=NE")
    run = mlirhlo.compile(mlirhlo.parse(text))
    assert run(np.int32(7)) == 7
    with pytest.raises(KeyboardInterrupt), interrupted(0.0):
        time.sleep(SECONDS)
    assert run(np.int32(7)) == 7


def test_work_of_llvm_is_left_alone() -> None:
    until = threading.Event()
    with interrupted() as when, pytest.raises(KeyboardInterrupt):
        interruptible(lambda: until.wait(60))
    assert time.monotonic() - when[0] < SECONDS
    until.set()
    assert interruptible(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["CPU", "Interpreter"])
def test_the_tool_ends(platform: str, tmp_path: Path) -> None:
    file = tmp_path / "endless.hlo"
    file.write_text(ENDLESS)
    command = [sys.executable, "-m", "mlirhlo.cli.run_hlo_module", f"--platform={platform}"]
    process = subprocess.Popen(
        [*command, "--reference_platform=", str(file)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert "inputs: fake data" in process.stderr.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == 130
    assert "Traceback" not in process.stderr.read()


TOOL = """
import atexit, gc, sys
from mlirhlo.cli.report import run_tool
from mlirhlo.dialects.hlo.build import paused_gc

class Holder:
    def __del__(self):
        print("taken down")

def body(arguments):
    atexit.register(print, "ended")
    holder = Holder()
    holder.itself = holder
    globals()["holder"] = holder
    before = gc.get_stats()
    with paused_gc():
        kept = [[n] for n in range(300_000)]
    more = [[n] for n in range(1000)]
    print(gc.get_stats() == before)
    raise KeyboardInterrupt

sys.argv = ["tool"]
sys.exit(run_tool("tool", body, None))
"""


def test_nothing_keeps_an_interrupted_tool() -> None:
    """Neither a walk through all that a pass made, during which no signal is seen, nor the interpreter's end."""
    run = subprocess.run([sys.executable, "-c", TOOL], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, "True\nended\n", "")
