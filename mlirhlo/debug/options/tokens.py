"""The syntax of `XLA_FLAGS` and of files of flags: text to (name, value) pairs.

Source: dumps reference, "How XLA_FLAGS is parsed". XLA's parser stops without a word at the first token
that does not start with a dash; this one says where it stopped and what was lost.
"""

from __future__ import annotations

from dataclasses import dataclass

_BLANKS = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Token:
    """One flag as it was written."""

    name: str
    """Without its dashes."""
    value: str | None
    """What follows `=`, quotes taken off; None without `=`."""
    dashes: int = 2

    @property
    def text(self) -> str:
        """The flag as XLA shows it in messages."""
        dashes = "-" * self.dashes
        return f"{dashes}{self.name}" + ("" if self.value is None else f"={self.value}")


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a text holds."""

    flags: tuple[Token, ...]
    stopped_at: str = ""
    """The token at which XLA stops reading; empty when it reads to the end."""
    lost: tuple[str, ...] = ()
    """Flags after that one, which nobody reads."""


def tokenize(text: str) -> Tokens:
    """The flags of a text, by XLA's rules."""
    flags: list[Token] = []
    position, end = 0, len(text)
    while True:
        while position < end and text[position] in _BLANKS:
            position += 1
        if position >= end:
            return Tokens(tuple(flags))
        if text[position] != "-":
            rest = text[position:].split()
            return Tokens(tuple(flags), rest[0], tuple(r for r in rest[1:] if r.startswith("-")))
        token, position = _token(text, position)
        flags.append(token)


def _token(text: str, start: int) -> tuple[Token, int]:
    end = len(text)
    position = start
    while position < end and text[position] not in _BLANKS and text[position] != "=":
        position += 1
    spelled = text[start:position]
    name = spelled.lstrip("-")
    dashes = len(spelled) - len(name)
    if position >= end or text[position] != "=":
        return Token(name, None, dashes), position
    position += 1
    quote = text[position] if position < end else ""
    if quote not in ("'", '"'):
        begin = position
        while position < end and text[position] not in _BLANKS:
            position += 1
        return Token(name, text[begin:position], dashes), position
    value, position = _quoted(text, position + 1, quote)
    return Token(name, value, dashes), position


def _quoted(text: str, position: int, quote: str) -> tuple[str, int]:
    """The text up to the closing quote, or to the end; a backslash counts in double quotes only."""
    characters: list[str] = []
    while position < len(text) and text[position] != quote:
        if quote == '"' and text[position] == "\\" and position + 1 < len(text):
            position += 1
        characters.append(text[position])
        position += 1
    return "".join(characters), position + 1
