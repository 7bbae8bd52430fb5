"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Generator
from typing import IO

from mlirhlo.diagnostics import error


@contextlib.contextmanager
def whole_file(path: str) -> Generator[IO[bytes]]:
    """A file that takes the place of `path` when the block ends; when it raises, nothing changes.

    Devices, pipes and links, and files in folders that cannot be written, are written in place.
    Raises `HloError` HLO0503 for what the system refuses.
    """
    if "\0" in path:
        raise error("HLO0503", f"cannot write {path!r}: no name of a file")
    try:
        if _is_written_in_place(path):
            with open(path, "wb") as file:
                yield file
            return
        folder = os.path.dirname(path)
        part = os.path.join(folder, f".{os.getpid()}-{threading.get_ident()}.part")
        try:
            with open(part, "wb") as file:
                yield file
            if os.path.exists(path):
                os.chmod(part, stat.S_IMODE(os.stat(path).st_mode))
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
    except BrokenPipeError:
        raise  # whoever read has seen enough
    except OSError as problem:
        raise error("HLO0503", f"cannot write '{path}': {problem.strerror or problem}") from None


def _is_written_in_place(path: str) -> bool:
    if not os.access(os.path.dirname(path) or ".", os.W_OK):
        return True
    if not os.path.lexists(path):
        return False
    return os.path.islink(path) or not os.path.isfile(path) or not os.access(path, os.W_OK)


def write_file(path: str, data: bytes) -> None:
    """Writes bytes to a file, whole or not at all. Raises `HloError` as `check_ending` and HLO0503."""
    check_ending(path, data)
    with whole_file(path) as file:
        file.write(data)


def check_ending(path: str, data: bytes = b"") -> None:
    """Raises `HloError` HLO0502 where a name promises a picture or a page that the bytes are not."""
    ending = os.path.splitext(path)[1].removeprefix(".").lower()
    starts = _STARTS.get(ending)
    if starts is not None and not data.lstrip().startswith(starts):
        raise error(
            "HLO0502",
            f"'{path}': what this command writes is not {ending}",
            help=f"hlo-view FILE -o {path} draws a module",
        )


_STARTS: dict[str, tuple[bytes, ...]] = {
    "html": (b"<",),
    "dot": (b"digraph", b"graph", b"//"),
    "gv": (b"digraph", b"graph", b"//"),
    "svg": (b"<",),
    "png": (b"\x89PNG",),
    "pdf": (b"%PDF",),
}
"""How files of pictures and pages begin, by the endings of their names."""
