"""Methods of data classes and regular expressions compiled once for an installation, as modules are.

`dataclasses` writes the methods of each class as text and compiles it whenever the class is created, and `re` compiles
the patterns of every module: a third of what importing xDSL and this package takes. The code of both is kept beside the
bytecode of this module, under the same conditions (`PYTHONDONTWRITEBYTECODE`, `PYTHONPYCACHEPREFIX`). A file that
cannot be read or written costs nothing but the time. Classes of other packages are created as ever.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

import atexit
import dataclasses
import marshal
import mmap
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from importlib.util import source_hash
from itertools import accumulate
from types import CodeType
from typing import Any, cast

_PACKAGES = ("mlirhlo.", "xdsl.")
_compiler: Any = vars(re)["_compiler"]
_compile_pattern = _compiler.compile
_MAX_TEXTS = 10_000
"""A file of more texts than this holds many of classes that are no more; it starts anew."""


_CALLER = 3
"""Frames from `Codes.pattern` to who calls a function of `re`."""


def keep_code() -> Callable[[bool], None]:
    """Lets `dataclasses` look here for the code of a class's methods before it compiles them.

    The result has `re` look here for the patterns of modules, or compile them as ever.
    """
    codes = Codes(_path())
    setattr(dataclasses, "exec", codes.run)  # noqa: B010  # shadows the builtin in that module
    return lambda on: setattr(_compiler, "compile", codes.pattern if on else _compile_pattern)


def _path() -> str | None:
    cached = None if __spec__ is None else __spec__.cached
    return None if cached is None else f"{cached.removesuffix('.pyc')}.codes"


class Codes:
    """Marshalled code by text, in a file that is mapped at the first question: what is not used is not read."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.added = dict[bytes, bytes]()
        """Code by hash of its text, which is not in the file."""

    def run(self, text: str, names: dict[str, Any], local: dict[str, Any]) -> None:
        """As `exec(text, names, local)`."""
        if not str(names.get("__name__")).startswith(_PACKAGES):
            exec(text, names, local)  # what dataclasses does
            return
        exec(self.code(text), names, local)

    def code(self, text: str) -> CodeType:
        """What the text compiles to."""
        code: CodeType = self._kept(text, lambda: compile(text, "<string>", "exec"))
        return code

    def pattern(self, pattern: Any, flags: int = 0) -> re.Pattern[Any]:
        """As the compiler of `re`; patterns of functions are not kept, as they may be different each time."""
        if (
            not isinstance(pattern, str | bytes)
            or flags & re.DEBUG
            or sys._getframe(_CALLER).f_code.co_name != "<module>"
        ):
            return cast("re.Pattern[Any]", _compile_pattern(pattern, flags))
        key = f"{_compiler.MAGIC} {flags} {pattern!r}"
        parts = self._kept(key, lambda: _pattern_code(pattern, flags))
        return cast("re.Pattern[Any]", _compiler._sre.compile(pattern, *parts))

    def _kept(self, text: str, make: Callable[[], Any]) -> Any:
        """What `make()` yields, or yielded in an earlier process."""
        key = source_hash(text.encode("utf-8", "surrogateescape"))
        offsets, data = self.stored
        if (offset := offsets.get(key)) is not None:
            return marshal.loads(data[offset:])  # as trusted as the bytecode beside it
        if (known := self.added.get(key)) is not None:
            return marshal.loads(known)
        value = make()
        if not self.added and not sys.dont_write_bytecode:
            atexit.register(self.write)
        self.added[key] = marshal.dumps(value)
        return value

    @cached_property
    def stored(self) -> tuple[dict[bytes, int], memoryview]:
        """What the file holds: where code begins, by hash of its text, and all code."""
        return self._read()

    def _read(self) -> tuple[dict[bytes, int], memoryview]:
        try:
            with open(self.path or os.devnull, "rb") as file:
                data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            size, offsets = marshal.loads(data)
            offsets = dict[bytes, int](offsets)
            is_whole = size == len(data)
        except (OSError, EOFError, ValueError, TypeError):
            return {}, memoryview(b"")
        return (offsets, data) if is_whole and len(offsets) < _MAX_TEXTS else ({}, memoryview(b""))

    def write(self) -> None:
        """What other processes wrote meanwhile stays."""
        if self.path is None:
            return
        offsets, data = self._read()
        stored = {key: marshal.dumps(marshal.loads(data[at:])) for key, at in offsets.items()}
        unfinished = f"{self.path}.{os.getpid()}"
        with suppress(OSError):
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(unfinished, "wb") as file:
                file.write(_file_of(stored | self.added))
            os.replace(unfinished, self.path)


def _file_of(codes: dict[bytes, bytes]) -> bytes:
    """A file: its size and table of offsets, the codes."""
    ends = list(accumulate(map(len, codes.values()), initial=0))
    size, head = 0, b""
    while len(head) + ends[-1] != size:  # offsets take bytes that move them
        size = len(head) + ends[-1]
        offsets = {key: len(head) + end for key, end in zip(codes, ends, strict=False)}
        head = marshal.dumps((size, offsets))
    return head + b"".join(codes.values())


def _pattern_code(
    pattern: str | bytes, flags: int
) -> tuple[int, list[int], int, dict[str, int], tuple[str | None, ...]]:
    """What makes the compiled pattern: flags, code, number of groups, their numbers by name and names by number."""
    parsed = _compiler._parser.parse(pattern, flags)
    numbers = dict[str, int](parsed.state.groupdict)
    names = {number: name for name, number in numbers.items()}
    groups = int(parsed.state.groups)
    by_number = tuple(names.get(number) for number in range(groups))
    code = list[int](map(int, _compiler._code(parsed, flags)))
    return flags | int(parsed.state.flags), code, groups - 1, numbers, by_number
