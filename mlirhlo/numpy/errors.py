"""Errors of the tracer, at the user's own line of Python.

Each error is an `HloError` with a code, and at the same time the Python exception that callers of
numpy expect (`TypeError`, `ValueError`, `IndexError`).
"""

from __future__ import annotations

import itertools
import linecache
import os
import sys
from types import FrameType

from mlirhlo.diagnostics import Diagnostic, HloError, Place
from mlirhlo.diagnostics import HloTypeError as HloTypeError

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class HloValueError(HloError, ValueError):
    """A value that cannot be used here."""


class HloIndexError(HloError, IndexError):
    """An index outside of its array."""


def user_frame() -> FrameType | None:
    """The innermost frame outside of this room: the user's."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame


def user_place() -> Place | None:
    """The user's line and column, with its text."""
    frame = user_frame()
    if frame is None:
        return None
    code = frame.f_code
    positions = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), None)
    line, _, start, end = positions if positions is not None else (frame.f_lineno, None, None, None)
    line = line or frame.f_lineno
    text = linecache.getline(code.co_filename, line, frame.f_globals).rstrip("\n")
    if start is None:
        return Place(code.co_filename, line, source_line=text or None)
    # Python counts bytes of UTF-8, a place counts characters.
    column = len(text.encode()[:start].decode(errors="ignore"))
    length = max(1, (end or start + 1) - start) if end is None or end > start else 1
    return Place(code.co_filename, line, column + 1, length, text or None)


def problem(kind: type[HloError], code: str, message: str, help: str | None = None) -> HloError:
    """An error of `kind` at the user's place, to be raised."""
    return kind(Diagnostic(code, message, user_place(), help=help))
