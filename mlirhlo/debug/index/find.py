"""Where an opcode, a text or a source line stands in the texts of a dump."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mlirhlo.debug.index.folder import Dump, DumpedModule, DumpFile
from mlirhlo.debug.match import opcode_of
from mlirhlo.dialects.hlo.table import OPCODES

_SOURCE = re.compile(r"(?P<file>[^:\s]*\.\w+):(?P<line>\d+)")
_INSTRUCTION = re.compile(r"^[ \t]+(?:ROOT )?%?[^\s=(]+ = (?P<text>.*)$")
_TABLE = re.compile(r'^(?P<id>\d+) (?:"(?P<name>(?:[^"\\]|\\.)*)"|\{(?P<row>[^}]*)\})$')
_FIELD = re.compile(r"(\w+)=(\d+)")
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_INLINE = re.compile(r'source_file="(?P<file>[^"]*)" source_line=(?P<line>\d+)')
_TEXTS = (".txt", ".hlo", ".mlir", ".ll", ".ptx", ".pbtxt", ".textproto", ".log", "")


@dataclass(frozen=True, slots=True)
class Hit:
    """One line that was found."""

    module: str
    file: str
    line: int
    """From 1."""
    text: str


def mode_of(query: str) -> str:
    """What a query means when nobody says: `op`, `source` or `text`."""
    if query in OPCODES:
        return "op"
    return "source" if _SOURCE.fullmatch(query) else "text"


def find(dump: Dump, query: str, mode: str, *, all_files: bool = False) -> Iterator[Hit]:
    """Lines that match, module by module; of files between passes only the first that has the line.

    `mode` is `op` (opcode), `source` (`file.py:12`), `text` or `regex`. Without `all_files` only the
    module before and after optimization is looked at, or what there is instead.
    """
    for module in dump.modules:
        seen: set[str] = set()
        for file in _files(module, all_files):
            text = module.read(file).decode("utf-8", "replace")
            if "\0" in text[:4096]:
                continue
            test = _test(query, mode, text)
            for number, line in enumerate(text.split("\n"), 1):
                if test(line):
                    stripped = line.strip()
                    if file.name.kind == "boundary" and stripped in seen:
                        continue
                    seen.add(stripped)
                    yield Hit(module.label, file.path, number, stripped)


def _files(module: DumpedModule, all_files: bool) -> Sequence[DumpFile]:
    texts = [file for file in module.files if file.name.extension.removesuffix(".gz") in _TEXTS]
    if all_files:
        return texts
    ends = [file for file in texts if file.name.kind in ("before", "after")]
    modules = [file for file in texts if file.name.is_text]
    return ends or ([modules[0], modules[-1]] if len(modules) > 1 else modules or texts)


def _test(query: str, mode: str, text: str) -> Callable[[str], bool]:
    match mode:
        case "op":
            return lambda line: (
                (m := _INSTRUCTION.match(line)) is not None and opcode_of(m["text"]) == query
            )
        case "source":
            return _source_test(query, text)
        case "regex":
            pattern = re.compile(query)
            return lambda line: pattern.search(line) is not None
        case _:
            return lambda line: query in line


def _source_test(query: str, text: str) -> Callable[[str], bool]:
    """Whether an instruction's innermost frame, or its inline metadata, is `file:line`."""
    name, _, number = query.rpartition(":")
    frames = _frames_at(text, name, int(number))

    def test(line: str) -> bool:
        if (frame := _FRAME.search(line)) is not None:
            return int(frame[1]) in frames
        inline = _INLINE.search(line)
        return inline is not None and inline["line"] == number and _is_file(inline["file"], name)

    return test


def _is_file(found: str, wanted: str) -> bool:
    return found == wanted or found.endswith("/" + wanted)


def _frames_at(text: str, file: str, line: int) -> set[int]:
    """Ids of the stack frames at a place, from the tables at the head of a text."""
    names: set[int] = set()
    places: set[int] = set()
    frames: set[int] = set()
    table = ""
    for row in text.split("\n"):
        if row in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
            table = row
            continue
        match = _TABLE.match(row)
        if match is None:
            if row and table == "StackFrames":
                break
            continue
        fields = {key: int(value) for key, value in _FIELD.findall(match["row"] or "")}
        number = int(match["id"])
        if table == "FileNames" and _is_file(match["name"] or "", file):
            names.add(number)
        elif (
            table == "FileLocations"
            and fields.get("file_name_id") in names
            and fields.get("line") == line
        ):
            places.add(number)
        elif table == "StackFrames" and fields.get("file_location_id") in places:
            frames.add(number)
    return frames
