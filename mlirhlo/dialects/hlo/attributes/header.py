"""Attributes of a whole module: program layout, boolean lists, stack-frame tables, recovery table.

Source of every syntax: HLO text, "Module header" and "Stack frame tables".
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.irdl import irdl_attr_definition

from mlirhlo.dialects.hlo.attributes.base import TextAttr
from mlirhlo.dialects.hlo.shapes import Shape, read_shape
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem, quote


@dataclass(frozen=True, slots=True)
class ProgramLayout:
    """`{(f32[4]{0}, s32[])->f32[4]{0}}`: entry shapes with layouts; a layout may be unset (None)."""

    parameters: tuple[Shape, ...]
    result: Shape

    def __str__(self) -> str:
        parts: list[str] = []
        for index, shape in enumerate(self.parameters):
            parts.append((f"/*index={index}*/" if index and index % 5 == 0 else "") + str(shape))
        return "{(" + ", ".join(parts) + ")->" + str(self.result) + "}"


def read_program_layout(cursor: Cursor) -> ProgramLayout:
    """Reads `entry_computation_layout`. Raises `SyntaxProblem`."""
    cursor.expect("{")
    parameters = cursor.items("(", ")", lambda: read_shape(cursor))
    cursor.expect("->")
    result = read_shape(cursor)
    cursor.expect("}")
    return ProgramLayout(parameters, result)


@irdl_attr_definition
class ProgramLayoutAttr(TextAttr[ProgramLayout]):
    """A `ProgramLayout`."""

    name = "hlo.program_layout"
    read = read_program_layout


@dataclass(frozen=True, slots=True)
class Booleans:
    """`{true,false}`."""

    values: tuple[bool, ...]

    def __str__(self) -> str:
        return "{" + ",".join("true" if v else "false" for v in self.values) + "}"


def read_booleans(cursor: Cursor) -> Booleans:
    """Reads `{true,false}` or a plain `true` (one value). Raises `SyntaxProblem`."""
    if not cursor.peek("{"):
        return Booleans((cursor.boolean(),))
    return Booleans(cursor.items("{", "}", cursor.boolean))


@irdl_attr_definition
class BooleansAttr(TextAttr[Booleans]):
    """A `Booleans`."""

    name = "hlo.booleans"
    read = read_booleans


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A row of FileLocations; ids are 1-based rows of the other tables, 0 = unset."""

    file_name_id: int = 0
    function_name_id: int = 0
    line: int = 0
    end_line: int = 0
    column: int = 0
    end_column: int = 0


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A row of StackFrames. `parent_frame_id` is the real id, 0 = none (the text prints one more)."""

    file_location_id: int = 0
    parent_frame_id: int = 0


@dataclass(frozen=True, slots=True)
class StackFrames:
    """The four tables after the module header."""

    file_names: tuple[str, ...] = ()
    function_names: tuple[str, ...] = ()
    file_locations: tuple[FileLocation, ...] = ()
    stack_frames: tuple[StackFrame, ...] = ()

    def __str__(self) -> str:
        """The tables as XLA prints them, from `FileNames` to the empty line after `StackFrames`."""
        lines = ["FileNames"]
        lines += [f"{i} {quote(name)}" for i, name in enumerate(self.file_names, 1)]
        lines += ["", "FunctionNames"]
        lines += [f"{i} {quote(name)}" for i, name in enumerate(self.function_names, 1)]
        lines += ["", "FileLocations"]
        for i, row in enumerate(self.file_locations, 1):
            lines.append(
                f"{i} {{file_name_id={row.file_name_id} function_name_id={row.function_name_id} line={row.line}"
                f" end_line={row.end_line} column={row.column} end_column={row.end_column}}}"
            )
        lines += ["", "StackFrames"]
        for i, frame in enumerate(self.stack_frames, 1):
            lines.append(
                f"{i} {{file_location_id={frame.file_location_id} parent_frame_id={frame.parent_frame_id + 1}}}"
            )
        return "\n".join(lines) + "\n\n"


_LOCATION_FIELDS = ("file_name_id", "function_name_id", "line", "end_line", "column", "end_column")
_FRAME_FIELDS = ("file_location_id", "parent_frame_id")


def read_stack_frames(cursor: Cursor) -> StackFrames:
    """Reads the four tables, each optional, in their order. Raises `SyntaxProblem`."""

    def keyword(word: str) -> bool:
        if cursor.peek_word() != word:
            return False
        cursor.word()
        return True

    def row_follows() -> bool:
        where = cursor.skip()
        if where < cursor.end and cursor.text[where].isdigit():
            cursor.integer()
            return True
        return False

    def strings() -> tuple[str, ...]:
        found: list[str] = []
        while row_follows():
            found.append(cursor.string())
        return tuple(found)

    def row(names: tuple[str, ...]) -> dict[str, int]:
        cursor.expect("{")
        values: dict[str, int] = {}
        while not cursor.accept("}"):
            start = cursor.skip()
            key = cursor.word("a field")
            if key not in names or key in values:
                raise SyntaxProblem(
                    start, f"unexpected field {key!r}; one of {', '.join(names)}, once", len(key)
                )
            cursor.expect("=")
            values[key] = cursor.integer()
            cursor.accept(",")
        missing = [name for name in names if name not in values]
        if missing:
            raise cursor.problem(f"field {missing[0]} is expected but not seen")
        return values

    def rows(names: tuple[str, ...]) -> list[dict[str, int]]:
        found: list[dict[str, int]] = []
        while row_follows():
            found.append(row(names))
        return found

    file_names = strings() if keyword("FileNames") else ()
    function_names = strings() if keyword("FunctionNames") else ()
    locations = rows(_LOCATION_FIELDS) if keyword("FileLocations") else []
    frames = rows(_FRAME_FIELDS) if keyword("StackFrames") else []
    return StackFrames(
        file_names,
        function_names,
        tuple(FileLocation(**row) for row in locations),
        tuple(StackFrame(row["file_location_id"], row["parent_frame_id"] - 1) for row in frames),
    )


@irdl_attr_definition
class StackFramesAttr(TextAttr[StackFrames]):
    """A `StackFrames`."""

    name = "hlo.stack_frames"
    read = read_stack_frames


@dataclass(frozen=True, slots=True)
class RawText:
    """Text that is carried through as it stands (`origin_recovery_table`, `debug_attributes`, …)."""

    text: str

    def __str__(self) -> str:
        return self.text


def read_raw_braces(cursor: Cursor) -> RawText:
    """Reads one `{…}` with balanced braces and strings. Raises `SyntaxProblem`."""
    return RawText(cursor.json_dictionary())


def read_raw_text(cursor: Cursor) -> RawText:
    """Reads one `{…}` as `read_raw_braces` does, or one word. Raises `SyntaxProblem`."""
    return read_raw_braces(cursor) if cursor.peek("{") else RawText(cursor.word())


@irdl_attr_definition
class RawTextAttr(TextAttr[RawText]):
    """A `RawText`."""

    name = "hlo.raw"
    read = read_raw_text
