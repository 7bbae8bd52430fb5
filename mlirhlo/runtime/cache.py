"""Object code kept on disk, so that what was compiled once is only loaded again.

A file is named after everything its content depends on and holds the hash of it, so that nothing but
what this program wrote for this very code and processor is ever loaded. Files appear whole, by a
rename; processes may race. The directory must be the user's own and closed to writing by others. No
trouble with it stops a compilation: the first one is logged as a warning (HLO0436), and the code is
compiled anew.

`MLIRHLO_CACHE_DIR` names the directory; empty or `off` turns the cache off.
`MLIRHLO_CACHE_BYTES` bounds it; the files that were used longest ago go first. What all files have together is
not asked of each of them at every write: the file `tally` is as many bytes long as there may be KiB, since who
writes an object makes it longer first. Only when that is over the limit are files counted and removed, and the
tally is made true again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import json
import logging
import os
import secrets
import stat
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from mlirhlo.diagnostics import Diagnostic, Severity
from mlirhlo.importing import ALONE
from mlirhlo.runtime.jit import Cpu, compile_object, host_words
from mlirhlo.runtime.object_code.workers import compile_all

LOG = logging.getLogger("mlirhlo.cache")

DIRECTORY = "MLIRHLO_CACHE_DIR"
LIMIT = "MLIRHLO_CACHE_BYTES"

DEFAULT_LIMIT = 512 << 20
"""Bytes of all objects together."""

_MAGIC = b"mlirhlo object 1\n"
_ENDING, _UNFINISHED = ".o", ".part"
_ABANDONED_S = 3600.0
"""Age at which an unfinished file has lost its writer."""
_TALLY = "tally"
_TALLIED = 1 << 10
"""Bytes of objects for one of the tally."""
_KEPT_SHARE = 0.9
"""A sweep leaves this much of the limit, so that the next one is not due at once."""


def object_codes(texts: Sequence[str], level: int = 2) -> list[bytes]:
    """Of each text, as `object_code`; what is missing is compiled together (`workers.compile_all`).

    Raises `HloError` HLO0433 and HLO0441.
    """
    cache = default_cache()
    if cache is None:
        return compile_all(texts, level)
    keys = [object_key(text, None, level) for text in texts]
    found = {key: cache.get(key) for key in keys}
    missing = {k: t for k, t in zip(keys, texts, strict=True) if found[k] is None}
    for key, made in zip(missing, compile_all(list(missing.values()), level), strict=True):
        cache.put(key, made)
        found[key] = made
    return [data for key in keys if (data := found[key]) is not None]


def object_code(text: str, cpu: Cpu | None = None, level: int = 2) -> bytes:
    """As `jit.compile_object`, out of the cache when it is there. Raises `HloError` HLO0433."""
    return _cached(lambda: object_key(text, cpu, level), lambda: compile_object(text, cpu, level))


def builder_code(name: str, *arguments: object, **named: object) -> bytes:
    """Object code of what `assembly(*arguments, **named)` writes, a function of a module in `generated`.

    The cache knows it by these words and the state of the package's files: code that is there is not built again, and
    what builds it is not imported.
    """
    return _cached(
        lambda: object_key(f"{name} {arguments} {named}", None, 2, f"built {sources()}"),
        lambda: object_code(_builder(name).assembly(*arguments, **named)),
    )


def _builder(name: str) -> Any:
    with ALONE:
        return importlib.import_module(f"mlirhlo.runtime.generated.{name}")


def _cached(key: Callable[[], str], make: Callable[[], bytes]) -> bytes:
    cache = default_cache()
    if cache is None:
        return make()
    name = key()
    data = cache.get(name)
    if data is None:
        data = make()
        cache.put(name, data)
    return data


@functools.lru_cache(maxsize=1024)
def sources(top: Path = Path(__file__).parent.parent) -> str:
    """The state of this package's files: code that another one wrote is not taken for its own."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(top):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                about = os.stat(os.path.join(folder, name))
                digest.update(f"{name} {about.st_size} {about.st_mtime_ns} ".encode())
    return digest.hexdigest()


def object_key(text: str, cpu: Cpu | None, level: int, options: str = "") -> str:
    """Name of the object code of `text`: a hash of all that it depends on. Without a processor, of this machine's."""
    machine = host_words() if cpu is None else [cpu.name, cpu.features]
    versions = [_our_version(), _llvm_version()]
    parts = [_MAGIC.decode(), versions, sys.platform, machine, level, options, text]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@functools.cache
def _llvm_version() -> list[object]:
    """Version of llvmlite, size and time of its library: LLVM is not loaded to find out."""
    llvmlite = importlib.import_module("llvmlite")
    folder = Path(str(llvmlite.__file__)).parent / "binding"
    files = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in folder.glob("*llvmlite.*")]
    return [llvmlite.__version__, *sorted(files)]


def _our_version() -> str:
    """The package's; taken from the running one, since rooms do not import the front."""
    return str(getattr(sys.modules.get("mlirhlo"), "__version__", ""))


def default_cache() -> ObjectCache | None:
    """The cache that the environment asks for; None when it is turned off or the system has none."""
    if os.name != "posix":
        return None  # owners and modes mean nothing there
    named = os.environ.get(DIRECTORY)
    if named is None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        named = os.path.join(home, "mlirhlo", "objects")
    elif not named or named.lower() == "off":
        return None
    try:
        limit = int(os.environ.get(LIMIT) or DEFAULT_LIMIT)
    except ValueError:
        limit = DEFAULT_LIMIT
    return _cache(named, limit)


