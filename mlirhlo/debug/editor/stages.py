"""Files of a dump folder as stages of one module: which file comes before or after, and where an instruction is there.

In LSP's terms, the declaration of an instruction is where it stands in the stage before, its implementation where it
stands in the stage after.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum

from mlirhlo.debug.editor.document import Document, Span
from mlirhlo.debug.index.folder import DumpFile, read_folder
from mlirhlo.debug.index.names import parse_name
from mlirhlo.debug.match.engine import match
from mlirhlo.debug.match.texts import instruction_lines, listing_of_text


class Side(Enum):
    """Which neighbour of a stage."""

    BEFORE = -1
    AFTER = 1


@dataclass(frozen=True, slots=True)
class Stage:
    """A text that was recorded while a module was compiled."""

    path: str
    title: str
    """The passes between which it was written."""


@dataclass(slots=True)
class Stages:
    """The stages of the files in one folder, read again when a file came or went."""

    _folder: str = ""
    _modified: int = 0
    _modules: list[list[Stage]] = field(default_factory=list[list[Stage]])

    def beside(self, path: str, side: Side) -> Stage | None:
        """The stage before or after that of the file at `path`; None for the first, the last, and what is no dump."""
        name = parse_name(os.path.basename(path))
        if name.module_id is None and name.kind != "kernel":
            return None
        for stages in self._read(os.path.dirname(path)):
            names = [os.path.basename(stage.path) for stage in stages]
            if os.path.basename(path) in names:
                at = names.index(os.path.basename(path)) + side.value
                return stages[at] if 0 <= at < len(stages) else None
        return None

    def _read(self, folder: str) -> list[list[Stage]]:
        try:
            modified = os.stat(folder).st_mtime_ns
        except OSError:
            return []
        if (folder, modified) != (self._folder, self._modified):
            self._folder, self._modified = folder, modified
            self._modules = [
                [_stage(folder, file) for files in module.stages for file in files[:1]]
                for module in read_folder(folder, recursive=False).modules
            ]
            self._modules = [[s for s in stages if s.path] for stages in self._modules]
        return self._modules


def _stage(folder: str, file: DumpFile) -> Stage:
    """The stage of a file; without a path where an editor cannot show it."""
    is_shown = file.name.is_text and not file.name.extension.endswith(".gz")
    after, before = file.name.after, file.name.before
    title = " ".join(filter(None, (after and f"after {after}", before and f"before {before}")))
    return Stage(os.path.join(folder, file.path) if is_shown else "", title or file.name.suffix)


def counterpart(
    document: Document, line: int, column: int, stage: Stage, side: Side
) -> Span | None:
    """The name, in the text of `stage`, of the instruction that is defined or named at a position of the document.

    Instructions are matched by structure (`debug.match`), so that one that was renamed, fused or inlined is found, too.
    None where no instruction is named, where it is not in the other stage, and where that cannot be read.
    """
    block = document.block_at(line)
    word = document.word_at(line, column)
    if block is None or word is None or word[0] not in block.names:
        return None
    try:
        with open(stage.path, encoding="utf-8", errors="surrogateescape") as file:
            other = file.read()
    except OSError:
        return None
    lines, others = instruction_lines(document.text), instruction_lines(other)
    row = lines.index(block.start + block.names[word[0]])
    texts = (other, document.text) if side is Side.BEFORE else (document.text, other)
    pairs = match(*map(listing_of_text, texts), thorough=True).rows
    for pair in pairs:
        mine, theirs = (
            (pair.after, pair.before) if side is Side.BEFORE else (pair.before, pair.after)
        )
        if mine == row:
            return None if theirs is None else _name_in(other, others[theirs])
    return None


def _name_in(text: str, line: int) -> Span:
    """The name at the start of an instruction's line."""
    shown = text.split("\n")[line]
    head = shown[: shown.index(" = ")]
    start = len(head) - len(head.split()[-1])
    return Span(line, start, len(head))
