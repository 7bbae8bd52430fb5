"""HLO text as it is edited: lines with what stands in them, computations, diagnostics that follow edits.

After an edit the lines that changed are read anew, and the instructions on them, with those that use them, are checked:
each in a small module of its own, whose parameters are its operands. So an edit costs the same in a module of any size.
The check of the whole module (`check_all`) is for the time when nobody types.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.debug.trials.texts import is_hlo, read_module
from mlirhlo.diagnostics import Diagnostic, HloError, Place
from mlirhlo.dialects.hlo.table import OPCODES, STARTED, opcodes

_INSTRUCTION = re.compile(
    r"^\s*(?P<root>ROOT\s+)?(?P<name>%?[\w.-]+)\s*=\s*(?P<shape>\((?:[^()]|\([^()]*\))*\)|[a-z]\w*\[[^\]]*\]\S*|token\[\]|opaque\[\])\s+"
    r"(?P<opcode>[a-z][\w-]*)\("
)
_HEADER = re.compile(r"^\s*(?P<entry>ENTRY\s+)?(?P<name>%?[\w.-]+)\s*(?:\(.*\)\s*->\s*\S.*)?\{\s*$")
_NAME = re.compile(r"%?[A-Za-z_][\w.-]*")
_CALLED = re.compile(
    r"\b(?:to_apply|calls|body|condition|select|scatter|true_computation|false_computation)=(%?[\w.-]+)"
    r"|\b(?:branch_computations|called_computations|calls)=\{([^}]*)\}"
)
_SOURCE = re.compile(r'source_file="(?P<file>[^"]*)"(?:\s+source_line=(?P<line>\d+))?')
_NOT_ALONE = (
    opcodes(
        lambda row: (
            (row.transfers and row.name in STARTED) or row.name.endswith(("-done", "-update"))
        )
    )
    | {"after-all", "domain"}
    | {"parameter"}
)
_MLIR = re.compile(r'\s*(?:"?(?:builtin\.)?module\b|"?[a-z_]\w*\.[a-z]|[#!]\w+ *=|\{-#)')
"""How MLIR text begins, behind comments and empty lines."""
_CHUNK = 1024
_SMALL = 60
"""Lines of a computation that is copied into the module of an instruction that calls it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A name in a line: columns from 0."""

    line: int
    start: int
    end: int


@dataclass(eq=False)
class Line:
    """One line of a text."""

    text: str

    @cached_property
    def match(self) -> re.Match[str] | None:
        """The instruction on it."""
        return _INSTRUCTION.match(self.text)

    @cached_property
    def header(self) -> re.Match[str] | None:
        """The computation that begins on it."""
        if "=" in self.text.partition("(")[0] or not self.text.rstrip().endswith("{"):
            return None
        found = _HEADER.match(self.text)
        return None if found is None or found["name"] == "HloModule" else found

    @property
    def name(self) -> str:
        """Of the instruction, without `%`."""
        return self.match["name"].lstrip("%") if self.match else ""

    @cached_property
    def called(self) -> tuple[str, ...]:
        """Names of the computations that it calls."""
        found = [m[1] or m[2] for m in _CALLED.finditer(self.text)]
        return tuple(
            n.strip().lstrip("%") for names in found for n in names.split(",") if n.strip()
        )

    @cached_property
    def operands(self) -> tuple[tuple[str, int], ...]:
        """Names between the parentheses behind the opcode, with their columns."""
        if self.match is None or self.match["opcode"] in ("parameter", "constant", "iota"):
            return ()
        start = self.match.end()
        depth, end = 1, start
        while end < len(self.text) and depth:
            depth += {"(": 1, ")": -1}.get(self.text[end], 0)
            end += 1
        inner = re.sub(r"/\*.*?\*/", lambda m: " " * len(m[0]), self.text[start : end - 1])
        return tuple(
            (m[0].lstrip("%"), start + m.start())
            for m in re.finditer(r"%?[\w.-]+(?=\s*(?:,|$))", inner)
        )


@dataclass(eq=False)
class Block:
    """A computation: from its header to the closing brace."""

    first: Line
    lines: Sequence[Line]
    """With the header and the brace."""
    start: int = 0
    """Line of the header, from 0."""

    @property
    def name(self) -> str:
        """Without `%`."""
        assert self.first.header is not None
        return self.first.header["name"].lstrip("%")

    @property
    def is_entry(self) -> bool:
        """Whether it is the entry computation."""
        return self.first.header is not None and bool(self.first.header["entry"])

    @cached_property
    def names(self) -> dict[str, int]:
        """Lines of instructions below the header, by name."""
        return {line.name: at for at, line in enumerate(self.lines) if line.match}

    @cached_property
    def users(self) -> dict[str, list[int]]:
        """Lines that read an instruction, by its name."""
        found: dict[str, list[int]] = {}
        for at, line in enumerate(self.lines):
            for name in dict.fromkeys(name for name, _ in line.operands):
                found.setdefault(name, []).append(at)
        return found

    def carry_over(self, before: Block, at: int, gone: Sequence[Line]) -> None:
        """Takes names and users of what the computation was before lines from `at` on were exchanged."""
        names, users = before.names, before.users
        for offset, (old, new) in enumerate(zip(gone, self.lines[at:], strict=False)):
            if names.get(old.name) == at + offset:
                del names[old.name]
            for name in dict.fromkeys(name for name, _ in old.operands):
                users[name].remove(at + offset)
            if new.match:
                names[new.name] = at + offset
            for name in dict.fromkeys(name for name, _ in new.operands):
                users.setdefault(name, []).append(at + offset)
        self.names, self.users = names, users

    def instructions(self) -> Iterator[tuple[int, Line]]:
        """Line numbers in the text, and lines."""
        return ((self.start + at, line) for at, line in enumerate(self.lines) if line.match)


@dataclass(slots=True)
class Document:
    """A text of HLO."""

    file: str
    lines: list[Line] = field(default_factory=list[Line])
    blocks: list[Block] = field(default_factory=list[Block])
    is_mlir: bool = False
    """Whether the text is MLIR, which `debug.editor.mlir` answers about."""
    _texts: list[str] = field(default_factory=list[str])
    _found: dict[Line, tuple[Diagnostic, ...]] = field(
        default_factory=dict[Line, tuple[Diagnostic, ...]]
    )

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n".join(line.text for line in self.lines)

    def update(self, text: str) -> list[int]:
        """Takes a new text, and checks what changed; the numbers of lines that were checked."""
        new, old, texts = text.split("\n"), self.lines, self._texts
        start = next((x for x in new if x.strip() and not x.lstrip().startswith("//")), "")
        self.is_mlir = bool(_MLIR.match(start)) and not start.startswith("HloModule")
        same = _common(texts, new)
        tail = _common(texts[same:][::-1], new[same:][::-1])
        self._texts = new
        changed = [Line(text) for text in new[same : len(new) - tail]]
        gone = old[same : len(old) - tail]
        for line in gone:
            self._found.pop(line, None)
        self.lines[same : len(old) - tail] = changed
        if not self._replaced(same, gone, changed):
            self._split()
        if not gone and not changed:
            return []
        if len(changed) == len(new):
            return []  # a new text: `check_all` looks at it
        return self._check_changed(range(same, same + max(len(changed), 1)))

    def _replaced(self, start: int, gone: Sequence[Line], changed: Sequence[Line]) -> bool:
        """Follows a change inside of one computation; False for one that begins or ends computations."""
        block = self.block_at(start)
        lines = (*gone, *changed)
        if block is None or start == block.start or any(_is_structure(line.text) for line in lines):
            return False
        if start + len(gone) >= block.start + len(block.lines):
            return False
        at = start - block.start
        new = [*block.lines[:at], *changed, *block.lines[at + len(gone) :]]
        number = self.blocks.index(block)
        self.blocks[number] = Block(block.first, new, block.start)
        if len(gone) == len(changed):
            self.blocks[number].carry_over(block, at, gone)
        if shift := len(changed) - len(gone):
            for other in self.blocks[number + 1 :]:
                other.start += shift
        return True

    def _split(self) -> None:
        """Computations; one whose lines are the same objects keeps what is known of it."""
        known = {block.first: block for block in self.blocks}
        blocks: list[Block] = []
        start = -1
        for at, line in enumerate(() if self.is_mlir else self.lines):
            text = line.text
            if start < 0 and text.endswith("{") and line.header is not None:
                start = at
            elif start >= 0 and text.startswith("}"):
                blocks.append(self._block(start, at + 1, known))
                start = -1
        if start >= 0:
            blocks.append(self._block(start, len(self.lines), known))
        self.blocks = blocks

    def _block(self, start: int, end: int, known: dict[Line, Block]) -> Block:
        lines = self.lines[start:end]
        block = known.get(lines[0])
        if block is None or block.lines != lines:  # lines are equal when they are the same
            block = Block(lines[0], lines)
        block.start = start
        return block

    # ------------------------------------------------------------ looking things up

    def block_at(self, line: int) -> Block | None:
        """The computation around a line."""
        at = bisect_right(self.blocks, line, key=lambda b: b.start) - 1
        block = self.blocks[at] if at >= 0 else None
        return block if block is not None and line < block.start + len(block.lines) else None

    def computation(self, name: str) -> Block | None:
        """By name."""
        return next((b for b in self.blocks if b.name == name), None)

    def word_at(self, line: int, column: int) -> tuple[str, Span] | None:
        """The name at a position, without `%`."""
        if line >= len(self.lines):
            return None
        for match in _NAME.finditer(self.lines[line].text):
            if match.start() <= column <= match.end():
                return match[0].lstrip("%"), Span(line, match.start(), match.end())
        return None

    # ------------------------------------------------------------ diagnostics

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """All that is known, in the order of lines."""
        at = sorted(
            ((self.lines.index(line), line) for line in self._found), key=lambda pair: pair[0]
        )
        return [_moved(d, self.file, k + 1) for k, line in at for d in self._found[line]]

    def check_all(self) -> None:
        """Reads and verifies the whole text."""
        self.take_diagnostics(whole_diagnostics(self.text, self.file))

    def take_diagnostics(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Takes what is wrong with the text as a whole (`whole_diagnostics`)."""
        for block in self.blocks:
            _ = block.names, block.users  # what the first edit would have to wait for
        self._found = {}
        for diagnostic in diagnostics:
            at = diagnostic.place.line - 1 if diagnostic.place is not None else 0
            line = self.lines[min(max(at, 0), len(self.lines) - 1)]
            self._found[line] = (*self._found.get(line, ()), diagnostic)

    def _check_changed(self, numbers: range) -> list[int]:
        """Checks instructions on lines, and those that use them."""
        wanted: dict[int, None] = {}
        for number in numbers:
            block = self.block_at(number)
            if block is None or number >= len(self.lines):
                continue
            wanted[number] = None
            for user in block.users.get(self.lines[number].name, ()):
                wanted[block.start + user] = None
        for number in wanted:
            block = self.block_at(number)
            line = self.lines[number]
            if block is not None and line.text.strip() not in ("", "}") and line is not block.first:
                self._found[line] = tuple(self._check_line(block, line))
                if not self._found[line]:
                    del self._found[line]
        return list(wanted)

    def _check_line(self, block: Block, line: Line) -> list[Diagnostic]:
        missing = [
            _undefined(self.file, name, column, line, block)
            for name, column in line.operands
            if name not in block.names
        ]
        if missing:
            return missing
        if line.match is not None and line.match["opcode"] in _NOT_ALONE:
            return []  # these mean something only beside others: the check of the whole has them
        rows = ["HloModule line", ""]
        for name in line.called:
            callee = self.computation(name)
            if callee is None:
                return []
            if len(callee.lines) <= _SMALL and not any(x.called for x in callee.lines):
                rows += [row.text.replace("ENTRY ", "") for row in callee.lines]
            else:
                rows += _signature(callee)
        rows.append("ENTRY entry.of.line {")
        for number, name in enumerate(dict.fromkeys(name for name, _ in line.operands)):
            defined = block.lines[block.names[name]].match
            assert defined is not None
            rows.append(f"  {defined['name']} = {defined['shape']} parameter({number})")
        rows += [line.text, "}"]
        at = len(rows) - 1
        found = whole_diagnostics("\n".join(rows) + "\n", self.file)
        return [d for d in found if d.place is not None and d.place.line == at]


