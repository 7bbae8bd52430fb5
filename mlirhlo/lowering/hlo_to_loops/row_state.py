"""What is known of rows while their code is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import SSAValue

from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.places import Coordinate

States: TypeAlias = "Sequence[Sequence[Sequence[Value]]]"
"""For each vector worked on at once, row by row, for each fold, what it carries."""


@dataclass
class Saved:
    """Where a value of a row is kept between rounds."""

    buffer: SSAValue
    is_stored: bool
    """Whether it is a result, stored anyway."""


@dataclass
class Row:
    """One row while its code is made."""

    e: Elements
    """Of vectors."""
    scalar: Elements
    place: tuple[Coordinate, ...]
    """Of the row, among the kept dimensions."""
    saved: dict[SSAValue, Saved] = field(default_factory=dict[SSAValue, Saved])
    streams: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """Results that may be written past the caches, when their buffers are aligned."""
    next: tuple[Coordinate, ...] | None = None
    """Place of the row that is worked on after it, to be brought into the cache meanwhile."""


def flat_of(values: Sequence[Value]) -> list[SSAValue]:
    """Parts of values one after the other."""
    return [p for v in values for p in v]


def packed_as(parts: Sequence[SSAValue], like: Sequence[Value]) -> list[Value]:
    """Values with as many parts as those of `like`."""
    rest = iter(parts)
    return [tuple(next(rest) for _ in v) for v in like]
