"""Where dumps go: a directory or standard output.

Nothing here raises for a file that cannot be written: the first trouble of its kind is logged, the
compilation goes on, and so do the other files. Files appear whole, by a rename. The first process that
writes to a directory holds it locked; another one that comes meanwhile writes below it, to
`process_PID`, and says so, so that neither overwrites the other's files.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlirhlo.debug.dump.names import sanitized
from mlirhlo.diagnostics import Diagnostic, Severity

LOG = logging.getLogger("mlirhlo.dump")

_stdout_lock = threading.Lock()

PROGRESS_FROM = 1000
"""Files after which a line on the terminal counts them."""
_PROGRESS_EVERY_S = 0.5

_told: set[tuple[object, ...]] = set()
"""Troubles that were told already."""


def tell(key: tuple[object, ...], code: str, message: str, help: str, *, fatal: bool) -> None:
    """Logs one trouble, the first time."""
    if key in _told:
        return
    _told.add(key)
    severity = Severity.ERROR if fatal else Severity.WARNING
    level = logging.ERROR if fatal else logging.WARNING
    LOG.log(level, "%s", Diagnostic(code, message, help=help, severity=severity))


def print_text(name: str, text: str) -> None:
    """A text that would have been a file, between XLA's marks."""
    with _stdout_lock:
        out = sys.stdout
        out.write(f"*** Begin {name} ***\n{text}\n*** End {name} ***\n")
        out.flush()


def print_line(line: str) -> None:
    """A line on standard output."""
    with _stdout_lock:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def refuse(name: str) -> None:
    """Says that a binary file does not go to standard output, in XLA's words."""
    LOG.error(
        "%s",
        Diagnostic(
            "HLO0527",
            f"Refusing to write {name} to stdout. Pass --xla_dump_to=<path> to write to a file.",
        ),
    )


@dataclass(slots=True)
class Directory:
    """A directory that dumps of this process go to."""

    path: str
    """As the user gave it; another one below it when another process holds it."""
    lock: int | None = None
    """The open directory, locked as long as the process lives."""
    written: set[str] = field(default_factory=set[str])
    """Files of this process."""
    count: int = 0
    size: int = 0
    _shown: float = 0.0
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def write(self, name: str, data: bytes, below: Sequence[str] = ()) -> str | None:
        """Writes a file, in the folders `below`; its path, or None when that failed and was told."""
        folder = os.path.join(self.path, *map(sanitized, below))
        path = os.path.join(folder, sanitized(name))
        part = os.path.join(folder, f".{os.getpid()}-{threading.get_ident()}.part")
        try:
            if below:
                os.makedirs(folder, exist_ok=True)
            if path not in self.written and os.path.lexists(path):
                self._tell_replaced()
            with open(part, "wb", buffering=0) as file:
                _write_all(file, data)
            os.replace(part, path)
        except (OSError, ValueError) as problem:
            with contextlib.suppress(OSError, ValueError):
                os.unlink(part)
            _tell_unwritten(self.path, path, problem)
            return None
        with self._mutex:
            self.written.add(path)
            self.count += 1
            self.size += len(data)
            self._progress()
        return path

    def _tell_replaced(self) -> None:
        tell(
            ("replaced", self.path),
            "HLO0528",
            f"files of an earlier process in {self.path} are replaced",
            "one directory a run, or --xla_dump_hlo_to_subfolder, keeps them",
            fatal=False,
        )

    def _progress(self) -> None:
        if self.count < PROGRESS_FROM or not sys.stderr.isatty():
            return
        now = time.monotonic()
        if now - self._shown >= _PROGRESS_EVERY_S:
            self._shown = now
            size = f"{self.size / 1e6:.0f} MB"
            sys.stderr.write(f"\r{self.count} files, {size} in {self.path}\x1b[K\r")
            sys.stderr.flush()


def _write_all(file: Any, data: bytes) -> None:
    """A write may take a part only, when the disk is nearly full."""
    view = memoryview(data)
    while view:
        written = file.write(view)
        if not written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[written:]


def _tell_unwritten(directory: str, path: str, problem: Exception) -> None:
    number = getattr(problem, "errno", None)
    reason = getattr(problem, "strerror", None) or str(problem)
    tell(
        ("write", directory, number),
        "HLO0526",
        f"cannot write {path}: {reason}",
        "the compilation goes on; further files that fail so are not named",
        fatal=True,
    )


# ---------------------------------------------------------------- directories of this process

_directories: dict[tuple[int, str], Directory | None] = {}
_lock = threading.Lock()


def open_directory(path: str) -> Directory | None:
    """The directory, made with its parents when missing; None when that failed and was told."""
    key = (os.getpid(), os.path.realpath(path))
    with _lock:
        if key not in _directories:
            _directories[key] = _open(path)
        found = _directories[key]
        if found is not None and not os.path.isdir(found.path):
            # Removed since, by a test that cleans up or by hand.
            found = _directories[key] = _open(path)
        return found


def _open(path: str) -> Directory | None:
    try:
        os.makedirs(path, exist_ok=True)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        if isinstance(problem, FileExistsError):
            reason = "a file is in the way"
        tell(
            ("directory", path),
            "HLO0526",
            f"Could not create directory: {path}. Error: {reason}",
            "nothing is dumped there; the compilation goes on",
            fatal=True,
        )
        return None
    lock = _take(path)
    if lock is None:
        own = os.path.join(path, f"process_{os.getpid()}")
        tell(
            ("shared", path),
            "HLO0528",
            f"another process dumps to {path}: this one writes to {own}",
            "one directory a process, or --xla_dump_hlo_to_subfolder, keeps them apart",
            fatal=False,
        )
        with contextlib.suppress(OSError):
            os.makedirs(own, exist_ok=True)
        return Directory(own)
    return Directory(path, lock if lock >= 0 else None)


def _take(path: str) -> int | None:
    """Locks a directory; -1 where that is not possible, None where another process has."""
    try:
        import fcntl
    except ImportError:
        return -1
    handle = -1
    try:
        handle = os.open(path, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        if handle >= 0:
            os.close(handle)
        return -1
    return handle


def attempt(what: str, produce: Callable[[], bytes | str]) -> bytes | None:
    """The content of a file; None when making it failed, which is told and loses no other file."""
    try:
        made = produce()
    except Exception as problem:  # noqa: BLE001  a dump must never stop a compilation
        first = str(problem).split("\n", 1)[0][:300]
        tell(
            ("content", what.partition(".")[2], type(problem)),
            "HLO0526",
            f"cannot make {what}: {type(problem).__name__}: {first}",
            "the other dumps and the compilation go on",
            fatal=True,
        )
        return None
    return made.encode("utf-8", "surrogateescape") if isinstance(made, str) else made
