"""A row for each op that kernels are written in: its operands, attributes and pretty form.

A row is written as text. The signature lists operands and results: `*name` is any number of values,
`?name` at most one; `name=rule` says what type a value has when the text does not: that of another
entry (`=lhs`), a type (`=index`), `=i1(lhs)`, the shape of `lhs` with elements i1, `=element(base)`,
or `=shuffled(v1)`.

A pretty form is text with fields in braces, which says where blanks are printed:

* `{base}` the operands of an entry, `{:base}` their types;
* `{dimension:i32}` an attribute, and how it is spelled there (`formats/mosaic/spellings.py`);
* `{dict}` all other attributes; `{fn}` the types of all operands and results;
* `(? … ?)` what is left out where the first field in it is absent or has its default;
* `(! … ?)` what is read, and printed in the dictionary.

A form that starts with `!` has code of its own (`formats/mosaic/structured.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlirhlo.dialects.effects import Effect

_ATTRIBUTE = re.compile(r"(\w+)(\?|[=~].*)?\Z")


@dataclass(frozen=True, slots=True)
class Slot:
    """An entry of the operands or results."""

    name: str
    is_variadic: bool = False
    is_optional: bool = False
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Inherent:
    """An attribute that belongs to the op."""

    name: str
    is_required: bool = False
    default: str | None = None
    """Its value where none is given, as MLIR spells it; not shown in the pretty form."""
    is_filled_in: bool = False
    """Whether the default is written down in the generic form."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of one op."""

    name: str
    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]
    attributes: tuple[Inherent, ...]
    form: str | None
    has_segments: bool
    regions: int
    is_terminator: bool
    effect: Effect = Effect.NONE

    @property
    def by_name(self) -> dict[str, Inherent]:
        """The attributes by their names."""
        return {attribute.name: attribute for attribute in self.attributes}

    def sizes(self, group: tuple[Slot, ...], count: int) -> list[int]:
        """How many of `count` values each entry has; entries of open size share evenly."""
        fixed = sum(not (s.is_variadic or s.is_optional) for s in group)
        is_open = len(group) - fixed
        rest = max(0, count - fixed)
        if is_open and rest % is_open == 0:
            return [rest // is_open if s.is_variadic or s.is_optional else 1 for s in group]
        sizes: list[int] = []
        for slot in group:
            size = 1
            if slot.is_variadic or slot.is_optional:
                size = min(rest, 1) if slot.is_optional else rest
                rest -= size
            sizes.append(size)
        return sizes


def _slots(text: str) -> tuple[Slot, ...]:
    found: list[Slot] = []
    for token in text.split(","):
        name, _, rule = token.strip().partition("=")
        if name:
            mark = name[0]
            found.append(Slot(name.lstrip("*?"), mark == "*", mark == "?", rule or None))
    return tuple(found)


def _attributes(text: str) -> tuple[Inherent, ...]:
    found: list[Inherent] = []
    for token in text.split(", ") if text else ():
        match = _ATTRIBUTE.match(token)
        assert match is not None, token
        mark = match[2] or ""
        default = mark[1:] if mark[:1] in ("=", "~") and len(mark) > 1 else None
        found.append(Inherent(match[1], not mark, default, mark.startswith("=")))
    return tuple(found)


def row(
    name: str,
    signature: str,
    form: str | None,
    attributes: str = "",
    *,
    segments: bool = False,
    regions: int = 0,
    terminator: bool = False,
    effect: Effect | None = None,
) -> Row:
    """A row. `attributes` are `name` (required), `name?`, `name=default` written down in generic form,
    `name~default` that is not, separated by a comma and a blank.
    `effect`: by default, none for what has results, and a write for what has none."""
    operands, _, results = signature.partition("->")
    return Row(
        name,
        _slots(operands),
        _slots(results),
        _attributes(attributes),
        form,
        segments,
        regions,
        terminator,
        effect or _effect(has_results=bool(results.strip()), regions=regions, ends=terminator),
    )


def _effect(*, has_results: bool, regions: int, ends: bool) -> Effect:
    """What is without results is there for what it does."""
    if regions:
        return Effect.NESTED
    return Effect.NONE if has_results or ends else Effect.WRITE
