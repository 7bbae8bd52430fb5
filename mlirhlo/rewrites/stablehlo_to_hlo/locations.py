"""Locations of StableHLO as HLO has them: the name of an instruction, and its metadata.

`loc("exp"("jit(f)"("f.py":3:1)))` becomes `op_name="exp"` and a stack frame: function `jit(f)`, its
file and line; `callsite(a at b)` is a frame of `a` called from `b`. The instruction is called `exp.1`.
A plain `"f.py":3:1` becomes the source fields. Observed on jaxlib 0.10.2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.annotations import Metadata, MetadataAttr
from mlirhlo.dialects.hlo.attributes.header import FileLocation, StackFrame, StackFrames
from mlirhlo.dialects.hlo.names import legal_name

Row = TypeVar("Row")


def op_name_of(location: Attribute) -> str:
    """The outermost name of a location, those of fused ones joined; empty when it has none."""
    match location:
        case NameLoc():
            # JAX ends the names of the locations of functions in a colon.
            return location.desc.data.removesuffix(":")
        case FusedLoc():
            parts = [op_name_of(part) for part in _parts(location)]
            return ";".join(dict.fromkeys(part for part in parts if part))
        case CallSiteLoc():
            return op_name_of(location.callee)
        case _:
            return ""


def _parts(location: FusedLoc) -> tuple[Attribute, ...]:
    locations = location.locations
    return (
        tuple(cast("ArrayAttr[Attribute]", locations).data)
        if isinstance(locations, ArrayAttr)
        else ()
    )


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


Frame: TypeAlias = "tuple[str, str, int, int, int]"
"""File, function, line, column, and the number of the frame that called it (0: none)."""


class Locations:
    """Base names and metadata of locations, each worked out once, and the stack frames they name.

    Frames are numbered as they are met, and again when the computations that use them are complete:
    `settle` gives the number that the module's tables have.
    """

    __slots__ = (
        "_files",
        "_frames",
        "_functions",
        "_known",
        "_met",
        "_order",
        "_places",
        "_settled",
    )

    def __init__(self) -> None:
        self._known: dict[Attribute, tuple[str | None, MetadataAttr | None]] = {}
        self._met: dict[Frame, int] = {}
        self._order: list[Frame] = []
        self._settled: dict[MetadataAttr, MetadataAttr] = {}
        self._files: dict[str, int] = {}
        self._functions: dict[str, int] = {}
        self._places: dict[FileLocation, int] = {}
        self._frames: dict[StackFrame, int] = {}

    def settle(self, metadata: MetadataAttr) -> MetadataAttr:
        """`metadata` with the last number of its frame."""
        found = self._settled.get(metadata)
        if found is None:
            frame = self._final(metadata.data.stack_frame_id)
            found = MetadataAttr(replace(metadata.data, stack_frame_id=frame))
            self._settled[metadata] = found
        return found

    def _final(self, number: int) -> int:
        if not number:
            return 0
        if len(self._order) < len(self._met):
            self._order = list(self._met)
        file, function, line, column, parent = self._order[number - 1]
        above = self._final(parent)
        row = FileLocation(
            _number(self._files, file),
            _number(self._functions, function),
            line,
            line,
            column,
            column,
        )
        return _number(self._frames, StackFrame(_number(self._places, row), above))

    def of(self, location: Attribute) -> tuple[str | None, MetadataAttr | None]:
        """The name an instruction takes from `location` (None: its opcode), and its metadata."""
        found = self._known.get(location)
        if found is None:
            found = self._known[location] = self._read(location)
        return found

    @property
    def stack_frames(self) -> StackFrames | None:
        """The tables of all frames named so far; None when there are none."""
        if not self._frames:
            return None
        return StackFrames(
            tuple(self._files), tuple(self._functions), tuple(self._places), tuple(self._frames)
        )

    def _read(self, location: Attribute) -> tuple[str | None, MetadataAttr | None]:
        name = op_name_of(location)
        inner = location.location if isinstance(location, NameLoc) else location
        frame, place = 0, None
        if isinstance(inner, NameLoc | CallSiteLoc):
            frame = self._frame(inner)
        else:
            place = file_of(inner)
        if not name and place is None and not frame:
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
                stack_frame_id=frame,
            )
        )
        last = name.rsplit("/", 1)[-1]
        return (legal_name(last) if last else None), metadata

    def _frame(self, location: Attribute, parent: int = 0) -> int:
        """Number of the frame of a location called from frame `parent`; `parent` when it is none."""
        match location:
            case CallSiteLoc():
                return self._frame(location.callee, self._frame(location.caller, parent))
            case NameLoc():
                function, place = location.desc.data, file_of(location.location)
            case _:
                function, place = "", file_of(location)
        if place is None:
            return parent
        file, line, column = place
        return _number(self._met, (file, function, line, column, parent))


def without_frame(metadata: MetadataAttr) -> MetadataAttr:
    """`metadata` without its frame, as parameters have it."""
    return MetadataAttr(replace(metadata.data, stack_frame_id=0))


def _number(table: dict[Row, int], row: Row) -> int:
    """The 1-based number of a row, which joins the table when it is new."""
    return table.setdefault(row, len(table) + 1)
