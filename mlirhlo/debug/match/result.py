"""What a comparison of two versions of a module says of every instruction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property


class Kind(Enum):
    """What happened to an instruction."""

    SAME = "same"
    RENAMED = "renamed"
    """The same but for its name."""
    MOVED = "moved"
    """The same in another computation: fused, inlined, outlined."""
    CHANGED = "changed"
    """Another opcode, shape, layout, attribute or operand."""
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Difference:
    """One instruction, by its indices in the two listings."""

    kind: Kind
    before: int | None
    """None for what is added."""
    after: int | None
    """None for what is removed."""


@dataclass(frozen=True)
class Match:
    """Every instruction of both versions once: those of `after` in their order, then the removed ones."""

    rows: Sequence[Difference]
    computations: Mapping[int, int] = field(default_factory=dict[int, int])
    """The computation of `after` that each of `before` is, where it is any."""

    @cached_property
    def counts(self) -> Mapping[Kind, int]:
        """How many there are of each kind."""
        return Counter(row.kind for row in self.rows)

    @property
    def differences(self) -> Sequence[Difference]:
        """What is not the same."""
        return [row for row in self.rows if row.kind is not Kind.SAME]
