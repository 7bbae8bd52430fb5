"""What goes wrong while reading, on its way to becoming a diagnostic.

Readers raise `SyntaxProblem` (from the dialect: an offset and a message) or `ReadProblem`, which
also has a code, notes with places and a help line. XLA answers with a list of errors, innermost
first; here the innermost is the message and the outer ones are its notes.
"""

from __future__ import annotations

from typing import NoReturn

from mlirhlo.diagnostics import Diagnostic, HloError, SourceText
from mlirhlo.dialects.hlo.syntax import SyntaxProblem

SYNTAX = "HLO0001"
UNKNOWN_OPCODE = "HLO0002"
UNKNOWN_ATTRIBUTE = "HLO0003"
MISSING_ATTRIBUTE = "HLO0004"
ATTRIBUTE_VALUE = "HLO0005"
UNKNOWN_INSTRUCTION = "HLO0006"
NAME_TAKEN = "HLO0007"
UNKNOWN_COMPUTATION = "HLO0008"
OPERAND_COUNT = "HLO0009"
SHAPE = "HLO0010"
LITERAL = "HLO0011"
SHAPES_DIFFER = "HLO0012"
NO_SHAPE = "HLO0013"
ROOT_OR_ENTRY = "HLO0014"
PARAMETER_NUMBERS = "HLO0015"
ILLEGAL_NAME = "HLO0016"
ASYNC = "HLO0017"
TOO_DEEP = "HLO0018"
INSTRUCTION = "HLO0019"
HEADER = "HLO0020"
CHARACTER = "HLO0021"


class ReadProblem(SyntaxProblem):
    """A `SyntaxProblem` with a code, notes and help. Offsets are in the whole text."""

    def __init__(
        self,
        code: str,
        offset: int,
        message: str,
        length: int = 1,
        *,
        notes: tuple[tuple[str, int | None], ...] = (),
        help: str | None = None,
    ) -> None:
        super().__init__(offset, message, length)
        self.code, self.notes, self.help = code, notes, help

    def within(self, message: str, offset: int) -> ReadProblem:
        """The same problem with one more enclosing thing that failed because of it."""
        notes = (*self.notes, (message, offset))
        return ReadProblem(
            self.code, self.offset, self.message, self.length, notes=notes, help=self.help
        )


class Misfit(Exception):
    """An instruction whose parts do not fit together; the reader that knows the place adds it."""

    def __init__(self, code: str, message: str, *, help: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.help = code, message, help


def coded(problem: SyntaxProblem, code: str) -> ReadProblem:
    """`problem` with `code`, unless it already has one."""
    if isinstance(problem, ReadProblem):
        return problem
    return ReadProblem(code, problem.offset, problem.message, problem.length)


def fail(source: SourceText, problem: SyntaxProblem) -> NoReturn:
    """Raises the `HloError` of a problem."""
    found = coded(problem, SYNTAX)
    # At the end of the text the last line that has anything says more than an empty one.
    offset = min(found.offset, len(source.text.rstrip()))
    notes = tuple(
        (text, None if where is None else source.place(where)) for text, where in found.notes
    )
    raise HloError(
        Diagnostic(found.code, found.message, source.place(offset, found.length), notes, found.help)
    )
