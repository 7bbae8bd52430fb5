"""What is known of rows while their code is made, and memory for what their folds come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.lowering.builder import FunctionBuilder, Index
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory, to_register
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


class FoldRooms:
    """Buffers for results of folds."""

    def __init__(self, b: FunctionBuilder) -> None:
        self.b = b

    def rooms(self, types: Sequence[PrimitiveType], count: int) -> list[SSAValue]:
        """A buffer for each part of a value of each type."""
        return [
            self.b.scratch([count], memory_type(t)) for t in types for _ in range(1 + t.is_complex)
        ]

    def keep(
        self,
        types: Sequence[PrimitiveType],
        values: Sequence[Value],
        rooms: Sequence[SSAValue],
        index: Index,
    ) -> None:
        """Stores values in their rooms."""
        room = iter(rooms)
        for type_, value in zip(types, values, strict=True):
            for part in value:
                self.b.store(to_memory(self.b, part, type_.real), next(room), [index])

    def fetch(
        self,
        types: Sequence[PrimitiveType],
        rooms: Sequence[SSAValue],
        index: Index,
        lanes: int = 0,
    ) -> list[Value]:
        """Loads what `keep` stored; neighbours, where there are lanes."""
        b, room = self.b, iter(rooms)

        def one(type_: PrimitiveType) -> SSAValue:
            source = next(room)
            found = b.vector_load(source, [index], lanes) if lanes else b.load(source, [index])
            return to_register(b, found, type_.real)

        return [tuple(one(t) for _ in range(1 + t.is_complex)) for t in types]


def flat_of(values: Sequence[Value]) -> list[SSAValue]:
    """Parts of values one after the other."""
    return [p for v in values for p in v]


def packed_as(parts: Sequence[SSAValue], like: Sequence[Value]) -> list[Value]:
    """Values with as many parts as those of `like`."""
    rest = iter(parts)
    return [tuple(next(rest) for _ in v) for v in like]
