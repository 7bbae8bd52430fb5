"""Messages of newer producers that the dialect carries as text in braces: `{lhs={scale_idx=2}}`.

One generic syntax for all of them: fields by name, blanks or commas between, lists and nested
messages in braces. Names and types come from the schema.
"""

from __future__ import annotations

from typing import Any, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.header import RawText
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem, quote


def raw_of(message: Message) -> RawText:
    """The text of a message."""
    return RawText(_text(message))


def _text(message: Message) -> str:
    parts: list[str] = []
    for field, value in message.ListFields():
        if field.is_repeated:
            text = "{" + ",".join(_value_text(item) for item in cast("list[Any]", value)) + "}"
        else:
            text = _value_text(value)
        parts.append(f"{field.name}={text}")
    return "{" + " ".join(parts) + "}"


def _value_text(value: Any) -> str:
    if isinstance(value, Message):
        return _text(value)
    if isinstance(value, str):
        return quote(value)
    return str(int(value))


def fill(message: Message, raw: RawText, what: str) -> None:
    """Fill `message` from text. Raises `HloError` HLO0208 when the text does not fit it."""
    cursor = Cursor(raw.text)
    try:
        _fill(message, cursor)
        if not cursor.at_end():
            raise cursor.problem("unexpected text")
    except (SyntaxProblem, ValueError, TypeError) as problem:
        raise error(
            "HLO0208",
            f"{what}={raw.text} cannot be said in a proto: {problem}",
            help="write HLO or MLIR text, which carry it as it stands",
        ) from None


def _fill(message: Message, cursor: Cursor) -> None:
    cursor.expect("{")
    while not cursor.accept("}"):
        start = cursor.skip()
        name = cursor.word("a field")
        field = cast("FieldDescriptor | None", message.DESCRIPTOR.fields_by_name.get(name))
        if field is None:
            raise SyntaxProblem(start, f"no field {name!r} in {message.DESCRIPTOR.name}")
        cursor.expect("=")
        if field.message_type is not None:
            inner = getattr(message, name)
            inner.SetInParent()
            _fill(inner, cursor)
        elif field.is_repeated:
            getattr(message, name).extend(cursor.integers())
        elif field.type == FieldDescriptor.TYPE_STRING:
            setattr(message, name, cursor.string())
        else:
            setattr(message, name, cursor.integer())
        cursor.accept(",")
