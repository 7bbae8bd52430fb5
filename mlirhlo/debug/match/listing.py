"""One version of a module as the matcher sees it: rows of instructions with operands and calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

_LAYOUT = re.compile(r"(?<=\])\{[^{}]*\}")
_OPCODE = re.compile(r" (?P<opcode>[a-z][a-z0-9-]*)\(")
_PARENTHESIS = re.compile(r"[()]")
_MLIR_OPCODE = re.compile(r'^"?(?P<opcode>[a-z_]\w*\.[\w.]+)')
_NUMBER = re.compile(r"\bparameter\((\d+)\)")
_INDEX = re.compile(r", index=(\d+)")


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction."""

    name: str
    label: str
    """What it says, without names of instructions and computations and without metadata."""
    operands: tuple[int, ...]
    """Indices of rows."""
    computation: int
    calls: tuple[int, ...] = ()
    """Indices of computations."""


@dataclass(frozen=True)
class Listing:
    """Instructions in order, and the computations they stand in."""

    rows: Sequence[Row]
    computations: Sequence[str]
    """Names."""
    roots: Sequence[int]
    """The row that is the result, by computation; -1 for an empty one."""
    entry: int = -1
    """The entry computation; -1 where none is marked."""

    @cached_property
    def opcodes(self) -> Sequence[str]:
        """Opcode of each row."""
        known: dict[str, str] = {}
        return [_cached(row.label, known, opcode_of) for row in self.rows]

    @cached_property
    def flows(self) -> Sequence[str]:
        """Label of each row without layouts."""
        known: dict[str, str] = {}
        return [_cached(row.label, known, _without_layouts) for row in self.rows]

    @cached_property
    def types(self) -> Sequence[str]:
        """The shape of each row without layouts, and how many operands it has."""
        known: dict[str, str] = {}
        shapes = [_cached(row.label, known, _type_of) for row in self.rows]
        return [
            f"{shape} {len(row.operands)}" for shape, row in zip(shapes, self.rows, strict=True)
        ]

    @cached_property
    def users(self) -> Sequence[Sequence[int]]:
        """Rows that read each row, once each."""
        found: list[list[int]] = [[] for _ in self.rows]
        for index, row in enumerate(self.rows):
            for operand in dict.fromkeys(row.operands):
                found[operand].append(index)
        return found

    @cached_property
    def callers(self) -> Sequence[Sequence[int]]:
        """Rows that call each computation."""
        found: list[list[int]] = [[] for _ in self.computations]
        for index, row in enumerate(self.rows):
            for callee in row.calls:
                found[callee].append(index)
        return found

    def parameter_number(self, index: int) -> int:
        """The number of a parameter; -1 for other rows."""
        if self.opcodes[index] != "parameter":
            return -1
        number = _NUMBER.search(self.rows[index].label)
        return int(number[1]) if number else -1

    def tuple_index(self, index: int) -> int:
        """The index of a `get-tuple-element`; -1 for other rows."""
        if self.opcodes[index] != "get-tuple-element":
            return -1
        number = _INDEX.search(self.rows[index].label)
        return int(number[1]) if number else -1


@dataclass(slots=True)
class ListingBuilder:
    """Collects computations one after the other."""

    rows: list[Row] = field(default_factory=list[Row])
    computations: list[str] = field(default_factory=list[str])
    roots: list[int] = field(default_factory=list[int])
    entry: int = -1

    def computation(self, name: str, rows: Iterable[Row], root: int, *, is_entry: bool) -> None:
        """Adds one; `root` is an index of all rows."""
        if is_entry:
            self.entry = len(self.computations)
        self.computations.append(name)
        self.roots.append(root)
        self.rows += rows

    def build(self) -> Listing:
        """The listing."""
        return Listing(self.rows, self.computations, self.roots, self.entry)


def opcode_of(text: str) -> str:
    """The opcode of an instruction's text, `f32[4]{0} add(…)`, or the name of an MLIR operation."""
    match = _OPCODE.match(text, _end_of_shape(text)) or _MLIR_OPCODE.match(text)
    return match["opcode"] if match else "?"


def _end_of_shape(text: str) -> int:
    """Where the shape at the start of an instruction's text ends; tuples may be nested."""
    if not text.startswith("("):
        return max(text.find(" "), 0)
    depth = 0
    for bracket in _PARENTHESIS.finditer(text):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return bracket.end()
    return 0


def _type_of(label: str) -> str:
    return _without_layouts(label[: _end_of_shape(label)])


def _without_layouts(label: str) -> str:
    return _LAYOUT.sub("", label) if "]{" in label else label


def _cached(label: str, known: dict[str, str], function: Callable[[str], str]) -> str:
    found = known.get(label)
    if found is None:
        found = known[label] = function(label)
    return found
