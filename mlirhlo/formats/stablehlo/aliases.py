"""Aliases of attributes, as MLIR gives them out: source places `#loc3`, affine maps `#map`.

Everything that will be printed is visited in the order of printing. Aliases are numbered by how deep
they are nested, then in order of first visit; a place that only ops refer to is defined at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute

from mlirhlo.dialects.stablehlo.locations import children, is_location


@dataclass(slots=True)
class _Entry:
    prefix: str | None
    """`loc`, `map`, `set`; None for attributes that have no alias themselves."""
    depth: int
    may_be_deferred: bool
    inside: tuple[Attribute, ...]


@dataclass(slots=True)
class Aliases:
    """Which attributes have an alias."""

    names: dict[Attribute, str] = field(default_factory=dict[Attribute, str])
    early: list[Attribute] = field(default_factory=list[Attribute])
    """Defined before the module."""
    late: list[Attribute] = field(default_factory=list[Attribute])
    """Defined after it."""

    def name_of(self, attribute: Attribute) -> str | None:
        """`#loc3`, or None."""
        return self.names.get(attribute) if self.names else None

    def definitions(self, spelled: Callable[[Attribute], str]) -> tuple[str, str]:
        """The definitions before and after the module; `spelled` gives an attribute's own text."""
        return (
            "".join(self._definition(a, spelled) for a in self.early),
            "".join(self._definition(a, spelled) for a in self.late),
        )

    def _definition(self, attribute: Attribute, spelled: Callable[[Attribute], str]) -> str:
        return f"{self.names[attribute]} = {spelled(attribute)}\n"


class Visitor:
    """Collects attributes in the order in which they are printed."""

    def __init__(self) -> None:
        self._entries: dict[Attribute, _Entry] = {}
        self._plain: set[int] = set()
        self._kept: list[Attribute] = []

    def visit(self, attribute: Attribute, *, may_be_deferred: bool = False) -> int:
        """Visits an attribute and what is in it; how deep aliases nest in it."""
        known = self._entries.get(attribute)
        if known is not None:
            if not may_be_deferred:
                self._hold(known)
            return known.depth
        prefix = _prefix(attribute)
        inside = _inside(attribute)
        entry = _Entry(prefix, 1 if prefix else 0, may_be_deferred, inside)
        self._entries[attribute] = entry
        deepest = 0
        for inner in inside:
            deepest = max(deepest, self.visit(inner, may_be_deferred=may_be_deferred))
        if deepest:
            entry.depth = deepest + 1
        return entry.depth

    def visit_others(self, attribute: Attribute) -> None:
        """Visits an attribute of an op or a type, of which few have aliases in them."""
        if id(attribute) in self._plain:
            return
        if isinstance(attribute, AffineMapAttr | AffineSetAttr) or is_location(attribute):
            self.visit(attribute)
        elif isinstance(attribute, ArrayAttr | DictionaryAttr):
            for inner in _inside(cast(Attribute, attribute)):
                self.visit_others(inner)
        else:
            self._plain.add(id(attribute))
            self._kept.append(attribute)

    def _hold(self, entry: _Entry) -> None:
        """Keeps an entry, and those in it, from being defined after the module."""
        if not entry.may_be_deferred:
            return
        entry.may_be_deferred = False
        for inner in entry.inside:
            self._hold(self._entries[inner])

    def aliases(self) -> Aliases:
        """The aliases of what has been visited."""
        found = [(a, e) for a, e in self._entries.items() if e.prefix is not None]
        found.sort(key=lambda pair: (pair[1].depth, pair[1].prefix))
        result = Aliases()
        counts: dict[str, int] = {}
        for attribute, entry in found:
            prefix = cast(str, entry.prefix)
            number = counts.get(prefix, 0)
            counts[prefix] = number + 1
            result.names[attribute] = f"#{prefix}{number or ''}"
            (result.late if entry.may_be_deferred else result.early).append(attribute)
        return result


def _prefix(attribute: Attribute) -> str | None:
    if is_location(attribute):
        return "loc"
    if isinstance(attribute, AffineMapAttr):
        return "map"
    return "set" if isinstance(attribute, AffineSetAttr) else None


def _inside(attribute: Attribute) -> tuple[Attribute, ...]:
    if isinstance(attribute, ArrayAttr):
        return tuple(cast("ArrayAttr[Attribute]", attribute).data)
    if isinstance(attribute, DictionaryAttr):
        entries = cast("dict[str, Attribute]", attribute.data)
        return tuple(entries[name] for name in sorted(entries))
    return children(attribute)
