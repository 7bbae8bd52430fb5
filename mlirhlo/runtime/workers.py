"""Compiling in other processes: several at once, and out of reach of what LLVM may do to its own.

llvmlite holds one lock around every call of LLVM's, and LLVM ends the process where it does not know on.
Much assembly goes to workers, one for each processor; one that dies takes only its unit with it, which
is tried once more without optimisation. They start with the first such module and end with this process.

`MLIRHLO_COMPILE_WORKERS` says how many there are: 0 compiles everything in this process, any other number
nothing.
"""

from __future__ import annotations

import atexit
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import IO

from mlirhlo.diagnostics import HloError, error
from mlirhlo.runtime.jit import compile_object

WORKERS = "MLIRHLO_COMPILE_WORKERS"

_MUCH = 512 << 10
"""Bytes of assembly that are worth starting workers: LLVM takes most of a second for them."""
_MOST = 8
_HEAD = struct.Struct("<qq")
"""LLVM's effort and bytes of what follows; the other way whether it worked, and bytes."""
_PROGRAM = "from mlirhlo.runtime.workers import serve; serve()"


def compile_all(texts: Sequence[str], level: int) -> list[bytes]:
    """Object code of each text. Raises `HloError` HLO0433, and HLO0441 when a worker dies of one."""
    count = _worker_count(sum(map(len, texts)))
    if not count or not texts:
        return [compile_object(text, level=level) for text in texts]
    _pool.grow(count)

    def compiled(at: int) -> bytes:
        return _compiled(texts[at], level)

    # The longest first, so that none of them is left to the end.
    order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
    threads = ThreadPoolExecutor(min(count, len(texts)))
    try:
        made = dict(zip(order, threads.map(compiled, order), strict=True))
    except BaseException:
        # Nobody waits for what is left: an interrupt ends long compilations.
        threads.shutdown(wait=False, cancel_futures=True)
        _pool.interrupt()
        raise
    threads.shutdown()
    return [made[at] for at in range(len(texts))]


def _worker_count(size: int) -> int:
    asked = os.environ.get(WORKERS, "").strip()
    if asked.isdigit():
        return int(asked)
    processors = os.cpu_count() or 1
    return min(processors, _MOST) if size >= _MUCH and processors > 1 else 0


def _compiled(text: str, level: int) -> bytes:
    for effort in (level, 0):
        worker = _pool.take()
        try:
            return worker.compile(text, effort)
        except (EOFError, OSError):
            worker.stop()
            if worker.is_cancelled:
                break
        finally:
            _pool.give(worker)
    raise error(
        "HLO0441",
        "LLVM ended the process that compiled a kernel",
        help="this is a fault of the lowering, not of the program; please report it",
    )


class _Worker:
    """A process that compiles what it is sent; started when it is needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.is_cancelled = False
        """Whether nobody waits for it any more."""

    def compile(self, text: str, level: int) -> bytes:
        """Raises `HloError` as the worker does, EOFError or OSError when it is no more."""
        process = self._process
        if self.is_cancelled:
            raise EOFError
        if process is None:
            process = self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for whoever waits
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        assert process.stdin is not None
        assert process.stdout is not None
        _send(process.stdin, level, text.encode())
        failed, data = _receive(process.stdout)
        if failed:
            raise error("HLO0433", data.decode())
        return data

    def stop(self) -> None:
        """Ends the process; the next text starts another one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def cancel(self) -> None:
        """Ends the process under the thread that waits for it, which does not try again."""
        self.is_cancelled = True
        process = self._process
        if process is not None:
            process.kill()

    def forget(self) -> None:
        """Leaves the process to its owner."""
        self._process = None


class _Pool:
    def __init__(self) -> None:
        self._free: SimpleQueue[_Worker] = SimpleQueue()
        self._all: list[_Worker] = []
        self._lock = threading.Lock()

    def grow(self, count: int) -> None:
        """Makes it so many workers at least."""
        with self._lock:
            for _ in range(count - len(self._all)):
                self._all.append(_Worker())
                self._free.put(self._all[-1])

    def take(self) -> _Worker:
        return self._free.get()

    def give(self, worker: _Worker) -> None:
        if not worker.is_cancelled:
            self._free.put(worker)

    def interrupt(self) -> None:
        """Ends the processes, which nobody waits for any more, and starts over."""
        with self._lock:
            workers, self._all, self._free = self._all, [], SimpleQueue()
        for worker in workers:
            worker.cancel()

    def stop(self) -> None:
        for worker in self._all:
            worker.stop()

    def forget(self) -> None:
        """In a forked child: the workers are the parent's."""
        for worker in self._all:
            worker.forget()
        self._free, self._all, self._lock = SimpleQueue(), [], threading.Lock()


_pool = _Pool()
atexit.register(_pool.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


# ---------------------------------------------------------------- the worker's side


def serve() -> None:
    """Compiles what comes in until nothing comes any more."""
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what LLVM prints is no answer
    while True:
        try:
            level, text = _receive(source)
        except EOFError:
            return
        try:
            failed, data = 0, compile_object(text.decode(), level=level)
        except HloError as problem:
            failed, data = 1, problem.diagnostics[0].message.encode()
        _send(target, failed, data)


def _send(stream: IO[bytes], number: int, data: bytes) -> None:
    stream.write(_HEAD.pack(number, len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes]) -> tuple[int, bytes]:
    number, size = _HEAD.unpack(_exactly(stream, _HEAD.size))
    return number, _exactly(stream, size)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
