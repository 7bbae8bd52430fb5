"""A cursor over one piece of HLO text: the lexical rules that every attribute value shares.

Source of the rules: HLO text, "Lexical rules". Offsets are relative to the piece; whoever cut it
out of a file adds the base.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

# Possessive repeats keep memory constant: a repeat that may backtrack stores every step.
_SPACE = re.compile(r"(?>[ \t\r\n]+|/\*(?>[^*]+|\*(?!/))*+\*/|//[^\r\n]*+)*+")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_INT = re.compile(r"-?[0-9]+")
_FLOAT = re.compile(r"-?(?:nan|inf|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_STRING = re.compile(r'"((?>[^"\\]+|\\.)*+)"|\'((?>[^\'\\]+|\\.)*+)\'', re.DOTALL)
_JSON_STEP = re.compile(r'[{}]|"(?>[^"\\]+|\\.)*+"', re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]+|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", "'": "'", '"': '"',
}  # fmt: skip


class SyntaxProblem(Exception):
    """Text that does not follow the grammar: `offset` (in the piece), `length` and `message`."""

    def __init__(self, offset: int, message: str, length: int = 1) -> None:
        super().__init__(message)
        self.offset, self.message, self.length = offset, message, length


class Cursor:
    """Reads tokens from `text[position:end]`; white space and comments are skipped before each."""

    __slots__ = ("end", "position", "text")

    def __init__(self, text: str, position: int = 0, end: int | None = None) -> None:
        self.text, self.position = text, position
        self.end = len(text) if end is None else end

    def skip(self) -> int:
        """Skips white space and comments; returns the position of what follows."""
        match = _SPACE.match(self.text, self.position, self.end)
        if match is not None:
            self.position = match.end()
        return self.position

    def at_end(self) -> bool:
        """Whether nothing but white space and comments is left."""
        return self.skip() >= self.end

    def peek(self, token: str) -> bool:
        """Whether `token` comes next."""
        return self.text.startswith(token, self.skip(), self.end)

    def accept(self, token: str) -> bool:
        """Takes `token` if it comes next."""
        if not self.peek(token):
            return False
        self.position += len(token)
        return True

    def expect(self, token: str) -> None:
        """Takes `token`. Raises `SyntaxProblem` when something else comes next."""
        if not self.accept(token):
            raise self.problem(f"expects {token!r}")

    def expect_end(self) -> None:
        """Raises `SyntaxProblem` unless everything was read."""
        if not self.at_end():
            raise self.problem("unexpected text")

    def problem(self, message: str, offset: int | None = None) -> SyntaxProblem:
        """A problem here (or at `offset`), saying also what was found."""
        where = self.skip() if offset is None else offset
        found = self.text[where : min(where + 20, self.end)].split("\n")[0]
        return SyntaxProblem(
            where, f"{message}, found {found!r}" if found else f"{message}, found the end"
        )

    def _match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        match = pattern.match(self.text, self.skip(), self.end)
        if match is None:
            raise self.problem(f"expects {what}")
        self.position = match.end()
        return match

    def word(self, what: str = "a word") -> str:
        """A bare word: `[A-Za-z_][A-Za-z0-9_.-]*`."""
        return self._match(_WORD, what).group()

    def key(self, what: str) -> str:
        """A word, or any text in quotes."""
        return self.string() if self.peek('"') else self.word(what)

    def peek_word(self) -> str | None:
        """The word that comes next, not taken."""
        match = _WORD.match(self.text, self.skip(), self.end)
        return None if match is None else match.group()

    def name(self) -> str:
        """An instruction or computation name, with or without `%`."""
        self.accept("%")
        return self.word("a name")

    def integer(self, what: str = "an integer") -> int:
        """A decimal integer of 64 bits; unsigned values wrap as XLA's lexer does."""
        start = self.skip()
        value = int(self._match(_INT, what).group()[:40])
        if not -(1 << 63) <= value < 1 << 64:
            raise SyntaxProblem(start, "integer does not fit 64 bits", self.position - start)
        return value if value < 1 << 63 else value - (1 << 64)

    def number(self) -> float:
        """An integer or float, `inf`, `nan`."""
        return float(self._match(_FLOAT, "a number").group())

    def boolean(self) -> bool:
        """`true` or `false`."""
        match self.peek_word():
            case "true":
                self.word()
                return True
            case "false":
                self.word()
                return False
            case _:
                raise self.problem("expects 'true' or 'false'")

    def string(self) -> str:
        """A quoted string, unescaped (bytes beyond UTF-8 become surrogate escapes)."""
        start = self.skip()
        match = self._match(_STRING, "a quoted string")
        return unescape(match.group(1) if match.group(1) is not None else match.group(2), start + 1)

    def json_dictionary(self) -> str:
        """Raw text of a `{…}` with balanced braces and double-quoted strings, braces included."""
        start, depth = self.skip(), 0
        if not self.peek("{"):
            raise self.problem("expects '{'")
        for step in _JSON_STEP.finditer(self.text, start, self.end):
            match step.group():
                case "{":
                    depth += 1
                case "}":
                    depth -= 1
                    if depth == 0:
                        self.position = step.end()
                        return self.text[start : self.position]
                case _:
                    pass
        raise SyntaxProblem(start, "unbalanced '{' in a JSON dictionary")

    def items(self, open_: str, close: str, item: Callable[[], T]) -> tuple[T, ...]:
        """`open item, item, … close`, with exactly one comma between two items."""
        self.expect(open_)
        found: list[T] = []
        if self.accept(close):
            return ()
        while True:
            found.append(item())
            if self.accept(close):
                return tuple(found)
            if not self.accept(","):
                raise self.problem(f"expects ',' or {close!r}")

    def integers(self, open_: str = "{", close: str = "}") -> tuple[int, ...]:
        """`{1,2,3}`."""
        return self.items(open_, close, self.integer)


