"""The scanner under the reader of MLIR text: a position in the text, and what stands there."""

from __future__ import annotations

import re
from typing import NoReturn

from mlirhlo.diagnostics import Diagnostic, HloError, SourceText

SYNTAX = "HLO0030"
"""Text that is not MLIR."""
UNKNOWN = "HLO0031"
"""A name nobody knows: an op, a value, an alias, a block."""
BAD_VALUE = "HLO0032"
"""Well-formed text whose parts do not go together."""
TOO_DEEP = "HLO0033"
"""Brackets nested too deep."""
BAD_CONSTANT = "HLO0036"

_BLANKS = re.compile(r"(?:[ \t\r\n]+|//[^\n]*)*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
_KEYWORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_STRING = re.compile(r'"((?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+)"')
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)")
_INTEGER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|[0-9]+)")
_VALUE = re.compile(r"%([A-Za-z0-9_$.\-]+)(?:#([0-9]+))?")
_SYMBOL = re.compile(r'@(?:([A-Za-z_][A-Za-z0-9_$.]*)|"((?:[^"\\\n]|\\.)*+)")')
_SUFFIX = re.compile(r"[A-Za-z0-9_$.\-]+")
_FOUND = re.compile(r'[A-Za-z0-9_$.\-]+|"[^"\n]{0,30}"?|[^\s]')
_MAX_DIGITS = 4000
"""Python refuses to convert longer decimal numbers."""

_ESCAPES = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}


def unescape(body: str) -> str:
    """The string that stands between quotes; bytes that are not UTF-8 become surrogate escapes."""
    if "\\" not in body:
        return body
    octets = _ESCAPE.sub(
        lambda m: _ESCAPES.get(m[1]) or bytes([int(m[1], 16)]),
        body.encode("utf-8", "surrogateescape"),
    )
    return octets.decode("utf-8", "surrogateescape")


class Scanner:
    """A position in a text. Every method first goes past blanks and comments."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.text = source.text
        self.pos = 0

    def fail(
        self,
        message: str,
        at: int | None = None,
        *,
        length: int = 1,
        code: str = SYNTAX,
        help: str | None = None,
    ) -> NoReturn:
        """Raises `HloError` at a position (the next token if none is given)."""
        if at is None:
            self.skip()
            at = self.pos
            found = _FOUND.match(self.text, at)
            length = len(found[0]) if found is not None else 1
        raise HloError(Diagnostic(code, message, self.source.place(at, length), help=help))

    def expected(self, what: str) -> NoReturn:
        """Raises: something else stands here."""
        self.skip()
        found = _FOUND.match(self.text, self.pos)
        shown = f"'{found[0]}'" if found is not None else "the end of the text"
        self.fail(f"expected {what}, found {shown}")

    def skip(self) -> int:
        """Goes past blanks and comments; the new position."""
        match = _BLANKS.match(self.text, self.pos)
        assert match is not None
        self.pos = match.end()
        return self.pos

    def at(self, word: str) -> bool:
        """Whether `word` stands here."""
        return self.text.startswith(word, self.skip())

    def accept(self, word: str) -> bool:
        """Takes a punctuation mark if it stands here."""
        if self.text.startswith(word, self.skip()):
            self.pos += len(word)
            return True
        return False

    def need(self, word: str) -> None:
        """Takes a punctuation mark."""
        if not self.accept(word):
            self.expected(f"'{word}'")

    def accept_word(self, word: str) -> bool:
        """Takes a keyword if it stands here."""
        match = _KEYWORD.match(self.text, self.skip())
        if match is not None and match[0] == word:
            self.pos = match.end()
            return True
        return False

    def need_word(self, word: str) -> None:
        """Takes a keyword."""
        if not self.accept_word(word):
            self.expected(f"'{word}'")

    def literal(self, text: str) -> None:
        """Takes what a template spells: keywords and marks with blanks between."""
        for token in text.split():
            if token[0].isalpha():
                self.need_word(token)
            else:
                self.need(token)

    def optional_keyword(self) -> str | None:
        """A word without dots, if one stands here."""
        match = _KEYWORD.match(self.text, self.skip())
        if match is None:
            return None
        self.pos = match.end()
        return match[0]

    def keyword(self) -> str:
        """A word without dots."""
        word = self.optional_keyword()
        return word if word is not None else self.expected("a word")

    def optional_word(self) -> str | None:
        """A word, dots and all, if one stands here."""
        match = _WORD.match(self.text, self.skip())
        if match is None:
            return None
        self.pos = match.end()
        return match[0]

    def suffix(self) -> str:
        """What follows `%`, `#`, `!`, `^` at once."""
        match = _SUFFIX.match(self.text, self.pos)
        if match is None:
            self.expected("a name")
        self.pos = match.end()
        return match[0]

    def optional_string(self) -> str | None:
        """A string literal, if one stands here."""
        if not self.text.startswith('"', self.skip()):
            return None
        match = _STRING.match(self.text, self.pos)
        if match is None:
            self.fail("this string does not end, or has an escape that MLIR has not", self.pos)
        self.pos = match.end()
        return unescape(match[1])

    def string(self) -> str:
        """A string literal."""
        text = self.optional_string()
        return text if text is not None else self.expected("a string")

    def optional_integer(self) -> int | None:
        """An integer, decimal or hexadecimal, if one stands here."""
        match = _INTEGER.match(self.text, self.skip())
        if match is None:
            return None
        if len(match[0]) > _MAX_DIGITS:
            self.fail("this number has too many digits", code=BAD_VALUE)
        self.pos = match.end()
        return int(match[0], 16) if "x" in match[0] else int(match[0])

    def integer(self) -> int:
        """An integer."""
        value = self.optional_integer()
        return value if value is not None else self.expected("an integer")

    def optional_value(self) -> tuple[str, int, int] | None:
        """Name, index and position of a use `%name#1`, if one stands here."""
        match = _VALUE.match(self.text, self.skip())
        if match is None:
            return None
        begin = self.pos
        self.pos = match.end()
        index = match[2]
        return match[1], 0 if index is None else int(index[:9]), begin

    def optional_symbol(self) -> str | None:
        """A symbol name, if one stands here."""
        match = _SYMBOL.match(self.text, self.skip())
        if match is None:
            return None
        self.pos = match.end()
        return match[1] if match[1] is not None else unescape(match[2])

    def symbol(self) -> str:
        """A symbol name."""
        name = self.optional_symbol()
        return name if name is not None else self.expected("a symbol name")

    def boolean(self) -> bool:
        """`true` or `false`."""
        if self.accept_word("true"):
            return True
        return False if self.accept_word("false") else self.expected("'true' or 'false'")

    def at_end(self) -> bool:
        """Whether nothing but blanks follows."""
        return self.skip() == len(self.text)
