"""Names of dump files, as XLA makes them.

    [TIMESTAMP.]module_ID[.NAME].SUFFIX

Source: dumps reference, "File names". A name cannot leave the directory: slashes and NUL never get
through, and no name consists of dots.
"""

from __future__ import annotations

MAX_LENGTH = 255
"""Bytes of a name without its extension; longer ones lose the module's name."""

_SANITIZED = str.maketrans(dict.fromkeys("/\\[] \x00\n\r\t", "_"))
_KEPT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


def module_identifier(name: str) -> str:
    """A module's name as XLA makes it an identifier: every other byte is an underscore."""
    data = name.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if chr(byte) in _KEPT else "_" for byte in data)


def stem(number: int, module: str, suffix: str, prefix: str = "") -> str:
    """A name without extension; `module` is an identifier or empty. Not sanitised."""
    head = f"{prefix}." if prefix else ""
    name = f".{module}" if module else ""
    tail = f".{suffix}" if suffix else ""
    full = f"{head}module_{number:04d}{name}{tail}"
    if module and len(full.encode("utf-8", "surrogateescape")) > MAX_LENGTH:
        return stem(number, "", suffix, prefix)
    return full


def sanitized(name: str) -> str:
    """A complete file name with what cannot stand in one replaced, cut to what systems take."""
    name = name.translate(_SANITIZED)
    if name in ("", ".", ".."):
        name = name.replace(".", "_") or "_"
    data = name.encode("utf-8", "surrogateescape")
    if len(data) > MAX_LENGTH:
        # Names of passes, computations and kernels are not bounded by XLA either; keep both ends.
        data = data[: MAX_LENGTH - 96] + b"_" + data[-95:]
        name = data.decode("utf-8", "replace").replace("�", "_")
    return name


def boundary(step: int, pipeline: str, after: str, before: str) -> str:
    """Suffix of the module between two passes."""
    return f"{step:04d}.{pipeline}.after_{after}.before_{before}"


def during(step: int, pass_name: str, what: str) -> str:
    """Suffix of the module in the middle of a pass."""
    return f"{step:04d}.{pass_name}.{what}"


BEFORE_OPTIMIZATIONS = "before_optimizations"
AFTER_OPTIMIZATIONS = "after_optimizations"
DEBUG_OPTIONS = "debug_options"
PIPELINE_START, PIPELINE_END = "pipeline-start", "pipeline-end"