def parse_all(text: str, rule: Callable[[Cursor], T]) -> T:
    """Reads all of `text` by `rule`. Raises `SyntaxProblem`."""
    cursor = Cursor(text)
    value = rule(cursor)
    cursor.expect_end()
    return value


WINDOW = 1 << 17
"""Characters of a long literal that are taken apart at a time: a token is an object of Python's meanwhile."""


def windows(text: str, begin: int, end: int, separator: str = ",") -> Iterator[str]:
    """A long literal in pieces of some `WINDOW` characters, cut behind the last character of a separator, which
    is left out."""
    at = begin
    while at >= 0:
        at = text.find(separator, begin + WINDOW, end) if end - begin > WINDOW else -1
        stop = end if at < 0 else at + len(separator) - 1
        yield text[begin:stop]
        begin = stop + 1


def unescape(text: str, offset: int = 0) -> str:
    r"""Undoes C escapes; `\x` and octal give bytes, `\u` and `\U` code points (UTF-8)."""
    if "\\" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        body = match.group(1)
        if body in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[body]
        try:
            if body[0] == "x" and len(body) > 1:
                return _byte(int(body[1:], 16))
            if body[0] in "01234567":
                return _byte(int(body, 8))
            if body[0] in "uU" and len(body) > 1:
                return chr(int(body[1:], 16)).encode("utf-8").decode("latin-1")
        except (ValueError, OverflowError, UnicodeEncodeError):
            pass
        raise SyntaxProblem(offset + match.start(), f"invalid escape '\\{body}' in a string")

    # Work in bytes dressed as latin-1, so that `\\303\\251` becomes one UTF-8 character.
    raw = text.encode("utf-8", "surrogateescape").decode("latin-1")
    return _ESCAPE.sub(one, raw).encode("latin-1").decode("utf-8", "surrogateescape")


def _byte(value: int) -> str:
    if value > 0xFF:
        raise ValueError(value)
    return chr(value)


_ESCAPED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}
_NEEDS_ESCAPE = re.compile(r"[^ !#-&(-\[\]-~]")


def escape(text: str) -> str:
    r"""XLA's C escaping: `\n \r \t \" \' \\`, other unprintable bytes as three octal digits."""
    if _NEEDS_ESCAPE.search(text) is None:
        return text
    raw = text.encode("utf-8", "surrogateescape").decode("latin-1")
    return _NEEDS_ESCAPE.sub(lambda m: _ESCAPED.get(m.group()) or f"\\{ord(m.group()):03o}", raw)


def quote(text: str) -> str:
    """`"escaped text"`."""
    return f'"{escape(text)}"'


def key_text(key: str) -> str:
    """A key as `Cursor.key` reads it: in quotes where it is no word. XLA prints it bare, and cannot read that."""
    return key if _WORD.fullmatch(key) else quote(key)


def is_json_dictionary(text: str) -> bool:
    """Whether `text` is one JSON dictionary and nothing else, so that XLA prints it unquoted."""
    if not text.startswith("{") or "\0" in text:
        return False
    try:
        cursor = Cursor(text)
        cursor.json_dictionary()
    except SyntaxProblem:
        return False
    return cursor.position == len(text)


def braces(values: tuple[int, ...] | list[int]) -> str:
    """`{1,2}`."""
    return "{" + ",".join(map(str, values)) + "}"
