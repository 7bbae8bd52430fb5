"""Initial values of variables as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from mlirhlo.dialects.ptx.values import (
    TYPE_BITS,
    Generic,
    Immediate,
    Initializer,
    Masked,
    Nested,
    Symbol,
    Variable,
)


def initial_bytes(variable: Variable, size: int, addresses: Mapping[str, int]) -> bytes:
    """The bytes of a variable: what its initializer says, then zeros."""
    if variable.initializer is None:
        return bytes(size)
    width = TYPE_BITS[variable.type] // 8
    rows = [one for one in variable.dimensions if one is not None]
    data = b"".join(_bytes(variable.initializer, variable.type, width, rows, addresses))
    return data.ljust(size, b"\0")


def symbols_of(value: Initializer) -> Iterator[str]:
    """Names in an initializer."""
    match value:
        case Nested(parts):
            for part in parts:
                yield from symbols_of(part)
        case Symbol(name) | Generic(Symbol(name)):
            yield name
        case Masked(_, inner):
            yield from symbols_of(inner)
        case Immediate():
            pass


def implied_bytes(variable: Variable) -> int:
    """Bytes of an array whose first size its initializer gives; 0 without one."""
    if not isinstance(variable.initializer, Nested):
        return 0
    inner = 1
    for size in variable.dimensions[1:]:
        inner *= size or 1
    count = len(variable.initializer.parts) * variable.vector
    return count * inner * (TYPE_BITS[variable.type] // 8)


def _bytes(
    value: Initializer, type_name: str, width: int, rows: list[int], addresses: Mapping[str, int]
) -> Iterator[bytes]:
    match value:
        case Nested(parts):
            extent = width
            for size in rows[1:]:
                extent *= size
            for part in parts:
                data = b"".join(_bytes(part, type_name, width, rows[1:], addresses))
                yield data.ljust(extent, b"\0") if isinstance(part, Nested) else data
        case Immediate():
            yield _number(value, type_name, width)
        case Symbol(name, offset):
            yield (addresses.get(name, 0) + offset).to_bytes(8, "little")[:width]
        case Generic(symbol):
            yield (addresses.get(symbol.name, 0) + symbol.offset).to_bytes(8, "little")[:width]
        case Masked(mask, inner):
            symbol = inner.symbol if isinstance(inner, Generic) else inner
            address = addresses.get(symbol.name, 0) + symbol.offset
            shift = (mask.value & -mask.value).bit_length() - 1
            yield bytes([(address & mask.value) >> max(shift, 0) & 0xFF])


def _number(value: Immediate, type_name: str, width: int) -> bytes:
    if type_name == "f32" and value.kind != "f32":
        return struct.pack("<f", float(value.number))
    if type_name == "f64":
        return struct.pack("<d", float(value.number))
    return (value.value & ((1 << width * 8) - 1)).to_bytes(width, "little")
