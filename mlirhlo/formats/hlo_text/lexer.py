"""Tokens of HLO text: what a word means depends on the character right after it.

Source: HLO text, "Lexical rules". The module skeleton (names, opcodes, attribute keys) is read by
tokens; the values of attributes are read by the dialect on the same cursor. A `Lexer` never copies
the text, takes time linear in it and recurses nowhere.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mlirhlo.dialects.hlo import element_types as et
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem

TYPE_WORDS = frozenset(PRIMITIVE_TYPES.keys() - {et.TUPLE.name, et.BUFFER.name})
"""Primitive types that can be spelled; none can be the name of an instruction."""

KEYWORDS = frozenset(
    (
        "true", "false", "inf", "nan", "HloModule", "ENTRY", "ROOT",
        "FileNames", "FunctionNames", "FileLocations", "StackFrames",
        "maximal", "replicated", "manual", "unknown", "unreduced",
        "last_tile_dim_replicate", "shard_as", "shard_like",
    )
)  # fmt: skip
"""Reserved bare words (after `%` any word is a name)."""

RESERVED = TYPE_WORDS | KEYWORDS

_BLANK = re.compile(r"(?>[ \t\r\n]+|/\*(?>[^*]+|\*(?!/))*+\*/|//[^\r\n]*+)*+")
_TOKEN = re.compile(
    r"""
      (?P<name>%[A-Za-z_][A-Za-z0-9_.\-]*+|[A-Za-z_][A-Za-z0-9_.\-]*+:)
    | (?P<key>[A-Za-z_][A-Za-z0-9_.\-]*+=)
    | (?P<labels>[0-9bf?]{2,}_[0-9io?]{2,}->[0-9bf?]{2,})
    | (?P<word>[A-Za-z_][A-Za-z0-9_.\-]*+)
    | (?P<mark>->|<=|\.\.\.|[=,:()\[\]{}*\#+~?])
    | (?P<float>-?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+|[0-9]+\.[0-9]*|(?<=-)\.[0-9]+))
    | (?P<sizes>[0-9]+(?:x[0-9]+)+)
    | (?P<pad>-?[0-9]+_-?[0-9]+(?:_[0-9]+)?(?:x-?[0-9]+_-?[0-9]+(?:_[0-9]+)?)*)
    | (?P<int>-?[0-9]+|-inf|-nan)
    | (?P<string>"(?>[^"\\]+|\\.)*+"|'(?>[^'\\]+|\\.)*+')
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """One token: `kind` is `name`, `key`, `word`, `keyword`, `type`, `mark`, …, `end` or `error`."""

    kind: str
    text: str
    """Without `%`, and without the `:` or `=` that made it a name or key."""
    start: int
    end: int


class Lexer(Cursor):
    """A cursor that also knows tokens. `look` peeks, assigning `position = token.end` takes."""

    __slots__ = ("_looked",)

    def __init__(self, text: str, position: int = 0, end: int | None = None) -> None:
        super().__init__(text, position, end)
        self._looked: Token | None = None

    def skip(self) -> int:
        """Skips white space and comments. Raises `SyntaxProblem` on a comment without an end."""
        match = _BLANK.match(self.text, self.position, self.end)
        assert match is not None  # the pattern matches the empty string
        where = self.position = match.end()
        if self.text.startswith("/*", where, self.end):
            raise SyntaxProblem(where, "unterminated comment", 2)
        return where

    def look(self) -> Token:
        """The next token, not taken."""
        start = self.skip()
        looked = self._looked
        if looked is not None and looked.start == start:
            return looked
        match = _TOKEN.match(self.text, start, self.end)
        if match is None:
            kind = "end" if start >= self.end else "error"
            token = Token(kind, self.text[start : start + 1], start, min(start + 1, self.end))
        else:
            kind, text = match.lastgroup or "error", match.group()
            if kind == "name":
                text = text[1:] if text[0] == "%" else text[:-1]
            elif kind == "key":
                text = text[:-1]
            elif kind == "word" and text in RESERVED:
                kind = "type" if text in TYPE_WORDS else "keyword"
            token = Token(kind, text, start, match.end())
        self._looked = token
        return token

    def take(self) -> Token:
        """The next token."""
        token = self.look()
        self.position = token.end
        return token

    def is_keyword(self, word: str) -> bool:
        """Whether the reserved word `word` comes next."""
        token = self.look()
        return token.kind == "keyword" and token.text == word

    def accept_keyword(self, word: str) -> bool:
        """Takes the reserved word `word` if it comes next."""
        if not self.is_keyword(word):
            return False
        self.take()
        return True

    def at_name(self) -> bool:
        """Whether a name of an instruction or computation comes next."""
        return self.look().kind in ("name", "word")

    def at_shape(self) -> bool:
        """Whether a shape comes next: a primitive type, a tuple, or `b(`."""
        token = self.look()
        if token.kind == "word":
            return token.text == "b" and Cursor(self.text, token.end, self.end).peek("(")
        return token.kind == "type" or (token.kind == "mark" and token.text == "(")
