"""Metadata of instructions as locations: `loc("jit(f)/add"("f.py":3:1))`.

Without metadata the location is the instruction's name, as in XLA's translator.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.annotations import Metadata
from mlirhlo.dialects.hlo.attributes.header import StackFrames
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.stablehlo.locations import call_loc, file_loc, name_loc


class Locations:
    """Locations of instructions, each made once."""

    __slots__ = ("_frames", "_known", "_places")

    def __init__(self, frames: StackFrames | None) -> None:
        self._frames = frames
        self._known: dict[Attribute, Attribute] = {}
        self._places: dict[int, Attribute | None] = {}

    def of(self, op: Instruction) -> Attribute:
        """The location of an instruction."""
        metadata = op.properties.get("metadata")
        if metadata is not None:
            found = self._known.get(metadata)
            if found is None:
                value = op.metadata
                assert value is not None
                found = self._known[metadata] = self._make(value) or UNKNOWN_LOC
            if found is not UNKNOWN_LOC:
                return found
        name = op.instruction_name
        return UNKNOWN_LOC if name is None else name_loc(name, None)

    def _make(self, metadata: Metadata) -> Attribute | None:
        place: Attribute | None = None
        if metadata.source_file:
            place = file_loc(metadata.source_file, metadata.source_line, metadata.source_column)
        elif metadata.stack_frame_id:
            place = self._frame(metadata.stack_frame_id)
        return name_loc(metadata.op_name, place) if metadata.op_name else place

    def _frame(self, number: int) -> Attribute | None:
        """A frame, and the frames that it was called from."""
        chain: list[int] = []
        frames = self._frames
        while frames is not None and 0 < number <= len(frames.stack_frames):
            if number in self._places or number in chain:
                break
            chain.append(number)
            number = frames.stack_frames[number - 1].parent_frame_id
        for one in reversed(chain):
            assert frames is not None
            frame = frames.stack_frames[one - 1]
            place = self._place(frame.file_location_id)
            outer = self._places.get(frame.parent_frame_id)
            self._places[one] = place and (call_loc(place, outer) if outer else place)
        return self._places.get(chain[0] if chain else number)

    def _place(self, number: int) -> Attribute | None:
        frames = self._frames
        assert frames is not None
        if not 0 < number <= len(frames.file_locations):
            return None
        row = frames.file_locations[number - 1]
        if not 0 < row.file_name_id <= len(frames.file_names):
            return None
        place = file_loc(frames.file_names[row.file_name_id - 1], row.line, row.column)
        if 0 < row.function_name_id <= len(frames.function_names):
            return name_loc(frames.function_names[row.function_name_id - 1], place)
        return place
