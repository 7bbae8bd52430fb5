"""Protobuf's wire format below the schema: what sniffing and error messages need.

Source: HLO protobuf reference, "Wire basics". Parsing itself is the protobuf runtime's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; 3 and 4 (groups) do not occur in HLO."""

_FIXED_SIZE = {FIXED64: 8, FIXED32: 4}


class WireProblem(Exception):
    """The bytes at `offset` cannot be read as a field."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Field:
    """One field occurrence; `start` and `end` bound its payload in the data."""

    number: int
    wire_type: int
    start: int
    end: int
    tag_at: int
    value: int = 0
    """Value of a varint field."""


def read_varint(data: bytes | memoryview, position: int, end: int) -> tuple[int, int]:
    """Value and the position after it. Raises `WireProblem`."""
    value = shift = 0
    at = position
    while True:
        if at >= end:
            raise WireProblem("the data ends inside a number", position)
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        if shift >= 70:
            raise WireProblem("a number has more than ten bytes", position)


def fields(data: bytes | memoryview, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """The fields of one message, without looking into them. Raises `WireProblem`."""
    end = len(data) if end is None else end
    position = start
    while position < end:
        tag_at = position
        tag, position = read_varint(data, position, end)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise WireProblem(f"{number} is not a field number", tag_at)
        value = 0
        if wire_type == VARINT:
            value, stop = read_varint(data, position, end)
        elif wire_type == BYTES:
            length, position = read_varint(data, position, end)
            stop = position + length
            if stop > end:
                raise WireProblem(
                    f"field {number} claims {length} bytes, {end - position} are left", tag_at
                )
        elif wire_type in _FIXED_SIZE:
            stop = position + _FIXED_SIZE[wire_type]
            if stop > end:
                raise WireProblem(f"the data ends inside field {number}", tag_at)
        else:
            raise WireProblem(f"field {number} has wire type {wire_type}, which HLO lacks", tag_at)
        yield Field(number, wire_type, position, stop, tag_at, value)
        position = stop


_MOST_LEADING = 1 << 16
"""Fields that say enough of a message to recognise it."""


def leading_fields(data: bytes | memoryview, start: int, end: int) -> tuple[list[Field], bool]:
    """The fields up to the first damage, and whether there was any.

    A last field that claims too much is given as far as the data goes, so that a truncated file is
    still recognised for what it is. At most `_MOST_LEADING` fields are looked at.
    """
    found: list[Field] = []
    try:
        found.extend(islice(fields(data, start, end), _MOST_LEADING))
    except WireProblem as problem:
        # extend() keeps what came before the exception.
        at = problem.offset
        if "claims" in problem.message:
            tag, position = read_varint(data, at, end)
            _, position = read_varint(data, position, end)
            found.append(Field(tag >> 3, BYTES, position, end, at))
        return found, True
    return found, False
