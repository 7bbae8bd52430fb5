"""Where a binary protobuf message is damaged, in words a person can act on.

The runtime only says that parsing failed. On that path, which is never hot, the message is walked
again: its fields are split by wire format, each nested message is given to the runtime, and the
walk goes down into the one that fails.
"""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.formats.proto._pool import POOL
from mlirhlo.formats.proto.files.wire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    Field,
    WireProblem,
    fields,
)

_MAX_DEPTH = 100
"""Nesting the runtime accepts."""

_WIRE = {
    FieldDescriptor.CPPTYPE_DOUBLE: FIXED64,
    FieldDescriptor.CPPTYPE_FLOAT: FIXED32,
    FieldDescriptor.CPPTYPE_STRING: BYTES,
    FieldDescriptor.CPPTYPE_MESSAGE: BYTES,
}
"""Wire type by C++ type; the others are varints in HLO."""


def locate(data: bytes, message: Message, name: str, fallback: str) -> HloError:
    """HLO0201 with the path to the first damaged field: `computations[2].instructions[6] "dot.7"`.

    `message` is an instance of the class that refused `data`; `fallback` is what the runtime said.
    """
    path: list[str] = []
    start, end = 0, len(data)
    known_fields = POOL.FindMessageTypeByName(message.DESCRIPTOR.full_name).fields_by_number
    for _ in range(_MAX_DEPTH):
        try:
            step = _damaged_field(data, start, end, known_fields)
        except WireProblem as problem:
            return _report(problem.message, problem.offset, path, message, name)
        if step is None:
            break
        field, known, index = step
        label = known.name if index is None else f"{known.name}[{index}]"
        inner = _name_in(data, field)
        path.append(f'{label} "{inner}"' if inner else label)
        start, end = field.start, field.end
        if known.message_type is None:
            return _report("its text is not UTF-8", field.tag_at, path, message, name)
        known_fields = known.message_type.fields_by_number
    else:
        return _report(
            f"messages are nested deeper than {_MAX_DEPTH}", start, path[:4], message, name
        )
    return _report(fallback, start, path, message, name)


def _report(what: str, offset: int, path: list[str], message: Message, name: str) -> HloError:
    where = f" in {'.'.join(path)}" if path else ""
    return error(
        "HLO0201",
        f"{message.DESCRIPTOR.name}{where}, byte {offset}: {what}",
        Place(name),
        help="the file was cut off or damaged; copy or dump it again",
    )


def _damaged_field(
    data: bytes, start: int, end: int, known_fields: Mapping[int, FieldDescriptor]
) -> tuple[Field, FieldDescriptor, int | None] | None:
    """The first nested message or string that the runtime refuses, and its place in a list."""
    counts: dict[int, int] = {}
    for field in fields(data, start, end):
        known = known_fields.get(field.number)
        if known is None or field.wire_type != BYTES:
            continue
        index = counts.get(field.number, 0)
        counts[field.number] = index + 1
        if _WIRE.get(known.cpp_type, VARINT) != BYTES:
            continue  # packed numbers; their damage shows as a WireProblem of the runtime only
        if _is_fine(data[field.start : field.end], known):
            continue
        return field, known, index if known.is_repeated else None
    return None


def _is_fine(payload: bytes, known: FieldDescriptor) -> bool:
    if known.message_type is not None:
        try:
            GetMessageClass(known.message_type).FromString(payload)
        except DecodeError:
            return False
    elif known.type == FieldDescriptor.TYPE_STRING:
        try:
            payload.decode()
        except UnicodeDecodeError:
            return False
    return True


def _name_in(data: bytes, field: Field) -> str:
    """The `name` of a computation or instruction: field 1, if it is a printable string."""
    try:
        first = next(fields(data, field.start, field.end))
    except (WireProblem, StopIteration):
        return ""
    text = data[first.start : first.end].decode("ascii", errors="replace")
    is_name = first.number == 1 and first.wire_type == BYTES and len(text) < 200
    return text if is_name and text.isprintable() else ""
