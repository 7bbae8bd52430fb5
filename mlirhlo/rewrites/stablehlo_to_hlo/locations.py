"""Locations of StableHLO as HLO has them: the name of an instruction, and its metadata.

A `NameLoc` says what an instruction is called: `loc("exp"("jit(f)"("f.py":3:1)))` becomes
`op_name="jit(f)/exp"`, and the instruction is `exp.1`. Observed on jaxlib 0.10.2.
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.annotations import Metadata, MetadataAttr
from mlirhlo.dialects.hlo.names import legal_name

_NUMBER = re.compile(r"(.+)\.[0-9]+")


def op_name_of(location: Attribute) -> str:
    """The names of a location, outermost part first; empty when it has none."""
    match location:
        case NameLoc():
            inner = op_name_of(location.location)
            own = location.desc.data
            return f"{inner}/{own}" if inner and own else own or inner
        case FusedLoc():
            parts = [op_name_of(part) for part in _parts(location)]
            return ";".join(part for part in parts if part)
        case CallSiteLoc():
            return op_name_of(location.callee)
        case _:
            return ""


def _parts(location: FusedLoc) -> tuple[Attribute, ...]:
    return tuple(getattr(location.locations, "data", ()))


def file_of(location: Attribute) -> tuple[str, int, int] | None:
    """File, line and column of the innermost file place of a location."""
    match location:
        case FileLineColLoc():
            return location.filename.data, location.line.data, location.column.data
        case NameLoc():
            return file_of(location.location)
        case FusedLoc():
            return next((f for part in _parts(location) if (f := file_of(part)) is not None), None)
        case CallSiteLoc():
            return file_of(location.callee) or file_of(location.caller)
        case _:
            return None


class Locations:
    """Base names and metadata of locations, each worked out once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Attribute, tuple[str | None, MetadataAttr | None]] = {}

    def of(self, location: Attribute) -> tuple[str | None, MetadataAttr | None]:
        """The name an instruction takes from `location` (None: its opcode), and its metadata."""
        found = self._known.get(location)
        if found is None:
            found = self._known[location] = _read(location)
        return found


def _read(location: Attribute) -> tuple[str | None, MetadataAttr | None]:
    name = op_name_of(location)
    # JAX names the type of a call in front: `jit:`, and a location may end in a colon.
    name = name.removesuffix(":")
    place = file_of(location)
    if not name and place is None:
        return None, None
    file, line, column = place or ("", 0, 0)
    metadata = MetadataAttr(
        Metadata(
            op_name=name,
            source_file=file,
            source_line=line,
            source_end_line=line,
            source_column=column,
            source_end_column=column,
        )
    )
    last = name.rsplit("/", 1)[-1]
    base = legal_name(last) if last else None
    return base, metadata
