"""Errors of writing a kernel, at the line of the user's Python that wrote it."""

from __future__ import annotations

import linecache
import sys
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

from mlirhlo.diagnostics import HloError, Place, error

_OWN = tuple(
    str(Path(__file__).parents[1] / name)
    for name in (
        "ad_checkpoint.py",
        "debug.py",
        "dtypes.py",
        "language",
        "lax.py",
        "nn.py",
        "numpy.py",
        "random.py",
        "scipy",
        "tpu.py",
        "tree.py",
        "util.py",
    )
)


def user_frame() -> FrameType | None:
    """The innermost frame that does not belong to the language; None without one."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame


@lru_cache(maxsize=4096)
def span_of(code: CodeType, instruction: int) -> tuple[int, int, int]:
    """Line, column and length (columns from 1; 0 if unknown) of an instruction of the bytecode."""
    position = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    line, end_line, column, end_column = position
    if line is None:
        return code.co_firstlineno, 0, 1
    if column is None or end_column is None:
        return line, 0, 1
    length = end_column - column if end_line == line else 1
    return line, column + 1, max(1, length)


def user_place() -> Place | None:
    """Where the user's code stands now."""
    frame = user_frame()
    if frame is None:
        return None
    file = frame.f_code.co_filename
    line, column, length = span_of(frame.f_code, frame.f_lasti)
    source = linecache.getline(file, line).rstrip("\n") or None
    return Place(file, line, column, length, source)


def misuse(message: str, help: str | None = None) -> HloError:
    """HLO0720: something of the language stands where it cannot."""
    return error("HLO0720", message, user_place(), help)


def bad_shape(message: str, help: str | None = None) -> HloError:
    """HLO0721: shapes that do not go together."""
    return error("HLO0721", message, user_place(), help)


def bad_type(message: str, help: str | None = None) -> HloError:
    """HLO0722: element types that do not go together, or that kernels have not."""
    return error("HLO0722", message, user_place(), help)


def not_known(message: str, help: str | None = None) -> HloError:
    """HLO0723: Python asks for a number that is only known when the kernel runs."""
    return error("HLO0723", message, user_place(), help)


def bad_index(message: str, help: str | None = None) -> HloError:
    """HLO0724: an index or slice that a reference or vector has not."""
    return error("HLO0724", message, user_place(), help)


def bad_memory(message: str, help: str | None = None) -> HloError:
    """HLO0725: an access that this kind of memory has not."""
    return error("HLO0725", message, user_place(), help)


def bad_spec(message: str, help: str | None = None, place: Place | None = None) -> HloError:
    """HLO0726: block specs, grid, scratch or arrays that do not fit together; at the spec, where one is wrong."""
    return error("HLO0726", message, place or user_place(), help)


def captured(message: str, help: str | None = None) -> HloError:
    """HLO0727: a kernel uses an array that is not among its arguments."""
    return error("HLO0727", message, user_place(), help)


def bad_carry(message: str, help: str | None = None) -> HloError:
    """HLO0728: branches or loops whose values change their number, shape or type."""
    return error("HLO0728", message, user_place(), help)
