"""Where an op, an operand or an attribute stands in the user's text, as far as its reader kept that.

The reader keeps only where an op begins; what is inside is found again when something is wrong.
"""

from __future__ import annotations

import re
from typing import cast

from xdsl.ir import Operation

from mlirhlo.diagnostics import Place, SourceText

_RESULTS = re.compile(r"(?:%[^=]*=\s*)?")
_NAME = re.compile(r'"?[\w$.-]+"?')
_VALUE = re.compile(r"%[\w$.#-]+")


def place_of(
    op: Operation, operand: int | None, attribute: str | None, file: str = "<module>"
) -> Place:
    """Place of operand number `operand`, of the attribute named, or of the op; its name where it
    was not read from text."""
    found = getattr(op, "text_source", None)
    if found is None:
        return Place(file, what=op.name)
    source, start = cast("tuple[SourceText, int]", found)
    text = source.text
    results = _RESULTS.match(text, start)
    name = _NAME.match(text, results.end() if results is not None else start)
    if name is None:
        return source.place(start)
    end = text.find("\n", name.end())
    line_end = len(text) if end < 0 else end
    if operand is not None:
        values = _VALUE.finditer(text, name.end(), line_end)
        for index, value in enumerate(values):
            if index == operand:
                return source.place(value.start(), len(value.group()))
    if attribute is not None:
        key = re.compile(rf"\b{re.escape(attribute)}\s*=").search(text, name.end(), line_end)
        if key is not None:
            return source.place(key.start(), len(attribute))
    return source.place(name.start(), len(name.group()))
