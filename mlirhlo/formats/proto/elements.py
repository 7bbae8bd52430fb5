"""The data of array literals: LiteralProto's fields and the raw form of framed snapshots.

Data are bytes as everywhere in the package: little-endian, types narrower than a byte one element
per byte. Everything here is in physical (layout) order and knows nothing of shapes; `literals.py`
adds those. The raw form packs the narrow types, first element in the lowest bits. Every bit is
kept, NaN payloads included: floats are copied as packed bytes, never as Python numbers.
Source: HLO protobuf reference, "LiteralProto" and "Containers".
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Sequence

from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.formats.proto.files.wire import BYTES, fields
from mlirhlo.formats.proto.literal_pb2 import LiteralProto

_PACKED = frozenset({"f32s", "f64s", "c64s", "c128s"})
"""Fields of fixed-width numbers: their packed bytes are the data. Complex numbers are pairs."""

_VARINTS = {"s32s": "i", "u32s": "I", "s64s": "q", "u64s": "Q"}
"""Fields of varints and the `array` code of their numbers."""


def get_elements(literal: LiteralProto, element_type: PrimitiveType) -> bytes:
    """The data of the field that belongs to `element_type`."""
    name = element_type.proto_field
    if name in _PACKED:
        return _packed_payload(literal, LiteralProto.DESCRIPTOR.fields_by_name[name].number)
    value: Sequence[int] = getattr(literal, name)
    if name in _VARINTS:
        return array(_VARINTS[name], value).tobytes()
    stored = bytes(value)
    return stored.translate(_mask(element_type.bits)) if 1 < element_type.bits < 8 else stored


def set_elements(literal: LiteralProto, element_type: PrimitiveType, data: bytes) -> None:
    """Fill the field that belongs to `element_type`; empty data leave it unset."""
    name = element_type.proto_field
    if not data:
        return
    if name in _PACKED:
        number = LiteralProto.DESCRIPTOR.fields_by_name[name].number
        literal.MergeFromString(_varint(number << 3 | BYTES) + _varint(len(data)) + data)
    elif name in _VARINTS:
        getattr(literal, name).extend(array(_VARINTS[name], data).tolist())
    elif element_type.kind is Kind.PRED:
        literal.preds.extend(map(bool, data))
    else:
        narrow = element_type.bits < 8
        setattr(literal, name, data.translate(_mask(element_type.bits)) if narrow else data)


def raw_size(element_type: PrimitiveType, count: int) -> int:
    """Bytes of the raw form of `count` elements."""
    per_byte = _per_byte(element_type)
    return -(-count // per_byte) if per_byte > 1 else count * element_type.byte_size


def unpack_raw(data: bytes, element_type: PrimitiveType, count: int) -> bytes:
    """Data of `count` elements in the raw form; `data` must have `raw_size` bytes."""
    per_byte = _per_byte(element_type)
    if per_byte == 1:
        return data
    spread = _spread(per_byte)
    return b"".join([spread[byte] for byte in data])[:count]


def pack_raw(data: bytes, element_type: PrimitiveType) -> bytes:
    """The raw form of `data`."""
    per_byte = _per_byte(element_type)
    if per_byte == 1:
        return data
    bits = 8 // per_byte
    data = data.translate(_mask(bits)) + bytes(-len(data) % per_byte)
    lanes = [data[lane::per_byte] for lane in range(per_byte)]
    return bytes(
        sum(unit << (bits * lane) for lane, unit in enumerate(units))
        for units in zip(*lanes, strict=True)
    )


def _per_byte(element_type: PrimitiveType) -> int:
    """Elements per byte in the raw form; 6-bit types take a byte each."""
    return 8 // element_type.bits if element_type.bits in (1, 2, 4) else 1


@functools.lru_cache(maxsize=1024)
def _mask(bits: int) -> bytes:
    """A translation that clears what lies above `bits`."""
    return bytes(byte & ((1 << bits) - 1) for byte in range(256))


@functools.lru_cache(maxsize=1024)
def _spread(per_byte: int) -> tuple[bytes, ...]:
    """For every byte the `per_byte` units packed in it."""
    bits = 8 // per_byte
    low = (1 << bits) - 1
    return tuple(
        bytes(byte >> (bits * lane) & low for lane in range(per_byte)) for byte in range(256)
    )


def _packed_payload(literal: LiteralProto, number: int) -> bytes:
    """The packed bytes of repeated field `number`; the runtime writes it as one chunk."""
    data = literal.SerializePartialToString()
    for field in fields(data):
        if field.number == number:
            return data[field.start : field.end]
    return b""


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
