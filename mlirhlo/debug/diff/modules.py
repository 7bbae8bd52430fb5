"""Two modules, instruction by instruction: unchanged, moved, changed attribute by attribute, added, removed.

Instructions are paired by `debug.match`: by what they compute, then by their surroundings, then by their names. Other
names, numbers and orders of what does not depend on each other are no change; metadata is none either.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlirhlo.debug.match import (
    Difference,
    Interner,
    Kind,
    Listing,
    Match,
    Structure,
    listing_of_text,
    match,
)
from mlirhlo.debug.trials.conditions import load_module
from mlirhlo.debug.trials.texts import module_text
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.module import HEADER_PREFIX, HloModule
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, without_layout
from mlirhlo.dialects.hlo.table import PROVENANCE

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

KINDS = ("unchanged", "moved", "changed", "added", "removed")


@dataclass(frozen=True, slots=True)
class Change:
    """One attribute of an instruction, or of the module's header."""

    key: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.key}: {self.before or 'none'} -> {self.after or 'none'}"


@dataclass(frozen=True, slots=True)
class InstructionDiff:
    """One instruction of either module."""

    kind: str
    """Of `KINDS`."""
    before: str
    """Its text in the first module, without metadata; empty for an added one."""
    after: str
    computation_before: str
    computation_after: str
    changes: tuple[Change, ...] = ()
    name_before: str = ""
    name_after: str = ""


@dataclass(frozen=True, slots=True)
class ModuleDiff:
    """All instructions of both modules."""

    header: tuple[Change, ...]
    instructions: tuple[InstructionDiff, ...]
    """Those of the second module in order, each removed one where it was."""
    order: tuple[str, ...] = field(default=(), repr=False)
    """Computations as they are reported."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Instructions by kind."""
        counts = Counter(each.kind for each in self.instructions)
        return {kind: counts[kind] for kind in KINDS}

    @property
    def is_same(self) -> bool:
        """Whether nothing is different."""
        return not self.header and all(each.kind == "unchanged" for each in self.instructions)


def diff_modules(
    before: str, after: str, names: tuple[str, str] = ("before.hlo", "after.hlo")
) -> ModuleDiff:
    """Compares the texts of two modules. Raises `HloError` for what cannot be read."""
    with paused_gc():
        texts = zip((before, after), names, strict=True)
        modules = [load_module(text, name) for text, name in texts]
        interner = Interner()
        left, right = (_Side.of(module, interner) for module in modules)
        found = match(left.structure, right.structure, thorough=True)
        rows = tuple(_Differ(left, right, found).rows())
        return ModuleDiff(tuple(_header(*modules)), rows, tuple(right.listing.computations))


@dataclass(frozen=True, slots=True)
class _Side:
    """One module: its listing, and each row's instruction and text."""

    listing: Listing
    structure: Structure
    ops: Sequence[Instruction]
    texts: Sequence[str]

    @staticmethod
    def of(module: ModuleOp, interner: Interner) -> _Side:
        for op in HloModule(module).instructions:
            op.properties.pop("metadata", None)
        HloModule(module).set("stack_frames", None)
        text = module_text(module)
        listing = listing_of_text(text)
        by_name = {
            (c.computation_name, op.instruction_name): op
            for c in HloModule(load_module(text, "printed.hlo")).computations
            for op in c.instructions
        }
        ops = [by_name[listing.computations[row.computation], row.name] for row in listing.rows]
        lines = defaultdict[str, deque[str]](deque)  # a name may be one of many computations
        for line in text.splitlines():
            name, equals, rest = line.strip().removeprefix("ROOT ").partition(" = ")
            if equals and line.startswith(" "):
                lines[name.removeprefix("%")].append(rest)
        texts = [f"%{row.name} = {lines[row.name].popleft()}" for row in listing.rows]
        return _Side(listing, Structure(listing, interner), ops, texts)


