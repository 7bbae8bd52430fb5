"""What the conversion says when it cannot go on."""

from __future__ import annotations

from xdsl.dialects.builtin import FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Operation

from mlirhlo.diagnostics import Diagnostic, HloError, Place


def place_of(op: Operation) -> Place | None:
    """Where `op` stands in the file it was read from, as its location says."""
    found = _file_of(op.location)
    name = f"{op.name}"
    if found is None:
        return Place("<module>", what=name)
    file, line, column = found
    return Place(file, line, column, what=name)


def _file_of(location: Attribute | None) -> tuple[str, int, int] | None:
    match location:
        case FileLineColLoc():
            return location.filename.data, location.line.data, location.column.data
        case NameLoc():
            return _file_of(getattr(location, "child_loc", None))
        case FusedLoc():
            for part in location.locations.data:
                found = _file_of(part)
                if found is not None:
                    return found
            return None
        case _:
            return None


def problem(code: str, op: Operation, message: str, help: str | None = None) -> HloError:
    """An error about `op`: `message` follows the op's name."""
    return HloError(Diagnostic(code, f"{op.name}: {message}", place_of(op), help=help))