@functools.lru_cache(maxsize=1024)
def _cache(directory: str, limit: int) -> ObjectCache:
    return ObjectCache(Path(directory), limit)


class ObjectCache:
    """Blobs by name in one directory. No method raises."""

    def __init__(self, directory: Path, limit: int = DEFAULT_LIMIT) -> None:
        """`limit`: bytes of all files together."""
        self.directory = directory
        self.limit = limit
        self._warned = False
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """What was put under `key`; None when nothing was, or it is damaged or not ours."""
        with self._opened() as folder:
            if folder is None:
                return None
            name = key + _ENDING
            try:
                file = os.open(
                    name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
                )
            except FileNotFoundError:
                return None
            with open(file, "rb") as stream:
                about = os.fstat(file)
                if not stat.S_ISREG(about.st_mode) or not _is_ours(about):
                    self._warn(f"{name} belongs to another user or is open to their writing")
                    return None
                stored = stream.read()
                data = _unwrapped(stored, key)
                if data is None:
                    self._warn(f"{name} is damaged; it is made again")
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=folder)
                    return None
                with contextlib.suppress(OSError):
                    os.utime(file)  # the age that the sweep goes by
                return data
        return None

    def put(self, key: str, data: bytes) -> None:
        """Keeps `data` under `key`, whole or not at all."""
        stored = _wrapped(data, key)
        if len(stored) > self.limit:
            return
        with self._opened(make=True) as folder:
            if folder is None:
                return
            is_due = self._tallied(folder, len(stored)) > self.limit
            unfinished = f"{key}.{secrets.token_hex(8)}{_UNFINISHED}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with open(os.open(unfinished, flags, 0o600, dir_fd=folder), "wb") as stream:
                    stream.write(stored)
                os.replace(unfinished, key + _ENDING, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(unfinished, dir_fd=folder)
                raise
            if is_due:
                self._sweep(folder)

    def _tallied(self, folder: int, size: int) -> int:
        """Counts bytes that will be written; the most that all files have with them, more than there can be
        where nobody has counted yet."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(_TALLY, flags | os.O_NONBLOCK, 0o600, dir_fd=folder)
        try:
            is_new = os.fstat(file).st_size == 0
            os.write(file, bytes(-(-size // _TALLIED)))
            return self.limit + 1 if is_new else os.fstat(file).st_size * _TALLIED
        finally:
            os.close(file)

    def _set_tally(self, folder: int, size: int) -> None:
        with contextlib.suppress(FileNotFoundError):  # then the next one counts
            file = os.open(_TALLY, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                os.ftruncate(file, -(-size // _TALLIED))
            finally:
                os.close(file)

    def _sweep(self, folder: int) -> None:
        """Removes what was used longest ago, down to the limit, and what writers left unfinished."""
        found: list[tuple[float, int, str]] = []
        now, unfinished = time.time(), 0
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # another process sweeps too
                    about = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(_ENDING):
                        found.append((about.st_mtime, about.st_size, entry.name))
                    elif entry.name.endswith(_UNFINISHED):
                        if now - about.st_mtime > _ABANDONED_S:
                            os.unlink(entry.name, dir_fd=folder)
                        else:
                            unfinished += about.st_size
        total = unfinished + sum(size for _, size, _ in found)
        kept = self.limit * _KEPT_SHARE if total > self.limit else total
        for _, size, name in sorted(found):
            if total <= kept:
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            total -= size
        self._set_tally(folder, total)

    @contextlib.contextmanager
    def _opened(self, *, make: bool = False) -> Generator[int | None]:
        """The directory as a descriptor; None, and a warning, when it cannot be used. Errors of the
        system in the body end in a warning."""
        folder = self._open(make=make)
        try:
            yield folder
        except OSError as problem:
            self._warn(problem.strerror or str(problem))
        finally:
            if folder is not None:
                os.close(folder)

    def _open(self, *, make: bool) -> int | None:
        try:
            if make:
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as problem:
            self._warn(problem.strerror or str(problem))
            return None
        if _is_ours(os.fstat(folder)):
            return folder
        os.close(folder)
        self._warn("it belongs to another user or is open to their writing")
        return None

    def _warn(self, what: str) -> None:
        """Logs the first trouble."""
        with self._lock:
            if self._warned:
                return
            self._warned = True
        diagnostic = Diagnostic(
            "HLO0436",
            f"the cache of compiled code in {self.directory} is of no use: {what}",
            help=f"give {DIRECTORY} a directory of your own (chmod 700), or 'off'",
            severity=Severity.WARNING,
        )
        LOG.warning("%s", diagnostic)


def _is_ours(about: os.stat_result) -> bool:
    """Whether nobody else (but the superuser) can have written it."""
    return about.st_uid == os.geteuid() and not about.st_mode & 0o022


def _digest(data: bytes, key: str) -> bytes:
    """The key is part of it: a file under another's name is not taken for it."""
    made: Any = hashlib.sha256(key.encode())
    made.update(data)
    return bytes(made.digest())


def _wrapped(data: bytes, key: str) -> bytes:
    return _MAGIC + _digest(data, key) + data


def _unwrapped(stored: bytes, key: str) -> bytes | None:
    start = len(_MAGIC) + 32
    data = stored[start:]
    return data if stored[:start] == _MAGIC + _digest(data, key) else None
