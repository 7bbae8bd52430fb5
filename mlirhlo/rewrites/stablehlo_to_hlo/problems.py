"""What the conversion says when it cannot go on."""

from __future__ import annotations

from xdsl.ir import Operation

from mlirhlo.analysis.stablehlo.places import place_of as place_in_text
from mlirhlo.diagnostics import Diagnostic, HloError, Place
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.rewrites.stablehlo_to_hlo import locations


def place_of(op: Operation) -> Place:
    """Where `op` stands in the text it was read from, else where its location says."""
    if getattr(op, "text_source", None) is None:
        found = locations.file_of(op.location)
        if found is not None:
            return Place(*found, what=op.name)
    return place_in_text(op, None, None)


def problem(code: str, op: Operation, message: str, help: str | None = None) -> HloError:
    """An error about `op`: `message` follows the op's name."""
    return HloError(Diagnostic(code, f"{op.name}: {message}", place_of(op), help=help))
