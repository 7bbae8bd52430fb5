"""What a dialect's own binary encoding is: a `Codec`, and the source and sink it works on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.bytecode.cursor import Cursor

T = TypeVar("T")


class Resolver(Protocol):
    """Gives the attributes, types, strings and resources that entries refer to."""

    def attribute(self, index: int, cursor: Cursor) -> Attribute:
        """The attribute of that index."""
        ...

    def type(self, index: int, cursor: Cursor) -> Attribute:
        """The type of that index."""
        ...

    def string(self, cursor: Cursor) -> str:
        """The string whose index comes next."""
        ...

    def resource(self, cursor: Cursor) -> str:
        """The key of the resource whose index comes next."""
        ...


class Source:
    """The encoding of one attribute or type, or of the properties of an operation."""

    __slots__ = ("cursor", "resolver")

    def __init__(self, cursor: Cursor, resolver: Resolver) -> None:
        self.cursor, self.resolver = cursor, resolver

    def problem(self, message: str) -> HloError:
        """HLO0221 at this place."""
        return self.cursor.problem(message)

    def varint(self) -> int:
        """An unsigned integer."""
        return self.cursor.varint()

    def signed(self) -> int:
        """A signed integer."""
        return self.cursor.signed()

    def many(self, read: Callable[[], T]) -> list[T]:
        """A count and as many of `read`."""
        return [read() for _ in range(self.cursor.count())]

    def signed_list(self) -> list[int]:
        """A list of signed integers."""
        return self.many(self.cursor.signed)

    def attribute(self) -> Attribute:
        """An attribute by index."""
        return self.resolver.attribute(self.cursor.varint(), self.cursor)

    def optional_attribute(self) -> Attribute | None:
        """An attribute by index, or nothing."""
        index, is_present = self.cursor.flagged()
        return self.resolver.attribute(index, self.cursor) if is_present else None

    def attributes(self) -> list[Attribute]:
        """A list of attributes."""
        return self.many(self.attribute)

    def type(self) -> Attribute:
        """A type by index."""
        return self.resolver.type(self.cursor.varint(), self.cursor)

    def types(self) -> list[Attribute]:
        """A list of types."""
        return self.many(self.type)

    def string(self) -> str:
        """A string by index."""
        return self.resolver.string(self.cursor)

    def string_attribute(self) -> StringAttr:
        """An attribute that is a string."""
        value = self.attribute()
        if not isinstance(value, StringAttr):
            raise self.problem(f"a string attribute is expected, this is {value}")
        return value

    def resource(self) -> str:
        """The key of a resource."""
        return self.resolver.resource(self.cursor)

    def blob(self) -> bytes:
        """A size and as many bytes."""
        return self.cursor.take(self.cursor.varint())

    def bits(self, width: int) -> int:
        """An integer of known width, as an unsigned number."""
        cursor = self.cursor
        if width <= 8:
            value = cursor.byte()
        elif width <= 64:
            value = cursor.signed()
        else:
            value = 0
            for word in range(cursor.count()):
                value |= (cursor.signed() & (1 << 64) - 1) << 64 * word
        return value & (1 << width) - 1

    def sparse_array(self) -> list[tuple[int, int]] | list[int]:
        """Small numbers: all of them, or (index, value) of those that are not zero."""
        count, is_sparse = self.cursor.flagged()
        if count > self.cursor.end - self.cursor.pos:
            raise self.problem(f"a list of {count} numbers does not fit")
        if not is_sparse:
            return [self.cursor.varint() for _ in range(count)]
        width = self.cursor.varint()
        if width > 8:
            raise self.problem(f"{width} bits are too many for an index")
        pairs: list[tuple[int, int]] = []
        for _ in range(count):
            word = self.cursor.varint()
            pairs.append((word & (1 << width) - 1, word >> width))
        return pairs


class Sink(Protocol):
    """Takes the encoding of one attribute or type. What is not numbered yet gets its number."""

    def varint(self, value: int) -> None:
        """An unsigned integer."""
        ...

    def signed(self, value: int) -> None:
        """A signed integer."""
        ...

    def signed_list(self, values: Sequence[int]) -> None:
        """A list of signed integers."""
        ...

    def attribute(self, value: Attribute) -> None:
        """The index of an attribute."""
        ...

    def optional_attribute(self, value: Attribute | None) -> None:
        """The index of an attribute, or that there is none."""
        ...

    def attributes(self, values: Sequence[Attribute]) -> None:
        """A list of attributes."""
        ...

    def type(self, value: Attribute) -> None:
        """The index of a type."""
        ...

    def types(self, values: Sequence[Attribute]) -> None:
        """A list of types."""
        ...

    def string(self, text: str) -> None:
        """The index of a string."""
        ...

    def resource(self, key: str) -> None:
        """The index of a resource."""
        ...

    def blob(self, data: bytes) -> None:
        """A size and the bytes."""
        ...

    def bits(self, value: int, width: int) -> None:
        """An integer of known width."""
        ...


class Codec(Protocol):
    """The binary encoding of one dialect's attributes and types.

    Writing returns False for what the encoding does not know; text is written instead.
    """

    def read_attribute(self, source: Source) -> Attribute:
        """Decodes an attribute. Raises `HloError` HLO0221 and HLO0224."""
        ...

    def read_type(self, source: Source) -> Attribute:
        """Decodes a type. Raises `HloError` HLO0221 and HLO0224."""
        ...

    def write_attribute(self, value: Attribute, sink: Sink) -> bool:
        """Encodes an attribute, code first."""
        ...

    def write_type(self, value: Attribute, sink: Sink) -> bool:
        """Encodes a type, code first."""
        ...
