"""The container: magic, version, producer, sections, and the tables of strings, dialects and op names.

Source: MLIR's "MLIR Bytecode Format". Versions differ as follows: 1 adds versions of dialects, 2 puts
isolated regions into sections of their own, 3 adds the order of use lists, 4 leaves unknown locations
of block arguments out, 5 adds native properties, 6 packs their segment sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mlirhlo.diagnostics import error
from mlirhlo.formats.bytecode.cursor import Cursor
from mlirhlo.formats.bytecode.problems import at, damaged

MAGIC = b"ML\xefR"
CURRENT_VERSION = 6
"""The newest version of the container that is read and written."""


class Since(IntEnum):
    """The version of the container that brought a change."""

    DIALECT_VERSIONS = 1
    LAZY_REGIONS = 2
    USE_LIST_ORDERS = 3
    ELIDED_LOCATIONS = 4
    PROPERTIES = 5
    PACKED_SEGMENTS = 6


class Section(IntEnum):
    """Tags of sections."""

    STRING = 0
    DIALECT = 1
    ATTR_TYPE = 2
    ATTR_TYPE_OFFSET = 3
    IR = 4
    RESOURCE = 5
    RESOURCE_OFFSET = 6
    DIALECT_VERSIONS = 7
    PROPERTIES = 8


_REQUIRED = (
    Section.STRING,
    Section.DIALECT,
    Section.ATTR_TYPE,
    Section.ATTR_TYPE_OFFSET,
    Section.IR,
)


@dataclass(frozen=True, slots=True)
class DialectEntry:
    """A dialect of the table, with the bytes of its version where one is stored."""

    name: str
    version: bytes | None = None


@dataclass(frozen=True, slots=True)
class OpEntry:
    """An operation name of the table."""

    name: str
    is_registered: bool = True
    """Whether the producer knew the operation; before version 5 that is not stored."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An attribute or type of the table: where its bytes are and who can read them."""

    dialect: str
    is_custom: bool
    """Binary encoding of the dialect; otherwise text that ends in a zero byte."""
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Container:
    """The tables of a file."""

    data: bytes
    file: str
    version: int
    producer: str
    strings: tuple[bytes, ...]
    dialects: tuple[DialectEntry, ...]
    op_names: tuple[OpEntry, ...]
    attributes: tuple[Entry, ...]
    types: tuple[Entry, ...]
    properties: tuple[tuple[int, int], ...]
    """Begin and end of the properties of operations, by index."""
    sections: dict[Section, tuple[int, int]]

    def section(self, tag: Section) -> Cursor | None:
        """A cursor over a section, None where there is none."""
        place = self.sections.get(tag)
        return None if place is None else Cursor(self.data, self.file, *place)

    def string(self, cursor: Cursor) -> str:
        """The string whose index comes next."""
        return self.string_bytes(cursor).decode("utf-8", "surrogateescape")

    def string_bytes(self, cursor: Cursor) -> bytes:
        """The bytes of the string whose index comes next."""
        offset = cursor.pos
        index = cursor.varint()
        if index >= len(self.strings):
            raise cursor.problem(f"string {index} of {len(self.strings)} does not exist", offset)
        return self.strings[index]


def read_head(data: bytes, file: str = "<bytecode>") -> tuple[int, str, Cursor]:
    """Version and producer of bytecode, and a cursor after them. Raises HLO0220, HLO0221, HLO0222."""
    cursor = Cursor(data, file)
    if data[:4] != MAGIC:
        raise error("HLO0220", "not MLIR bytecode: it does not begin with 'ML\\xefR'", at(file, 0))
    cursor.pos = 4
    version = cursor.varint()
    producer = cursor.cstring().decode("utf-8", "replace")
    if version > CURRENT_VERSION:
        raise error(
            "HLO0222",
            f"bytecode version {version} of producer '{producer}' is newer than"
            f" {CURRENT_VERSION}, the newest that is read",
            at(file, 4),
            help=f"write it with --emit-bytecode-version={CURRENT_VERSION}, or as text",
        )
    return version, producer, cursor


def read_container(data: bytes, file: str = "<bytecode>") -> Container:
    """The tables of bytecode. Raises `HloError` HLO0220, HLO0221, HLO0222."""
    version, producer, cursor = read_head(data, file)
    sections = _sections(cursor)
    places = {tag: (part.pos, part.end) for tag, part in sections.items()}
    for tag in _REQUIRED:
        if tag not in sections:
            raise damaged(f"section {tag.name.lower()} is missing", file, len(data))
    strings = _strings(sections[Section.STRING])
    dialects, op_names = _dialects(sections[Section.DIALECT], version, strings)
    attributes, types = _entries(
        sections[Section.ATTR_TYPE_OFFSET], sections[Section.ATTR_TYPE], dialects
    )
    return Container(
        data,
        file,
        version,
        producer,
        strings,
        dialects,
        op_names,
        attributes,
        types,
        _properties(sections.get(Section.PROPERTIES)),
        places,
    )


def read_section(cursor: Cursor) -> tuple[int, Cursor]:
    """Tag and content of the section at the cursor, which moves behind it."""
    tag = cursor.byte()
    size = cursor.varint()
    if tag & 0x80:
        cursor.align(cursor.varint())
    return tag & 0x7F, cursor.sub(size)


