"""Reads source places: `loc(…)`."""

from __future__ import annotations

from xdsl.dialects.builtin import UNKNOWN_LOC, UnknownLoc
from xdsl.ir import Attribute

from mlirhlo.dialects.stablehlo.locations import (
    FileRange,
    FileRangeLoc,
    call_loc,
    file_loc,
    fused_loc,
    is_location,
    name_loc,
)
from mlirhlo.formats.stablehlo.reader_base import ReaderBase
from mlirhlo.formats.stablehlo.scan import BAD_VALUE


class LocationReader(ReaderBase):
    """The part of the reader that reads places."""

    def optional_location(self) -> Attribute | None:
        """`loc(…)`, if it stands here."""
        start = self.skip()
        if not self.text.startswith("loc", start) or not self.accept_word("loc"):
            return None
        self.need("(")
        found = self.place()
        self.need(")")
        return found

    def place(self) -> Attribute:
        """What stands in `loc(…)`."""
        start = self.skip()
        if self.text.startswith("#", start):
            found = self.attribute()
            if not is_location(found):
                self.fail("this alias is no location", start, code=BAD_VALUE)
            return found
        text = self.optional_string()
        if text is not None:
            return self._named(text)
        match word := self.optional_keyword():
            case "unknown":
                return UNKNOWN_LOC
            case "callsite":
                self.need("(")
                callee = self.place()
                self.need_word("at")
                caller = self.place()
                self.need(")")
                return call_loc(callee, caller)
            case "fused":
                metadata: Attribute | None = None
                if self.accept("<"):
                    metadata = self.attribute()
                    self.need(">")
                self.need("[")
                places = [self.place()]
                while self.accept(","):
                    places.append(self.place())
                self.need("]")
                return fused_loc(places, metadata)
            case "loc":
                self.pos = start
                inner = self.optional_location()
                assert inner is not None
                return inner
            case _:
                self.pos = start
                return self.expected(
                    "a location" if word is None else "'unknown', 'callsite' or 'fused'"
                )

    def _named(self, text: str) -> Attribute:
        if self.accept(":"):
            line = self.integer()
            if not self.accept(":"):
                return file_loc(text, line, 0)
            column = self.integer()
            if not self.accept_word("to"):
                return file_loc(text, line, column)
            end_line = line if self.at(":") else self.integer()
            end = column
            if self.accept(":"):
                end = self.integer()
            return FileRangeLoc(FileRange(text, line, column, end_line, end))
        if self.accept("("):
            child = self.place()
            self.need(")")
            return name_loc(text, None if isinstance(child, UnknownLoc) else child)
        return name_loc(text, None)