def _is_structure(text: str) -> bool:
    """Whether a line may begin or end a computation."""
    return text.startswith("}") or text.rstrip().endswith("{") or "ENTRY" in text


def _signature(block: Block) -> list[str]:
    """A computation of the same parameters and result that computes nothing."""
    rows = [block.first.text.replace("ENTRY ", "")]
    names: list[str] = []
    shape = "token[]"
    for line in block.lines:
        if line.match is not None and line.match["opcode"] == "parameter":
            rows.append(line.text.replace("ROOT ", ""))
            names.append(line.match["name"])
        if line.match is not None and line.match["root"]:
            shape = line.match["shape"]
    target = 'custom_call_target="computation"'
    return [
        *rows,
        f"  ROOT %root.of.signature = {shape} custom-call({', '.join(names)}), {target}",
        "}",
    ]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many texts are the same from the start on."""
    limit, same = min(len(one), len(other)), 0
    while same < limit and one[same : same + _CHUNK] == other[same : same + _CHUNK]:
        same = min(same + _CHUNK, limit)
    while same < limit and one[same] == other[same]:
        same += 1
    return same


def whole_diagnostics(text: str, file: str) -> list[Diagnostic]:
    """What is wrong with a text of any format."""
    try:
        module = read_module(text.encode("utf-8", "surrogateescape"), file)
        return verify_module(module, file=file) if is_hlo(module) else []
    except HloError as problem:
        return list(problem.diagnostics)


def _undefined(file: str, name: str, column: int, line: Line, block: Block) -> Diagnostic:
    near = get_close_matches(name, block.names, n=1)
    hint = f"did you mean '%{near[0]}'?" if near else None
    place = Place(file, 1, column + 1, len(name) + (line.text[column] == "%"), line.text)
    return Diagnostic(
        "HLO0006", f"no instruction of this computation is named '%{name}'", place, help=hint
    )


def _moved(diagnostic: Diagnostic, file: str, line: int) -> Diagnostic:
    """A diagnostic at the line where its text is now."""
    from dataclasses import replace

    place = diagnostic.place or Place(file)
    return replace(diagnostic, place=replace(place, line=line))


def source_of(text: str) -> tuple[str, int] | None:
    """File and line of the metadata in a line."""
    found = _SOURCE.search(text)
    return None if found is None else (found["file"], int(found["line"] or 1))


OPCODE_NAMES = tuple(sorted(OPCODES))