def _sections(cursor: Cursor) -> dict[Section, Cursor]:
    sections: dict[Section, Cursor] = {}
    while not cursor.done():
        offset = cursor.pos
        tag, content = read_section(cursor)
        try:
            section = Section(tag)
        except ValueError:
            raise cursor.problem(f"section tag {tag} is not known", offset) from None
        if section in sections:
            raise cursor.problem(f"section {section.name.lower()} stands twice", offset)
        sections[section] = content
    return sections


def _strings(cursor: Cursor) -> tuple[bytes, ...]:
    sizes = [cursor.varint() for _ in range(cursor.count(2))]
    strings: list[bytes] = []
    for size in reversed(sizes):  # sizes stand last string first
        text = cursor.take(size)
        if not text.endswith(b"\0"):
            raise cursor.problem("a string does not end in a zero byte", cursor.pos - 1)
        strings.append(text[:-1])
    if not cursor.done():
        raise cursor.problem("bytes are left over behind the strings")
    return tuple(strings)


def _dialects(
    cursor: Cursor, version: int, strings: tuple[bytes, ...]
) -> tuple[tuple[DialectEntry, ...], tuple[OpEntry, ...]]:
    def string(index: int, offset: int) -> str:
        if index >= len(strings):
            raise cursor.problem(f"string {index} of {len(strings)} does not exist", offset)
        return strings[index].decode("utf-8", "surrogateescape")

    dialects: list[DialectEntry] = []
    for _ in range(cursor.count()):
        offset = cursor.pos
        index, stored = cursor.varint(), None
        if version >= Since.DIALECT_VERSIONS:
            index, has_version = index >> 1, index & 1
            if has_version:
                tag, content = read_section(cursor)
                if tag != Section.DIALECT_VERSIONS:
                    raise cursor.problem("a dialect version is expected", offset)
                stored = content.take(content.end - content.pos)
        dialects.append(DialectEntry(string(index, offset), stored))
    if version >= Since.ELIDED_LOCATIONS:
        cursor.varint()  # the total number of names
    names: list[OpEntry] = []
    while not cursor.done():
        offset = cursor.pos
        number = cursor.varint()
        if number >= len(dialects):
            raise cursor.problem(f"dialect {number} of {len(dialects)} does not exist", offset)
        dialect = dialects[number].name
        for _ in range(cursor.count()):
            offset = cursor.pos
            index, registered = cursor.varint(), True
            if version >= Since.PROPERTIES:
                index, registered = index >> 1, bool(index & 1)
            name = string(index, offset)
            names.append(OpEntry(f"{dialect}.{name}" if name else dialect, registered))
    return tuple(dialects), tuple(names)


def _entries(
    index: Cursor, content: Cursor, dialects: tuple[DialectEntry, ...]
) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    wanted = index.varint(), index.varint()
    position = content.pos
    tables: list[tuple[Entry, ...]] = []
    for count in wanted:
        table: list[Entry] = []
        while len(table) < count:
            offset = index.pos
            number = index.varint()
            if number >= len(dialects):
                raise index.problem(f"dialect {number} of {len(dialects)} does not exist", offset)
            for _ in range(index.count()):
                offset = index.pos
                size, is_custom = index.flagged()
                if size > content.end - position:
                    raise index.problem(
                        f"an attribute or type of {size} bytes does not fit in its section", offset
                    )
                table.append(Entry(dialects[number].name, is_custom, position, position + size))
                position += size
        if len(table) > count:
            raise index.problem(f"{len(table)} attributes or types where {count} are promised")
        tables.append(tuple(table))
    if not index.done() or position != content.end:
        raise index.problem("bytes are left over behind the attributes and types")
    return tables[0], tables[1]


def _properties(cursor: Cursor | None) -> tuple[tuple[int, int], ...]:
    if cursor is None:
        return ()
    places: list[tuple[int, int]] = []
    for _ in range(cursor.count()):
        part = cursor.sub(cursor.varint())
        places.append((part.pos, part.end))
    if not cursor.done():
        raise cursor.problem("bytes are left over behind the properties")
    return tuple(places)


@dataclass(frozen=True, slots=True)
class Layout:
    """The properties of one kind of operation."""

    fields: tuple[tuple[str, bool], ...]
    """Name, and whether it must be there; sorted by name."""
    segments: tuple[tuple[str, int], ...] = ()
    """Name and number of the segment sizes."""

    @property
    def names(self) -> frozenset[str]:
        """All names."""
        return frozenset(name for name, _ in (*self.fields, *self.segments))

    def order(self, version: int) -> tuple[tuple[str, bool], ...]:
        """What is stored as attributes: before version 6 segment sizes too, among the others."""
        if version >= Since.PACKED_SEGMENTS:
            return self.fields
        return tuple(sorted((*self.fields, *((name, True) for name, _ in self.segments))))

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Reads `name optional? operandSegments=3`."""
        fields: list[tuple[str, bool]] = []
        segments: list[tuple[str, int]] = []
        for word in text.split():
            name, equals, count = word.partition("=")
            if equals:
                segments.append((f"{name.removesuffix('s')}Sizes", int(count)))
            else:
                fields.append((word.removesuffix("?"), not word.endswith("?")))
        return cls(tuple(sorted(fields)), tuple(segments))
