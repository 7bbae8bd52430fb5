"""Values of flags: what text and what Python objects mean, by type.

Source: dumps reference, "How XLA_FLAGS is parsed" for text, "JAX, programmatic" for compile options.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias, cast

Value: TypeAlias = "bool | int | float | str | tuple[str, ...]"

_BITS = {"int32": 32, "int64": 64, "uint32": 32, "uint64": 64}
_FLOAT = re.compile(
    r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE
)


class BadValue(ValueError):
    """A value that does not fit its flag."""


def from_text(text: str | None, type: str) -> Value:
    """The value of `--flag=text`, or of a bare `--flag` for None. Raises `BadValue`."""
    if type == "bool":
        return _bool(text)
    if text is None:
        raise BadValue
    if type in _BITS:
        return _integer(text, type)
    if type == "float":
        return _float(text)
    if type.endswith("[]") or type == "map":
        return _parts(text)
    return text


def from_python(value: object, type: str) -> Value:
    """The value of a compile option, as strict as JAX is. Raises `BadValue`."""
    match type:
        case "bool":
            if isinstance(value, bool):
                return value
            if value in ("True", "False"):
                return value == "True"
        case "int32" | "int64" | "uint32" | "uint64":
            if isinstance(value, int) and not isinstance(value, bool):
                return _integer(str(value), type)
            if isinstance(value, str):
                return _integer(value, type)
        case "float":
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
            if isinstance(value, str):
                return _float(value)
        case "enum":
            if isinstance(value, str):
                return value
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
        case _ if type.endswith("[]") or type == "map":
            if isinstance(value, str):
                return _parts(value)
            if isinstance(value, list | tuple):
                parts = cast("Sequence[object]", value)
                if all(isinstance(part, str) for part in parts):
                    return tuple(cast("Sequence[str]", parts))
        case _:
            if isinstance(value, str):
                return value
    raise BadValue


def to_text(value: Value, type: str) -> str:
    """A value as `debug_options` files have it; of a list, one element."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, str) and type.startswith("string"):
        return f'"{value}"'
    if type == "map":
        key, _, mapped = str(value).partition("=")
        return f'{{\n  key: "{key}"\n  value: "{mapped}"\n}}'
    return str(value)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def _bool(text: str | None) -> bool:
    found = {None: True, "true": True, "1": True, "false": False, "0": False}.get(
        None if text is None else text.lower()
    )
    if found is None:
        raise BadValue
    return found


def _integer(text: str, type: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise BadValue
    number, bits = int(text), _BITS[type]
    low, high = (0, 1 << bits) if type.startswith("u") else (-(1 << bits - 1), 1 << bits - 1)
    if not low <= number < high:
        raise BadValue
    return number


def _float(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise BadValue
    return float(text)
