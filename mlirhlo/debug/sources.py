"""Where instructions come from: the call stack of their metadata, in the user's program."""

from __future__ import annotations

from collections.abc import Sequence

from mlirhlo.dialects.hlo.attributes.annotations import Metadata
from mlirhlo.dialects.hlo.attributes.header import StackFrames


def call_stack(metadata: Metadata, tables: StackFrames) -> list[tuple[str, str, int, int]]:
    """File, function, line and column of each frame, innermost first; empty where the module has none."""
    found: list[tuple[str, str, int, int]] = []
    number, seen = metadata.stack_frame_id, set[int]()
    while 0 < number <= len(tables.stack_frames) and number not in seen:
        seen.add(number)
        frame = tables.stack_frames[number - 1]
        if 0 < frame.file_location_id <= len(tables.file_locations):
            row = tables.file_locations[frame.file_location_id - 1]
            file = _entry(tables.file_names, row.file_name_id)
            function = _entry(tables.function_names, row.function_name_id)
            found.append((file, function, row.line, row.column))
        number = frame.parent_frame_id
    return found


def source_line(metadata: Metadata | None, tables: StackFrames | None) -> str:
    """`file:line` that an instruction comes from; empty where the module does not say."""
    if metadata is None:
        return ""
    if metadata.source_file:
        return f"{metadata.source_file}:{metadata.source_line}"
    stack = call_stack(metadata, tables) if tables is not None else []
    return f"{stack[0][0]}:{stack[0][2]}" if stack else ""


def _entry(names: Sequence[str], number: int) -> str:
    return names[number - 1] if 0 < number <= len(names) else ""
