"""Messages as bytes: writing fields in canonical order, and what decoding and encoding share.

The codec writes bytes, not message objects: a sub-message that is known from an earlier instruction
is one dictionary look-up, and an instruction is one join. What is written is what the runtime's
deterministic serialisation would write: fields in the order of their numbers, no defaults.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Mapping, Sequence

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.formats.proto.files.wire import BYTES, FIXED32, FIXED64, VARINT, fields

_MASK = 0xFFFF_FFFF_FFFF_FFFF


class DecodeProblem(Exception):
    """A message that cannot be turned into IR; the decoder adds the instruction's name."""

    def __init__(self, code: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.help = code, message, help

    def at(self, file: str, what: str) -> HloError:
        """The error as the user sees it."""
        return error(self.code, self.message, Place(file, what=what), self.help)


def varint(value: int) -> bytes:
    """A varint; negative numbers take ten bytes."""
    if 0 <= value < 128:
        return _SMALL[value]
    value &= _MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL = tuple(bytes([value]) for value in range(128))


@functools.lru_cache(maxsize=1024)
def tag(number: int, wire_type: int) -> bytes:
    """The bytes in front of a field."""
    return varint(number << 3 | wire_type)


def number_field(number: int, value: int) -> bytes:
    """An integer, bool or enum; nothing at its default 0."""
    return tag(number, VARINT) + varint(value) if value else b""


def bytes_field(number: int, value: bytes) -> bytes:
    """A string, bytes or nested message, written even when empty."""
    return tag(number, BYTES) + varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    """A string or bytes field; nothing when empty."""
    return bytes_field(number, to_bytes(value)) if value else b""


def numbers_field(number: int, values: Iterable[int]) -> bytes:
    """Packed integers; nothing for none."""
    packed = b"".join(map(varint, values))
    return bytes_field(number, packed) if packed else b""


def float_field(number: int, packed: bytes) -> bytes:
    """A float from its four bytes; nothing for positive zero."""
    return tag(number, FIXED32) + packed if packed != b"\0\0\0\0" else b""


def to_bytes(text: str) -> bytes:
    """Bytes of a string of the IR; bytes beyond UTF-8 are surrogate escapes there."""
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    """The string of the IR for some bytes."""
    return data.decode("utf-8", "surrogateescape")


def split(data: bytes) -> dict[int, bytes]:
    """The fields of a message by number, each with its tags; order inside a number is kept."""
    found: dict[int, bytes] = {}
    for field in fields(data):
        chunk = data[field.tag_at : field.end]
        found[field.number] = found[field.number] + chunk if field.number in found else chunk
    return found


def without(data: bytes, number: int) -> bytes:
    """A message but for the nested messages in field `number`.

    What has that number and another wire type is an unknown field, and stays.
    """
    return b"".join(
        [
            data[field.tag_at : field.end]
            for field in fields(data)
            if field.number != number or field.wire_type != BYTES
        ]
    )


def insert(data: bytes, number: int, parts: Sequence[bytes]) -> bytes:
    """A message with the repeated field `number`, which it lacks, in its place."""
    at = len(data)
    for field in fields(data):
        if field.number > number:
            at = field.tag_at
            break
    return b"".join([data[:at], *parts, data[at:]])


def join(chunks: Mapping[int, bytes]) -> bytes:
    """A message of fields by number."""
    return b"".join([chunks[number] for number in sorted(chunks)])


def double_field(number: int, value: float) -> bytes:
    """A double; nothing for positive zero."""
    packed = struct.pack("<d", value)
    return tag(number, FIXED64) + packed if packed != bytes(8) else b""
