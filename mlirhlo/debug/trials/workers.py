"""Processes with limits that evaluate modules: what crashes, hangs or eats memory there is an answer here."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import IO, Any, cast

MAX_REQUESTS = 2000
"""Requests after which a process is replaced, so that it does not grow."""
_WALL_FACTOR = 8
"""Wall seconds that a request may take for each CPU second of its limit: other work may share the machine."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one evaluation may use."""

    seconds: float = 30.0
    """CPU time."""
    memory_bytes: int = 16 << 30
    """Address space."""


@dataclass(frozen=True, slots=True)
class Died:
    """A process that ended instead of answering."""

    cause: str
    """`time`, `memory`, or `signal 11`."""

    def __str__(self) -> str:
        known = {
            "time": "it takes more CPU time than the limit",
            "memory": "it needs more memory than the limit",
        }
        return known.get(self.cause, f"its process ended with {self.cause}")


@dataclass(slots=True)
class Worker:
    """One process; it starts with the first request, and again after it died."""

    limits: Limits
    folder: str
    """For temporary files of the process and what it starts."""
    process: subprocess.Popen[bytes] | None = None
    requests: int = 0
    cpu_seconds: float = 0.0
    """Of the last request."""

    def ask(self, task: str, arguments: Mapping[str, Any]) -> Any:
        """What `module:function` called `task` returns for `arguments`, or `Died`.

        Raises `RuntimeError` with the traceback when the function raises.
        """
        process = self._started()
        seconds = self.limits.seconds
        request = {"task": task, "arguments": dict(arguments), "seconds": seconds}
        line = json.dumps(request).encode() + b"\n"
        try:
            stdin = cast("IO[bytes]", process.stdin)
            stdin.write(line)
            stdin.flush()
        except BrokenPipeError:
            return self._ended("")
        stdout = cast("IO[bytes]", process.stdout)
        # The first request waits for imports too.
        wall = seconds * _WALL_FACTOR + (60 if self.requests == 1 else 0)
        if not select.select([stdout], [], [], wall)[0]:
            return self._ended("time")
        answer = stdout.readline()
        if not answer:
            return self._ended("")
        reply = json.loads(answer)
        self.cpu_seconds = reply["cpu_seconds"]
        if "memory" in reply:
            self.stop()
            return Died("memory")
        if "raised" in reply:
            raise RuntimeError(reply["raised"])
        return reply["value"]

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is not None and self.requests >= MAX_REQUESTS:
            self.stop()
        if self.process is None:
            self.requests = 0
            environment = {**os.environ, "TMPDIR": self.folder, "OMP_NUM_THREADS": "1"}
            environment.setdefault("OPENBLAS_NUM_THREADS", "1")
            environment.setdefault("JAX_PLATFORMS", "cpu")
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    *("-m", "mlirhlo.debug.trials.worker"),
                    str(self.limits.memory_bytes),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=environment,
            )
        self.requests += 1
        return self.process

    def _ended(self, cause: str) -> Died:
        process = self.process
        assert process is not None
        if not cause:
            code = process.wait()
            is_time = code in (-signal.SIGXCPU, -signal.SIGKILL)
            cause = "time" if is_time else f"signal {-code}" if code < 0 else f"exit {code}"
        self.stop()
        return Died(cause)

    def stop(self) -> None:
        """Ends the process and what it has started."""
        process, self.process = self.process, None
        if process is None:
            return
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        for stream in (process.stdin, process.stdout):
            try:
                cast("IO[bytes]", stream).close()
            except BrokenPipeError:
                pass


@dataclass(slots=True)
class Workers:
    """Several processes, for use in a `with`; their temporary files go with them."""

    count: int = 1
    limits: Limits = field(default_factory=Limits)
    _folder: tempfile.TemporaryDirectory[str] | None = None
    _workers: list[Worker] = field(default_factory=list[Worker])
    _pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        self._folder = tempfile.TemporaryDirectory(prefix="hlo-trials-", ignore_cleanup_errors=True)
        self._workers = [Worker(self.limits, self._folder.name) for _ in range(self.count)]
        self._pool = ThreadPoolExecutor(self.count)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.stop()
        assert self._pool is not None
        assert self._folder is not None
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._folder.cleanup()

    def tighten(self, factor: float, least_seconds: float) -> None:
        """Limits further requests to `factor` times the CPU time of the last one, and `least_seconds` at least."""
        seconds = max(factor * max(w.cpu_seconds for w in self._workers), least_seconds)
        for worker in self._workers:
            worker.limits = replace(worker.limits, seconds=min(seconds, self.limits.seconds))

    def ask(self, task: str, requests: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Answers to up to `count` requests, evaluated at once: values, or `Died`."""
        assert self._pool is not None
        assert len(requests) <= self.count
        futures = [
            self._pool.submit(worker.ask, task, request)
            for worker, request in zip(self._workers, requests, strict=False)
        ]
        return [future.result() for future in futures]
