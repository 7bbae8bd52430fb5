"""Methods of data classes compiled once for an installation, as modules are.

`dataclasses` writes the methods of each class as text and compiles it whenever the class is created: about a
third of what importing xDSL and this package takes. The code of those texts is kept beside the bytecode of this
module, under the same conditions (`PYTHONDONTWRITEBYTECODE`, `PYTHONPYCACHEPREFIX`). A file that cannot be read or
written costs nothing but the time. Classes of other packages are created as ever.
"""

from __future__ import annotations

import atexit
import dataclasses
import marshal
import os
import sys
from contextlib import suppress
from functools import cached_property
from types import CodeType
from typing import Any

_PACKAGES = ("mlirhlo.", "xdsl.")
_MAX_TEXTS = 10_000
"""A file of more texts than this holds many of classes that are no more; it starts anew."""


def keep_code() -> None:
    """Lets `dataclasses` look here for the code of a class's methods before it compiles them."""
    setattr(dataclasses, "exec", Codes(_path()).run)  # noqa: B010  # shadows the builtin in that module


def _path() -> str | None:
    cached = None if __spec__ is None else __spec__.cached
    return None if cached is None else f"{cached.removesuffix('.pyc')}.codes"


class Codes:
    """Marshalled code by text, in a file that is read at the first question."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.is_new = False

    def run(self, text: str, names: dict[str, Any], local: dict[str, Any]) -> None:
        """As `exec(text, names, local)`."""
        if not str(names.get("__name__")).startswith(_PACKAGES):
            exec(text, names, local)  # what dataclasses does
            return
        exec(self.code(text), names, local)

    def code(self, text: str) -> CodeType:
        """What the text compiles to."""
        if (known := self.known.get(text)) is not None:
            code: CodeType = marshal.loads(known)  # as trusted as the bytecode beside it
            return code
        code = compile(text, "<string>", "exec")
        if not self.is_new and not sys.dont_write_bytecode:
            self.is_new = True
            atexit.register(self.write)
        self.known[text] = marshal.dumps(code)
        return code

    @cached_property
    def known(self) -> dict[str, bytes]:
        """What the file holds, and what was compiled since."""
        return self._read()

    def _read(self) -> dict[str, bytes]:
        try:
            with open(self.path or os.devnull, "rb") as file:
                codes = dict[str, bytes](marshal.load(file))
        except (OSError, EOFError, ValueError, TypeError):
            return {}
        return codes if len(codes) < _MAX_TEXTS else {}

    def write(self) -> None:
        """What other processes wrote meanwhile stays."""
        if self.path is None:
            return
        unfinished = f"{self.path}.{os.getpid()}"
        with suppress(OSError):
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(unfinished, "wb") as file:
                marshal.dump(self._read() | self.known, file)
            os.replace(unfinished, self.path)
