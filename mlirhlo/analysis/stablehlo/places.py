"""Where an op stands in the user's text, as far as its reader kept that."""

from __future__ import annotations

from xdsl.ir import Operation

from mlirhlo.diagnostics import Place


def place_of(
    op: Operation, operand: int | None, attribute: str | None, file: str = "<module>"
) -> Place:
    """Place of an op, or its name where it was not read from text."""
    return Place(file, what=op.name)
