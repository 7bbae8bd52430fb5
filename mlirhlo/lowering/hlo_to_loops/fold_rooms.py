"""Memory for what folds come to, of rows and of columns."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.lowering.builder import FunctionBuilder, Index
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory, to_register


class FoldRooms:
    """Buffers for results of folds: a row's one by one, columns' as neighbours."""

    def __init__(self, b: FunctionBuilder, neighbours: int = 0) -> None:
        """`neighbours`: lanes of the vectors that are kept; 0: elements."""
        self.b, self.neighbours = b, neighbours

    def rooms(self, types: Sequence[PrimitiveType], count: int) -> list[SSAValue]:
        """On the stack, a buffer for each part of a value of each type."""
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
        """Stores values in their rooms: whole vectors, for which there has to be room."""
        store = self.b.vector_store if self.neighbours else self.b.store
        room = iter(rooms)
        for type_, value in zip(types, values, strict=True):
            for part in value:
                store(to_memory(self.b, part, type_.real), next(room), [index])

    def fetch(
        self,
        types: Sequence[PrimitiveType],
        rooms: Sequence[SSAValue],
        index: Index,
        lanes: int | None = None,
    ) -> list[Value]:
        """Loads what `keep` stored; so many neighbours, where `lanes` is said."""
        b, room = self.b, iter(rooms)
        lanes = self.neighbours if lanes is None else lanes

        def one(type_: PrimitiveType) -> SSAValue:
            source = next(room)
            found = b.vector_load(source, [index], lanes) if lanes else b.load(source, [index])
            return to_register(b, found, type_.real)

        return [tuple(one(t) for _ in range(1 + t.is_complex)) for t in types]
