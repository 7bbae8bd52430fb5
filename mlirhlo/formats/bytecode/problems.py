"""What bytecode readers raise: always with the byte offset, never a traceback."""

from __future__ import annotations

from mlirhlo.diagnostics import HloError, Place, error

MAX_ATTRIBUTE_DEPTH = 150
"""Deepest nesting of attributes and types; hashing, comparing and printing recurse over them."""

MAX_UNFOLDED = 1 << 22
"""Most parts of an attribute or type with those it shares counted each time: that is how often
hashing, comparing and printing visit them."""


def damaged(message: str, file: str, offset: int, help: str | None = None) -> HloError:
    """HLO0221: the bytes are not what the format says."""
    return error("HLO0221", message, at(file, offset), help)


def at(file: str, offset: int) -> Place:
    """The place of a byte in a file without lines."""
    return Place(file, what=f"byte {offset} (0x{offset:x})")
