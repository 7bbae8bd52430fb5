"""The table of attributes and types, decoded when asked for.

Entries refer to each other by index, so decoding recurses. Past a few levels it starts anew from the
entry that is needed, with a list in place of the stack: a chain of thousands of entries is no problem
of the reader's. What nests deeper than others could handle is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from mlirhlo.diagnostics import HloError, error
from mlirhlo.formats.bytecode.codec import Codec, Source
from mlirhlo.formats.bytecode.container import Container, Entry
from mlirhlo.formats.bytecode.cursor import Cursor
from mlirhlo.formats.bytecode.problems import MAX_ATTRIBUTE_DEPTH, MAX_UNFOLDED, at
from mlirhlo.formats.bytecode.text import AttributeText

_LEVELS = 40
"""Entries decoded inside each other before starting anew."""

Key = tuple[bool, int]
"""Whether it is a type, and the index."""


class _Deeper(Exception):
    """An entry has to be decoded first, on a fresh stack."""

    def __init__(self, key: Key) -> None:
        self.key = key


class Entries:
    """A `Resolver` over the tables of a container."""

    def __init__(
        self,
        container: Container,
        codecs: Mapping[str, Codec],
        text: AttributeText,
        resources: tuple[str, ...] = (),
    ) -> None:
        self._container, self._codecs, self._text = container, codecs, text
        self._resources = resources
        self._tables = (container.attributes, container.types)
        self._values: tuple[dict[int, Attribute], dict[int, Attribute]] = ({}, {})
        self._depths: dict[Key, tuple[int, int]] = {}
        """Levels of nesting, and parts when what is shared counts each time."""
        self._open: dict[Key, None] = {}
        self._levels: list[list[int]] = []
        """The same of the entries that are being decoded."""

    def attribute(self, index: int, cursor: Cursor) -> Attribute:
        """The attribute of that index, asked for at `cursor`."""
        known = self._values[0].get(index)
        if known is None or self._levels:
            return self._get((False, index), cursor)
        return known

    def type(self, index: int, cursor: Cursor) -> Attribute:
        """The type of that index, asked for at `cursor`."""
        known = self._values[1].get(index)
        if known is None or self._levels:
            return self._get((True, index), cursor)
        return known

    def string(self, cursor: Cursor) -> str:
        """The string whose index comes next."""
        return self._container.string(cursor)

    def resource(self, cursor: Cursor) -> str:
        """The key of the resource whose index comes next."""
        offset = cursor.pos
        index = cursor.varint()
        if index >= len(self._resources):
            raise cursor.problem(
                f"resource {index} of {len(self._resources)} does not exist", offset
            )
        return self._resources[index]

    def _get(self, key: Key, cursor: Cursor) -> Attribute:
        is_type, index = key
        table = self._tables[is_type]
        if index >= len(table):
            kind = "type" if is_type else "attribute"
            raise cursor.problem(f"{kind} {index} of {len(table)} does not exist")
        known = self._values[is_type].get(index)
        if known is None:
            if self._levels and len(self._levels) < _LEVELS:
                known = self._decode(key)
            elif self._levels:
                raise _Deeper(key)
            else:
                known = self._drive(key)
        if self._levels:
            depth, parts = self._depths[key]
            inside = self._levels[-1]
            inside[0] = max(inside[0], depth)
            inside[1] += parts
        return known

    def _drive(self, key: Key) -> Attribute:
        waiting: dict[Key, None] = {key: None}
        while waiting:
            current = next(reversed(waiting))
            try:
                self._decode(current)
            except _Deeper as deeper:
                if deeper.key in waiting:
                    raise self._cycle(deeper.key) from None
                waiting[deeper.key] = None
            else:
                del waiting[current]
            finally:
                self._levels.clear()
                self._open.clear()
        return self._values[key[0]][key[1]]

    def _decode(self, key: Key) -> Attribute:
        if key in self._open:
            raise self._cycle(key)
        is_type, index = key
        entry = self._tables[is_type][index]
        self._open[key] = None
        self._levels.append([0, 0])
        try:
            value = self._read(entry, is_type)
        except (VerifyException, AssertionError, TypeError, ValueError, AttributeError) as problem:
            raise self._refused(entry, str(problem)) from None
        depth, parts = self._levels.pop()
        del self._open[key]
        if depth >= MAX_ATTRIBUTE_DEPTH or parts > MAX_UNFOLDED:
            raise self._too_deep(entry, depth)
        self._depths[key] = depth + 1, parts + 1
        self._values[is_type][index] = value
        return value

    def _read(self, entry: Entry, is_type: bool) -> Attribute:
        cursor = Cursor(self._container.data, self._container.file, entry.begin, entry.end)
        if not entry.is_custom:
            text = cursor.cstring().decode("utf-8", "surrogateescape")
            value = self._text.parse(text, is_type, cursor, entry.begin)
        else:
            codec = self._codecs.get(entry.dialect)
            if codec is None:
                raise self._unknown(entry, is_type)
            source = Source(cursor, self)
            value = codec.read_type(source) if is_type else codec.read_attribute(source)
        if not cursor.done():
            raise cursor.problem(
                f"{cursor.end - cursor.pos} bytes are left over in an entry of '{entry.dialect}'"
            )
        return value

    def _refused(self, entry: Entry, message: str) -> HloError:
        lines = message.strip().splitlines()
        why = lines[-1] if lines else "it makes no sense"
        return error(
            "HLO0221",
            f"an entry of the dialect '{entry.dialect}' is not valid: {why}",
            at(self._container.file, entry.begin),
        )

    def _cycle(self, key: Key) -> HloError:
        entry = self._tables[key[0]][key[1]]
        return error("HLO0221", "an entry contains itself", at(self._container.file, entry.begin))

    def _too_deep(self, entry: Entry, depth: int) -> HloError:
        if depth >= MAX_ATTRIBUTE_DEPTH:
            message = f"attributes or types are nested deeper than {MAX_ATTRIBUTE_DEPTH}"
        else:
            message = f"an attribute or type unfolds to more than {MAX_UNFOLDED} parts"
        return error("HLO0223", message, at(self._container.file, entry.begin))

    def _unknown(self, entry: Entry, is_type: bool) -> HloError:
        kind = "type" if is_type else "attribute"
        return error(
            "HLO0224",
            f"the binary encoding of {kind}s of the dialect '{entry.dialect}' is not known",
            at(self._container.file, entry.begin),
            help="write the module as text, or with the generic form of what uses that dialect",
        )
