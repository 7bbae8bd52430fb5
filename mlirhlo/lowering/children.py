"""Processes that work for this one: out of reach of what LLVM may do to its own.

A worker runs a program that answers requests, one at a time, a number and bytes each:

    pool = Pool("from … import serve; serve()")    # which calls `answer_requests(function)`
    pool.grow(2)
    with pool.worker() as worker:
        is_failure, data = worker.call(level, data)

One that dies takes only its request with it. Workers start with the first request and end with this process.
"""

from __future__ import annotations

import atexit
import os
import struct
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import subprocess

_HEAD = struct.Struct("<qq")
"""A number and bytes of what follows; the other way whether it failed, and bytes."""

Answer: TypeAlias = "Callable[[int, bytes], tuple[int, bytes]]"


class Worker:
    """A process that answers what it is sent; started when it is needed."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self.is_cancelled = False
        """Whether nobody waits for it any more."""

    def call(self, number: int, data: bytes) -> tuple[int, bytes]:
        """Whether the request failed, and the answer. Raises EOFError or OSError when the process is no more."""
        process = self._process
        if self.is_cancelled:
            raise EOFError
        if process is None:
            import subprocess

            process = self._process = subprocess.Popen(
                [sys.executable, "-c", self._program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for whoever waits
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        assert process.stdin is not None
        assert process.stdout is not None
        _send(process.stdin, number, data)
        return _receive(process.stdout)

    def stop(self) -> None:
        """Ends the process; the next request starts another one."""
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


class Pool:
    """Workers of one program."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._free: SimpleQueue[Worker] = SimpleQueue()
        self._all: list[Worker] = []
        self._lock = threading.Lock()
        atexit.register(self.stop)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def grow(self, count: int) -> None:
        """Makes it so many workers at least."""
        with self._lock:
            for _ in range(count - len(self._all)):
                self._all.append(Worker(self._program))
                self._free.put(self._all[-1])

    @contextmanager
    def worker(self) -> Generator[Worker]:
        """A worker for one request; waits until one is free."""
        worker = self._free.get()
        try:
            yield worker
        finally:
            if not worker.is_cancelled:
                self._free.put(worker)

    def interrupt(self) -> None:
        """Ends the processes, which nobody waits for any more, and starts over."""
        with self._lock:
            workers, self._all, self._free = self._all, [], SimpleQueue()
        for worker in workers:
            worker.cancel()

    def stop(self) -> None:
        """Ends the processes."""
        for worker in self._all:
            worker.stop()

    def _forget(self) -> None:
        """In a forked child: the workers are the parent's."""
        for worker in self._all:
            worker.forget()
        self._free, self._all, self._lock = SimpleQueue(), [], threading.Lock()


def answer_requests(answer: Answer) -> None:
    """The worker's side: answers what comes in until nothing comes any more."""
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what LLVM prints is no answer
    while True:
        try:
            number, data = _receive(source)
        except EOFError:
            return
        _send(target, *answer(number, data))


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
