"""Where in the user's text an operand or attribute of an instruction stands.

Only asked for when something is wrong, so it reads the text again instead of keeping positions.
"""

from __future__ import annotations

import re

from mlirhlo.diagnostics import Place
from mlirhlo.dialects.hlo.module import source_of
from mlirhlo.dialects.hlo.ops.base import Instruction

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|[()\[\]{},]', re.DOTALL)
_NAME = re.compile(r"%?[A-Za-z_][A-Za-z0-9_.-]*$")


def place_of(
    op: Instruction,
    operand: int | None = None,
    attribute: str | None = None,
    file: str = "<module>",
) -> Place:
    """Place of an operand, an attribute, or of the instruction itself. Instructions that come from
    no text are named instead."""
    found = source_of(op)
    if found is None:
        return Place(file, what=f"%{op.instruction_name or '?'}")
    source, start = found
    text = source.text
    opcode = re.compile(rf"(?<![\w.%-]){re.escape(op.opcode.name)}\(").search(text, start)
    if opcode is None or text.find("=", start, opcode.start()) < 0:
        return source.place(start, _length(text, start))
    spans, end = _arguments(text, opcode.end())
    if operand is not None and operand < len(spans):
        begin, stop = spans[operand]
        name = _NAME.search(text, begin, stop)
        begin = name.start() if name is not None else begin
        return source.place(begin, stop - begin)
    if attribute is not None:
        line_end = text.find("\n", end)
        at = re.compile(rf"(?<![\w.-]){re.escape(attribute)}=").search(
            text, end, line_end if line_end >= 0 else len(text)
        )
        if at is not None:
            return source.place(at.start(), len(attribute))
    return source.place(start, _length(text, start))


def _length(text: str, start: int) -> int:
    """Characters of the name at `start`."""
    match = re.compile(r"%?[A-Za-z0-9_.-]+").match(text, start)
    return len(match.group()) if match is not None else 1


def _arguments(text: str, start: int) -> tuple[list[tuple[int, int]], int]:
    """Spans of the arguments from `start`, just after the parenthesis, and where they end."""
    spans: list[tuple[int, int]] = []
    depth, begin = 0, start
    for match in _PIECE.finditer(text, start):
        piece = match.group()
        if piece in "([{" and len(piece) == 1:
            depth += 1
        elif piece in ")]}" and len(piece) == 1:
            if depth == 0:
                spans.append(_trimmed(text, begin, match.start()))
                return spans, match.end()
            depth -= 1
        elif piece == "," and depth == 0:
            spans.append(_trimmed(text, begin, match.start()))
            begin = match.end()
    return spans, len(text)


def _trimmed(text: str, begin: int, end: int) -> tuple[int, int]:
    piece = text[begin:end]
    # An index comment may stand before the operand.
    comment = re.match(r"\s*(?:/\*.*?\*/\s*)*", piece)
    begin += comment.end() if comment is not None else 0
    return begin, begin + len(text[begin:end].rstrip())
