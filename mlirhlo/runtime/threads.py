"""Threads of compiled modules: one pool in the process, made of machine code, called by generated code.

Generated code declares `mlirhlo_parallel_for(kernel, args, n, most)` (see `threads_ir.py`); `externals` gives the
loader its address. How many threads there are is said by `set_thread_count`, else by `OMP_NUM_THREADS`, else by
the processors this process may use. Results depend on that number at most, never on which thread did what.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import platform
import sys

from mlirhlo.lowering import routines
from mlirhlo.lowering.runtime_symbols import MAX_THREADS, PARALLEL_FOR, STOP
from mlirhlo.runtime import calls
from mlirhlo.runtime.cache import builder_code
from mlirhlo.runtime.jit import Library, lock_for_forks

FUTEX = {"x86_64": (202, "llvm.x86.sse2.pause"), "aarch64": (98, "")}
"""Linux's number of the system call, and the intrinsic that eases a spinning core, by machine."""

_lock = lock_for_forks()
_wanted = 0
"""Threads asked for; 0 when the environment decides."""


def thread_count() -> int:
    """Threads that compiled code runs on."""
    if _wanted:
        return _wanted
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if first.isdigit() and int(first):
        return min(int(first), MAX_THREADS)
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), MAX_THREADS)
    return min(os.cpu_count() or 1, MAX_THREADS)


def set_thread_count(count: int) -> None:
    """Sets the number of threads for the whole process; 0 leaves it to the environment again.

    It holds for the libraries that compiled code calls, too.

    Raises ValueError for a negative number.
    """
    global _wanted  # one pool, one number
    if count < 0:
        raise ValueError(f"{count} threads")
    with _lock:
        _wanted = min(count, MAX_THREADS)
        if _only_pool.cache_info().currsize:
            _pool().resize(thread_count())
    if routines.are_loaded():
        routines.set_thread_count(thread_count())


def limit_libraries() -> None:
    """Libraries that were loaded after `set_thread_count` get that number of threads."""
    if _wanted:
        routines.set_thread_count(_wanted)


def externals(text: str) -> dict[str, int]:
    """Addresses of what LLVM assembly calls of this module; the pool starts with its first job."""
    return {PARALLEL_FOR: _pool().address} if f"@{PARALLEL_FOR}(" in text else {}


def _pool() -> _Pool:
    # Two threads may want the first one: the code of a second would be unmapped while modules call it.
    with _lock:
        return _only_pool()


@functools.cache
def _only_pool() -> _Pool:
    return _Pool()


class _Pool:
    def __init__(self) -> None:
        number, pause = FUTEX.get(platform.machine(), (0, ""))
        self._works = sys.platform == "linux" and number > 0
        names = [PARALLEL_FOR, "pool_stop", "pool_forget", "threads"]
        # A machine of another kind never calls what is missing there: it has one thread.
        code = builder_code("threads_ir", number, pause, platform.machine())
        self._library = Library([code], names, calls.externals(f"@{STOP}"))
        self.address = self._library.address(PARALLEL_FOR)
        self._count = ctypes.c_int32.from_address(self._library.address("threads"))
        self._stop = ctypes.CFUNCTYPE(None)(self._library.address("pool_stop"))
        self._forget = ctypes.CFUNCTYPE(None)(self._library.address("pool_forget"))
        self.resize(thread_count())
        if self._works:
            # Before the code is unmapped, and in children, which have the calling thread alone.
            atexit.register(self._stop)
            os.register_at_fork(after_in_child=self._forget)

    def resize(self, count: int) -> None:
        """Jobs from now on are cut for this many threads."""
        self._count.value = count if self._works else 1
