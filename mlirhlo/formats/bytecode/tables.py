"""The tables a writer fills: strings, dialects, operation names, attributes and types, properties.

Everything gets its number when it is first asked for and its encoding later, from a list of what is
still to be encoded: attributes that contain each other need no recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, UnregisteredAttr
from xdsl.ir import Attribute, TypeAttribute

from mlirhlo.diagnostics import error
from mlirhlo.formats.bytecode.codec import Codec
from mlirhlo.formats.bytecode.container import Section, Since
from mlirhlo.formats.bytecode.cursor import Emitter

PLAIN = ""
"""The mode in which attributes and types are encoded by their own dialects."""

_U64 = (1 << 64) - 1
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class Numbering(Generic[K]):
    """Numbers by first use."""

    __slots__ = ("items", "numbers")

    def __init__(self) -> None:
        self.numbers: dict[K, int] = {}
        self.items: list[K] = []

    def of(self, item: K) -> int:
        """The number of an item."""
        number = self.numbers.get(item)
        if number is None:
            number = self.numbers[item] = len(self.items)
            self.items.append(item)
        return number


_EMPTY = DictionaryAttr({})


@dataclass(slots=True)
class _Entry:
    value: Attribute
    is_type: bool
    mode: str
    dialect: str = ""
    is_custom: bool = True
    data: bytes = b""


class Tables:
    """All tables of a file.

    `modes` are further encodings beside those of the dialects themselves: name and codec. What such a
    codec does not know is handed to `foreign`, which may refuse it, and encoded plainly.
    """

    def __init__(
        self,
        codecs: Mapping[str, Codec],
        version: int,
        modes: Mapping[str, Codec] | None = None,
        foreign: Callable[[Attribute, str], None] | None = None,
    ) -> None:
        self._codecs, self._version = codecs, version
        self._modes = modes or {}
        self._foreign = foreign
        self._strings: Numbering[bytes] = Numbering()
        self._dialects: Numbering[str] = Numbering()
        self._op_names: Numbering[tuple[str, bool]] = Numbering()
        self._resources: Numbering[str] = Numbering()
        self._properties: Numbering[bytes] = Numbering()
        self._entries: tuple[list[_Entry], list[_Entry]] = ([], [])
        self._numbers: dict[tuple[str, bool, Attribute], int] = {}
        self._by_identity: dict[tuple[str, bool, int], int] = {}
        self._kept: list[Attribute] = []  # so that identities stay theirs
        self._dictionaries: dict[bytes, int] = {}
        self._encoded = [0, 0]

    # ------------------------------------------------------------ numbers

    def string(self, text: str) -> int:
        """The number of a string."""
        return self._strings.of(text.encode("utf-8", "surrogateescape"))

    def attribute(self, value: Attribute, mode: str = PLAIN) -> int:
        """The number of an attribute."""
        return self._number(value, False, mode)

    def type(self, value: Attribute, mode: str = PLAIN) -> int:
        """The number of a type."""
        return self._number(value, True, mode)

    def dictionary(self, attributes: Mapping[str, Attribute], mode: str) -> int:
        """The number of a dictionary of the builtin dialect whose values are of another mode."""
        data = Emitter()
        data.varint(1)
        data.varint(len(attributes))
        for name in sorted(attributes):
            data.varint(self.attribute(StringAttr(name)))
            data.varint(self.attribute(attributes[name], mode))
        key = bytes(data.data)
        number = self._dictionaries.get(key)
        if number is None:
            entries = self._entries[0]
            number = self._dictionaries[key] = len(entries)
            entry = _Entry(_EMPTY, False, PLAIN, "builtin", True, key)
            entries.append(entry)
        return number

    def op_name(self, name: str, *, is_registered: bool) -> int:
        """The number of an operation name."""
        return self._op_names.of((name, is_registered))

    def properties(self, data: bytes) -> int:
        """The number of encoded properties."""
        return self._properties.of(data)

    def resource(self, key: str) -> int:
        """The number of a resource of the builtin dialect."""
        return self._resources.of(key)

    @property
    def resource_keys(self) -> list[str]:
        """Resources in the order of their numbers."""
        return self._resources.items

    def _number(self, value: Attribute, is_type: bool, mode: str) -> int:
        identity = (mode, is_type, id(value))
        number = self._by_identity.get(identity)
        if number is None:
            key = (mode, is_type, value)
            number = self._numbers.get(key)
            if number is None:
                entries = self._entries[is_type]
                number = self._numbers[key] = len(entries)
                entries.append(_Entry(value, is_type, mode))
            self._by_identity[identity] = number
            self._kept.append(value)
        return number

    # ------------------------------------------------------------ encoding

    def encode(self) -> None:
        """Encodes all attributes and types that have numbers, and those they name."""
        pending = True
        while pending:
            pending = False
            for is_type in (0, 1):
                entries = self._entries[is_type]
                while self._encoded[is_type] < len(entries):
                    pending = True
                    entry = entries[self._encoded[is_type]]
                    self._encoded[is_type] += 1
                    self._encode(entry)

    def _encode(self, entry: _Entry) -> None:
        if entry.data:
            return
        if entry.mode:
            sink = TableSink(self, entry.mode)
            codec = self._modes[entry.mode]
            if self._write(codec, entry, sink):
                entry.dialect, entry.data = entry.mode, bytes(sink.emitter.data)
                return
            if self._foreign is not None:
                self._foreign(entry.value, entry.mode)
        entry.dialect = dialect_of(entry.value, is_type=entry.is_type)
        own = self._codecs.get(entry.dialect)
        if own is not None:
            sink = TableSink(self, PLAIN)
            if self._write(own, entry, sink):
                entry.data = bytes(sink.emitter.data)
                return
        entry.is_custom = False
        entry.data = text_of(entry.value).encode("utf-8", "surrogateescape") + b"\0"

    def _write(self, codec: Codec, entry: _Entry, sink: TableSink) -> bool:
        if entry.is_type:
            return codec.write_type(entry.value, sink)
        return codec.write_attribute(entry.value, sink)

    # ------------------------------------------------------------ sections

    def strings_section(self) -> Emitter:
        """Sizes, last first, then the strings."""
        out = Emitter()
        texts = self._strings.items
        out.varint(len(texts))
        for text in reversed(texts):
            out.varint(len(text) + 1)
        for text in texts:
            out.cstring(text)
        return out

    def dialects_section(self, versions: Mapping[str, bytes]) -> Emitter:
        """Dialects with their versions, and the operation names."""
        names: list[tuple[str, str, bool]] = []
        for name, is_registered in self._op_names.items:
            dialect, _, rest = name.partition(".")
            names.append((dialect, rest, is_registered))
            self._dialects.of(dialect)
        for entries in self._entries:
            for entry in entries:
                self._dialects.of(entry.dialect)
        self._dialects.of("builtin")
        out = Emitter()
        out.varint(len(self._dialects.items))
        for dialect in self._dialects.items:
            number = self.string(dialect)
            if self._version < Since.DIALECT_VERSIONS:
                out.varint(number)
                continue
            stored = versions.get(dialect)
            out.flagged(number, stored is not None)
            if stored is not None:
                content = Emitter()
                content.raw(stored)
                out.section(Section.DIALECT_VERSIONS, content)
        if self._version >= Since.ELIDED_LOCATIONS:
            out.varint(len(names))
        for dialect, run in _runs(names, lambda name: name[0]):
            out.varint(self._dialects.of(dialect))
            out.varint(len(run))
            for _, rest, is_registered in run:
                number = self.string(rest)
                if self._version >= Since.PROPERTIES:
                    out.flagged(number, is_registered)
                else:
                    out.varint(number)
        return out

    def entries_sections(self) -> tuple[Emitter, Emitter]:
        """The encodings of attributes and types, and the index of them."""
        data, index = Emitter(), Emitter()
        index.varint(len(self._entries[0]))
        index.varint(len(self._entries[1]))
        for entries in self._entries:
            for dialect, run in _runs(entries, lambda entry: entry.dialect):
                index.varint(self._dialects.of(dialect))
                index.varint(len(run))
                for entry in run:
                    index.flagged(len(entry.data), entry.is_custom)
                    data.raw(entry.data)
        return data, index

    def properties_section(self) -> Emitter | None:
        """The properties of all operations; None where there are none."""
        if not self._properties.items:
            return None
        out = Emitter()
        out.varint(len(self._properties.items))
        for item in self._properties.items:
            out.varint(len(item))
            out.raw(item)
        return out

    def dialect(self, name: str) -> int:
        """The number of a dialect."""
        return self._dialects.of(name)


@dataclass(slots=True)
class TableSink:
    """A `Sink` that numbers what it is given."""

    tables: Tables
    mode: str = PLAIN
    emitter: Emitter = field(default_factory=Emitter)

    def varint(self, value: int) -> None:
        """An unsigned integer."""
        self.emitter.varint(value)

    def signed(self, value: int) -> None:
        """A signed integer."""
        self.emitter.signed(value)

    def signed_list(self, values: Sequence[int]) -> None:
        """A list of signed integers."""
        self.emitter.varint(len(values))
        for value in values:
            self.emitter.signed(value)

    def attribute(self, value: Attribute) -> None:
        """The index of an attribute."""
        self.emitter.varint(self.tables.attribute(value, self.mode))

    def optional_attribute(self, value: Attribute | None) -> None:
        """The index of an attribute, or that there is none."""
        if value is None:
            self.emitter.varint(0)
        else:
            self.emitter.flagged(self.tables.attribute(value, self.mode), True)

    def attributes(self, values: Sequence[Attribute]) -> None:
        """A list of attributes."""
        self.emitter.varint(len(values))
        for value in values:
            self.attribute(value)

    def type(self, value: Attribute) -> None:
        """The index of a type."""
        self.emitter.varint(self.tables.type(value, self.mode))

    def types(self, values: Sequence[Attribute]) -> None:
        """A list of types."""
        self.emitter.varint(len(values))
        for value in values:
            self.type(value)

    def string(self, text: str) -> None:
        """The index of a string."""
        self.emitter.varint(self.tables.string(text))

    def resource(self, key: str) -> None:
        """The index of a resource."""
        self.emitter.varint(self.tables.resource(key))

    def blob(self, data: bytes) -> None:
        """A size and the bytes."""
        self.emitter.varint(len(data))
        self.emitter.raw(data)

    def bits(self, value: int, width: int) -> None:
        """An integer of known width: a byte, a signed varint, or words of 64 bits."""
        value &= (1 << width) - 1
        if width <= 8:
            self.emitter.byte(value)
            return
        if width <= 64:
            self.emitter.signed(value - (1 << width) if value >> (width - 1) else value)
            return
        words = [value >> at & _U64 for at in range(0, width, 64)]
        while len(words) > 1 and not words[-1]:
            words.pop()
        self.emitter.varint(len(words))
        for word in words:
            self.emitter.signed(word - (1 << 64) if word >> 63 else word)


def _runs(items: Sequence[T], key: Callable[[T], str]) -> list[tuple[str, list[T]]]:
    runs: list[tuple[str, list[T]]] = []
    for item in items:
        name = key(item)
        if not runs or runs[-1][0] != name:
            runs.append((name, []))
        runs[-1][1].append(item)
    return runs


def dialect_of(value: Attribute, *, is_type: bool) -> str:
    """The dialect whose table an attribute or type stands in."""
    if not is_type and isinstance(value, TypeAttribute):
        return "builtin"  # a type as an attribute
    name = value.attr_name.data if isinstance(value, UnregisteredAttr) else value.name
    dialect, dot, _ = name.partition(".")
    return dialect if dot else "builtin"


def text_of(value: Attribute) -> str:
    """An attribute or type as MLIR writes it. Raises `HloError` HLO0227 where that fails."""
    try:
        return str(value)
    except (RecursionError, ValueError, TypeError, AttributeError) as problem:
        name = type(value).__name__
        raise error("HLO0227", f"cannot write the attribute {name}: {problem}") from None
