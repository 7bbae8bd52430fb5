"""Diagnostics: one dataclass makes every message a user sees, and one function prints it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

_EXCERPT_WIDTH = 160
"""Longest source excerpt printed; real dumps have lines of 75,000 characters."""


class Severity(Enum):
    """How bad a diagnostic is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    REMARK = "remark"


@dataclass(frozen=True, slots=True)
class Place:
    """A point or range in a file as the user has it; lines and columns count from 1."""

    file: str
    """File name, `<stdin>`, or the name of the container a text came out of."""
    line: int = 0
    """1-based line; 0 when the input has no lines (then `what` names the instruction)."""
    column: int = 0
    """1-based column of the caret; 0 for a whole line."""
    length: int = 1
    """Characters under the caret and its tail."""
    source_line: str | None = None
    """Text of the line, without its end."""
    what: str | None = None
    """Name of the instruction or field when there is no line."""

    def __str__(self) -> str:
        if self.line:
            return (
                f"{self.file}:{self.line}:{self.column}"
                if self.column
                else f"{self.file}:{self.line}"
            )
        return f"{self.file}: {self.what}" if self.what else self.file


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What is wrong, where, and how to mend it. `str()` gives the text of `style.md`, "Errors"."""

    code: str
    """`HLO` and four digits; `mlirhlo/explain/CODE.md` is its page."""
    message: str
    place: Place | None = None
    notes: Sequence[tuple[str, Place | None]] = ()
    help: str | None = None
    severity: Severity = Severity.ERROR

    def at(self, place: Place | None) -> Diagnostic:
        """This diagnostic at `place`, unless it already has one."""
        return self if self.place is not None or place is None else replace(self, place=place)

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place is not None else ""
        lines = [f"{where}{self.severity.value}[{self.code}]: {self.message}"]
        lines += _excerpt(self.place)
        for text, place in self.notes:
            lines.append(f"note: {text}" + (f" at {place}" if place is not None else ""))
        if self.help is not None:
            lines.append(f"help: {self.help}")
        return "\n".join(lines)


def _excerpt(place: Place | None) -> list[str]:
    if place is None or place.source_line is None:
        return []
    text, column = place.source_line.replace("\t", " "), max(place.column, 1)
    start = 0
    if len(text) > _EXCERPT_WIDTH:
        start = max(0, min(column - 1 - _EXCERPT_WIDTH // 2, len(text) - _EXCERPT_WIDTH))
        text = text[start : start + _EXCERPT_WIDTH]
    text = "".join(c if c.isprintable() else "·" for c in text)
    if not place.column:
        return [text]
    caret_at = column - 1 - start
    tail = max(0, min(place.length, len(text) - caret_at) - 1)
    return [text, " " * caret_at + "^" + "~" * tail]


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text as the user has it, for turning offsets into places.

    `first_line` is the 1-based line of the file at which `text` starts (pieces of a split file).
    """

    file: str
    text: str = field(repr=False)
    first_line: int = 1

    def place(self, offset: int, length: int = 1) -> Place:
        """Place of the character at `offset` (clamped to the last one)."""
        offset = max(0, min(offset, len(self.text)))
        begin = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        end = len(self.text) if end < 0 else end
        line = self.text.count("\n", 0, begin) + self.first_line
        excerpt = self.text[begin:end].rstrip("\r")
        return Place(self.file, line, offset - begin + 1, max(1, length), excerpt)


class HloError(Exception):
    """An input, or a request, is at fault. Carries one or more diagnostics; never a traceback."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("\n".join(map(str, diagnostics)))
        self.diagnostics: tuple[Diagnostic, ...] = diagnostics

    @property
    def code(self) -> str:
        """Code of the first diagnostic."""
        return self.diagnostics[0].code

    def at(self, place: Place | None) -> HloError:
        """The same error; diagnostics without a place get `place`."""
        return HloError(*(d.at(place) for d in self.diagnostics))


def error(code: str, message: str, place: Place | None = None, help: str | None = None) -> HloError:
    """An `HloError` with one diagnostic."""
    return HloError(Diagnostic(code, message, place, help=help))


class HloTypeError(HloError, TypeError):
    """A value of a type, or a kind of value, that cannot be used here."""


class HloMemoryError(HloError, MemoryError):
    """There is no memory for an array."""


def out_of_memory(message: str, place: Place | None = None) -> HloMemoryError:
    """The error HLO0507."""
    advice = "run it on a machine with more memory, or make the shapes smaller"
    return HloMemoryError(Diagnostic("HLO0507", message or "out of memory", place, help=advice))


def wrong_type(what: str, wanted: str, given: object, help: str | None = None) -> HloTypeError:
    """The error HLO0508: the argument `what` of a Python function wants something else."""
    got = "None" if given is None else type(given).__name__
    return HloTypeError(Diagnostic("HLO0508", f"{what}: expects {wanted}, got {got}", help=help))


def explain(code: str) -> str:
    """The page of `code`. Raises `HloError` HLO0501 when there is none."""
    if not isinstance(code, str):  # pyright: ignore[reportUnnecessaryIsInstance]  from outside
        raise wrong_type("explain", "a code such as 'HLO0102'", code)
    from importlib import resources

    page = resources.files("mlirhlo") / "explain" / f"{code}.md"
    if not (code.startswith("HLO") and code[3:].isdigit() and page.is_file()):
        raise error("HLO0501", f"no error code {code!r}", help="codes look like HLO0102")
    return page.read_text()
