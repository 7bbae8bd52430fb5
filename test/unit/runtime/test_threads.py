"""The thread pool: the same ranges whoever runs them, nested calls, forks, many callers, long waits."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from support import ROOT, environment

from mlirhlo.lowering import routines
from mlirhlo.runtime import threads
from mlirhlo.runtime.jit import Library, compile_object

pytest.importorskip("llvmlite")

KERNELS = """
declare void @mlirhlo_parallel_for(ptr, ptr, i64, i64)

; Writes to each element its number, times 1000, and the number of its range.
define void @number(ptr %args, i64 %begin, i64 %end, i64 %range) {
entry:
  br label %next
next:
  %i = phi i64 [ %begin, %entry ], [ %i1, %one ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %one, label %out
one:
  %at = getelementptr i64, ptr %args, i64 %i
  %old = load i64, ptr %at
  %thousands = mul i64 %i, 1000
  %sum = add i64 %thousands, %range
  %new = add i64 %old, %sum
  store i64 %new, ptr %at
  %i1 = add i64 %i, 1
  br label %next
out:
  ret void
}

; Each range of eight rows of 100 elements is a job of its own.
define void @rows(ptr %args, i64 %begin, i64 %end, i64 %range) {
entry:
  br label %next
next:
  %i = phi i64 [ %begin, %entry ], [ %i1, %one ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %one, label %out
one:
  %first = mul i64 %i, 100
  %row = getelementptr i64, ptr %args, i64 %first
  call void @mlirhlo_parallel_for(ptr @number, ptr %row, i64 100, i64 256)
  %i1 = add i64 %i, 1
  br label %next
out:
  ret void
}

define void @flat(ptr %array, i64 %n) {
  call void @mlirhlo_parallel_for(ptr @number, ptr %array, i64 %n, i64 256)
  ret void
}

define void @few(ptr %array, i64 %n) {
  call void @mlirhlo_parallel_for(ptr @number, ptr %array, i64 %n, i64 3)
  ret void
}

declare i32 @sched_yield()

; The first range ends when all others have; each counts itself.
define void @slow(ptr %args, i64 %begin, i64 %end, i64 %range) {
entry:
  %first = icmp eq i64 %range, 0
  br i1 %first, label %wait, label %count
wait:
  %done = load atomic i64, ptr %args acquire, align 8
  %all = icmp eq i64 %done, 7
  %y = call i32 @sched_yield()
  br i1 %all, label %count, label %wait
count:
  %old = atomicrmw add ptr %args, i64 1 seq_cst
  ret void
}

define void @held_up(ptr %array, i64 %n) {
  call void @mlirhlo_parallel_for(ptr @slow, ptr %array, i64 %n, i64 256)
  ret void
}

; A range of the first half waits, a while, for its counterpart in the second to begin; each that need not wait
; longer counts itself. Element 1 + r says that range r began.
define void @pairs(ptr %args, i64 %begin, i64 %end, i64 %range) {
entry:
  %own = add i64 %range, 1
  %flag = getelementptr i64, ptr %args, i64 %own
  store atomic i64 1, ptr %flag seq_cst, align 8
  %later = icmp sge i64 %range, 4
  br i1 %later, label %count, label %wait
wait:
  %turn = phi i64 [ 0, %entry ], [ %turn1, %again ]
  %other = getelementptr i64, ptr %flag, i64 4
  %begun = load atomic i64, ptr %other acquire, align 8
  %met = icmp eq i64 %begun, 1
  br i1 %met, label %count, label %again
again:
  %y = call i32 @sched_yield()
  %turn1 = add i64 %turn, 1
  %patient = icmp ult i64 %turn1, 3000000
  br i1 %patient, label %wait, label %out
count:
  %old = atomicrmw add ptr %args, i64 1 seq_cst
  br label %out
out:
  ret void
}

define void @halves(ptr %array, i64 %n) {
  call void @mlirhlo_parallel_for(ptr @pairs, ptr %array, i64 %n, i64 256)
  ret void
}

define void @nested(ptr %array, i64 %n) {
  call void @mlirhlo_parallel_for(ptr @rows, ptr %array, i64 %n, i64 256)
  ret void
}
"""


@functools.cache
def library() -> Library:
    names = ["flat", "few", "nested", "held_up", "halves"]
    return Library([compile_object(KERNELS)], names, threads.externals(KERNELS))


def run(name: str, n: int, size: int | None = None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Calls a function of `KERNELS` on zeros; ctypes gives up Python's lock meanwhile."""
    array = np.zeros(n if size is None else size, np.int64)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library().address(name))
    function(array.ctypes.data, n)
    return array


def expected(n: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    several = 4 * count
    parts = 1 if count == 1 else n if n < 4 * several else several
    ranges = np.zeros(n, np.int64)
    for part in range(parts):
        ranges[n * part // parts : n * (part + 1) // parts] = part
    return np.arange(n) * 1000 + ranges


@pytest.fixture(params=[1, 2, 4])
def count(request: pytest.FixtureRequest) -> Iterator[int]:
    threads.set_thread_count(request.param)
    yield request.param
    threads.set_thread_count(0)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 18, 31, 32, 63, 64, 1000])
def test_ranges(n: int, count: int) -> None:
    np.testing.assert_array_equal(run("flat", n), expected(n, count))


def test_nested_jobs_run_serially_on_the_same_ranges(count: int) -> None:
    rows = run("nested", 8, 800).reshape(8, 100)
    for row in rows:
        np.testing.assert_array_equal(row, expected(100, count))


def test_who_is_free_takes_the_next_range() -> None:
    """Two threads, eight ranges, one of which takes as long as all others together."""
    threads.set_thread_count(2)
    try:
        for _ in range(20):
            assert run("held_up", 8)[0] == 8
    finally:
        threads.set_thread_count(0)


def test_each_thread_begins_with_neighbours_of_its_own() -> None:
    """Two threads, eight ranges: what the first four wait for is begun meanwhile."""
    threads.set_thread_count(2)
    try:
        for _ in range(20):
            assert run("halves", 8, 9)[0] == 8
    finally:
        threads.set_thread_count(0)


def test_many_jobs(count: int) -> None:
    """Jobs follow each other with no pause, and with pauses long enough for everyone to sleep."""
    for turn in range(2000):
        n = turn % 50
        assert np.array_equal(run("flat", n), expected(n, count)), turn
        if turn % 200 == 0:
            time.sleep(0.005)


def test_many_callers(count: int) -> None:
    wrong: list[int] = []

    def call(number: int) -> None:
        for turn in range(300):
            n = number * 10 + turn % 7
            if not np.array_equal(run("flat", n), expected(n, count)):
                wrong.append(n)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_fewer_threads_than_before() -> None:
    try:
        for count in (4, 2, 1, 3):
            threads.set_thread_count(count)
            for _ in range(50):
                np.testing.assert_array_equal(run("flat", 100), expected(100, count))
    finally:
        threads.set_thread_count(0)


def test_a_forked_child_has_threads_of_its_own() -> None:
    threads.set_thread_count(3)
    try:
        run("flat", 100)
        child = os.fork()
        if not child:
            same = all(np.array_equal(run("flat", 100), expected(100, 3)) for _ in range(20))
            os._exit(0 if same else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0
        np.testing.assert_array_equal(run("flat", 100), expected(100, 3))
    finally:
        threads.set_thread_count(0)


def test_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, count in (("3", 3), ("2,4", 2), ("100000", 256)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert threads.thread_count() == count
    every = len(os.sched_getaffinity(0))
    for value in ("", "0", "-1", "x"):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert threads.thread_count() == every
    with pytest.raises(ValueError, match="-1 threads"):
        threads.set_thread_count(-1)


def test_only_what_calls_it_gets_the_pool() -> None:
    assert threads.externals("define void @main() {\n  ret void\n}\n") == {}
    assert list(threads.externals(KERNELS)) == ["mlirhlo_parallel_for"]


ENDING = """
import sys, threading
sys.path.insert(0, "test/unit/runtime"); sys.path.insert(0, "test")
import test_threads as t
t.threads.set_thread_count(4)
t.run("flat", 100)
if sys.argv[1] == "busy":
    threading.Thread(target=lambda: [t.run("flat", 100000) for _ in range(10**9)], daemon=True).start()
print("done")
"""


@pytest.mark.parametrize("how", ["idle", "busy"])
def test_a_process_ends_while_the_pool_waits(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDING, how],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


FIRST = """
import sys, threading
sys.setswitchinterval(1e-6)
from mlirhlo.lowering import routines
from mlirhlo.runtime import threads
start, found = threading.Barrier(8), set()

def ask():
    start.wait()
    found.add(threads.externals(f"@{threads.PARALLEL_FOR}(")[threads.PARALLEL_FOR])

several = [threading.Thread(target=ask) for _ in range(8)]
for thread in several:
    thread.start()
for thread in several:
    thread.join()
print(len(found))
"""


def test_threads_that_want_the_first_pool_get_one() -> None:
    """The code of a second one would be unmapped while modules call it."""
    run = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.stdout == "1\n", run.stderr


FORKS = """
import os, threading
import numpy as np
import mlirhlo

def compiled(number):
    executable = mlirhlo.compile(
        mlirhlo.parse(f"ENTRY e{number} {{ x = f32[8] parameter(0) ROOT y{number} = f32[8] sine(x) }}"), cached=False
    )
    return float(executable(np.zeros(8, np.float32))[0])

compiled(0)
busy = True

def compile_on():
    while busy:
        compiled(1)

thread = threading.Thread(target=compile_on)
thread.start()
for number in range(20):
    child = os.fork()
    if not child:
        os._exit(int(compiled(2) + 7))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
busy = False
thread.join()
print("all")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_children_compile_though_a_thread_did_when_they_were_forked() -> None:
    run = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.stdout == "all\n", run.stderr


def test_libraries_keep_to_the_number_of_threads() -> None:
    """OpenBLAS, out of NumPy's wheel, has threads of its own."""
    (library,) = routines._libraries() or (None,)  # pyright: ignore[reportPrivateUsage]
    count = getattr(library, "scipy_openblas_get_num_threads64_", None)
    if count is None:
        pytest.skip("this NumPy carries no OpenBLAS")
    before = count()
    threads.set_thread_count(1)
    try:
        assert count() == 1
    finally:
        threads.set_thread_count(0)
    assert count() == before