class _Differ:
    """Turns pairs of rows into differences."""

    def __init__(self, left: _Side, right: _Side, found: Match) -> None:
        self.left, self.right, self.match = left, right, found
        self.partner = {
            row.before: row.after
            for row in found.rows
            if row.before is not None and row.after is not None
        }
        self.taken = frozenset(found.computations.values())

    def rows(self) -> Iterator[InstructionDiff]:
        """Every instruction once, each removed one behind what stood before it."""
        removed: dict[int, list[Difference]] = {}
        anchors = tuple(self._anchors())
        for row in self.match.rows:
            if row.kind is Kind.REMOVED:
                removed.setdefault(anchors[row.before or 0], []).append(row)
        yield from map(self._one, removed.pop(-1, ()))
        for row in self.match.rows:
            if row.after is not None:
                yield self._one(row)
                yield from map(self._one, removed.pop(row.after, ()))

    def _anchors(self) -> Iterator[int]:
        """For each row of the first module the row of the second behind which it is told if it was removed: that of
        the last one ahead of it in its computation that is in both; -1 for the start."""
        computation, anchor = -1, -1
        for index, row in enumerate(self.left.listing.rows):
            if row.computation != computation:
                computation, anchor = row.computation, -1
            yield anchor
            anchor = self.partner.get(index, anchor)

    def _one(self, row: Difference) -> InstructionDiff:
        left, right = self.left.listing, self.right.listing
        old, new = row.before, row.after
        names = ["" if k is None else s.rows[k].name for s, k in ((left, old), (right, new))]
        where = [
            "" if k is None else s.computations[s.rows[k].computation]
            for s, k in ((left, old), (right, new))
        ]
        texts = ["" if k is None else s.texts[k] for s, k in ((self.left, old), (self.right, new))]
        changes = () if old is None or new is None else tuple(self._changes(old, new))
        kind = row.kind.value
        if old is not None and new is not None:
            is_moved = row.kind is Kind.MOVED or (
                self.match.computations.get(left.rows[old].computation)
                != right.rows[new].computation
            )
            kind = "changed" if changes else "moved" if is_moved else "unchanged"
        return InstructionDiff(
            kind, texts[0], texts[1], where[0], where[1], changes, names[0], names[1]
        )

    def _changes(self, old: int, new: int) -> Iterator[Change]:
        a, b = self.left.ops[old], self.right.ops[new]
        if a.opcode.name != b.opcode.name:
            yield Change("opcode", a.opcode.name, b.opcode.name)
        yield from _shapes(a, b)
        yield from self._operands(old, new)
        keys = dict.fromkeys((*a.properties, *b.properties))
        called = set(type(a).calling_keys) | set(type(b).calling_keys)
        for key in keys:
            if key in PROVENANCE or key == CONTROL_PREDECESSORS or key in called:
                continue
            one, other = a.properties.get(key), b.properties.get(key)
            if one != other:
                yield Change(key, _value(one), _value(other))
        yield from self._calls(old, new)

    def _operands(self, old: int, new: int) -> Iterator[Change]:
        left, right = self.left.listing.rows[old], self.right.listing.rows[new]
        a, b = left.operands, right.operands
        same = len(a) == len(b) and all(self._is_partner(x, y) for x, y in zip(a, b, strict=False))
        if not same:
            yield Change(
                "operands",
                ", ".join(f"%{self.left.listing.rows[k].name}" for k in a),
                ", ".join(f"%{self.right.listing.rows[k].name}" for k in b),
            )

    def _is_partner(self, old: int, new: int) -> bool:
        if self.partner.get(old) == new:
            return True
        values = self.left.structure.values[old], self.right.structure.values[new]
        return self.partner.get(values[0]) == values[1]

    def _calls(self, old: int, new: int) -> Iterator[Change]:
        """Called computations that are others: both are in both modules, and not as each other."""
        left, right = self.left.listing, self.right.listing
        known, taken = self.match.computations, self.taken
        for x, y in zip(left.rows[old].calls, right.rows[new].calls, strict=False):
            if known.get(x) != y and (x in known or y in taken):
                yield Change("calls", f"%{left.computations[x]}", f"%{right.computations[y]}")


def _shapes(a: Instruction, b: Instruction) -> Iterator[Change]:
    x, y = a.shape, b.shape
    if x == y:
        return
    if without_layout(x) != without_layout(y):
        yield Change("shape", x.to_string(layout=False), y.to_string(layout=False))
    elif isinstance(x, ArrayShape) and isinstance(y, ArrayShape):
        yield Change("layout", str(x.layout or "default"), str(y.layout or "default"))
    else:
        yield Change("layout", str(x), str(y))


def _value(attribute: object) -> str:
    if attribute is None:
        return ""
    data = getattr(attribute, "data", None)
    if data is not None and not isinstance(data, tuple | bytes):
        return str(data)
    return str(attribute)


def _header(a: ModuleOp, b: ModuleOp) -> Iterator[Change]:
    for key in dict.fromkeys((*a.attributes, *b.attributes)):
        if key.startswith(HEADER_PREFIX) and a.attributes.get(key) != b.attributes.get(key):
            one, other = (_value(m.attributes.get(key)) for m in (a, b))
            yield Change(key.removeprefix(HEADER_PREFIX), one, other)
