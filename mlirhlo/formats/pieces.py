"""Files of several modules, divided by `// -----` lines, as in MLIR's and XLA's tests."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlirhlo.diagnostics import Diagnostic, Place, Severity

_MARK = re.compile(rb"^[ \t]*// -----[ \t]*\r?$", re.MULTILINE)
_ALMOST = re.compile(rb"^[ \t]*//[ \t]*-{3,}[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Piece:
    """One module of a file."""

    data: bytes
    """The text, with empty lines in front so that its lines count as in the whole file."""
    first_line: int
    """1-based line of the file that the piece begins at."""


def split(data: bytes, name: str) -> tuple[list[Piece], list[Diagnostic]]:
    """The pieces of a text, and warnings HLO0511 for lines that look like a divider and are none.

    A piece of blanks and comments only is left out, unless it is all there is.
    """
    pieces: list[Piece] = []
    start = line = 0
    for match in _MARK.finditer(data):
        pieces.append(_piece(data[start : match.start()], line))
        line += data.count(b"\n", start, match.end())
        start = match.end()
    pieces.append(_piece(data[start:], line))
    kept = [piece for piece in pieces if not _is_blank(piece.data)]
    return kept or pieces[:1], _warnings(data, name)


def _piece(data: bytes, lines_before: int) -> Piece:
    return Piece(b"\n" * lines_before + data, lines_before + 1)


def _is_blank(data: bytes) -> bool:
    return all(
        not line.strip() or (line.lstrip().startswith(b"//") and b"expected-" not in line)
        for line in data.split(b"\n")
    )


def _warnings(data: bytes, name: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for match in _ALMOST.finditer(data):
        if not _MARK.match(match[0]):
            text = match[0].decode(errors="replace").rstrip()
            place = Place(name, data.count(b"\n", 0, match.start()) + 1, 1, len(text), text)
            found.append(
                Diagnostic(
                    "HLO0511",
                    "this comment divides nothing",
                    place,
                    help="the divider is '// -----', five dashes",
                    severity=Severity.WARNING,
                )
            )
    return found
