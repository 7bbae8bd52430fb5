"""Variables: sizes, alignment, initial values as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping

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


def sized(variable: Variable) -> int:
    """Bytes of a variable; 0 for an array whose size the launch gives."""
    if variable.size_bytes is not None:
        return variable.size_bytes
    return implied_bytes(variable)


def alignment(variable: Variable) -> int:
    """Bytes to which a variable is aligned."""
    return variable.alignment or max(TYPE_BITS[variable.type] // 8, 1) * variable.vector


def parameter_layout(parameters: Iterable[Variable]) -> tuple[list[tuple[Variable, int, int]], int]:
    """Offset and size of each kernel parameter, and the bytes of all."""
    layout, end = list[tuple[Variable, int, int]](), 0
    for variable in parameters:
        size = sized(variable)
        end = align_up(end, alignment(variable))
        layout.append((variable, end, size))
        end += size
    return layout, end


def align_up(offset: int, to: int) -> int:
    """The next multiple of `to`."""
    return -(-offset // to) * to
