"""Where an operation stands, for messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.interpreter.problems import place_of

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from mlirhlo.diagnostics import Place


def source_place(op: Operation) -> Place:
    """The operation in the text it was read from; else its number in the kernel."""
    source: Any = getattr(op, "text_source", None)
    if source is None:
        return place_of(op)
    text, offset = source
    place: Place = text.place(offset, len(name_of(op)))
    return place
