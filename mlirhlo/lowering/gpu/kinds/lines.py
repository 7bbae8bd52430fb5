"""Elements of several arrays along lines: where they stand in buffers and in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory, to_register
from mlirhlo.lowering.hlo_to_loops.loop_kernels import store

Elements: TypeAlias = "Sequence[Value]"
"""One of each array."""


class Lines:
    """Arrays of one shape, as lines along a dimension."""

    def __init__(self, plan: Plan, shapes: Sequence[ArrayShape], dim: int) -> None:
        self.plan, self.shapes, self.dim = plan, shapes, dim
        self.sizes = shapes[0].dimensions
        self.length = self.sizes[dim]
        self.rest = (*self.sizes[:dim], *self.sizes[dim + 1 :])

    def place(
        self, b: LaunchBuilder, number: Index, line: Sequence[Index], index: Index
    ) -> tuple[Index, ...]:
        """Indices of an element of the line of a number."""
        at = (*line[: self.dim], index, *line[self.dim :])
        if self.dim == len(self.sizes) - 1:
            b.e.know_linear(at, self.sizes, b.add(b.mul(number, self.length), index))
        return at

    def store(
        self,
        b: LaunchBuilder,
        targets: Sequence[int],
        at: Sequence[Index],
        elements: Elements,
        sizes: Sequence[int],
    ) -> None:
        """Writes elements to buffers of these sizes."""
        linear = b.e.linear_of(at, sizes)
        for buffer, shape, value in zip(targets, self.shapes, elements, strict=True):
            memory = b.memory[buffer]
            if linear is None or shape.element_type.is_complex:
                store(b, memory, at, value, shape, 0, None)
            else:
                b.store(to_memory(b, value[0], shape.element_type), b.flat(memory), [linear])


class SharedElements:
    """Elements of each array in shared memory."""

    def __init__(self, b: LaunchBuilder, shapes: Sequence[ArrayShape], count: int) -> None:
        self.b = b
        self.kinds = [shape.element_type for shape in shapes]
        self.buffers = [
            [b.shared([count], memory_type(kind)) for _ in range(1 + kind.is_complex)]
            for kind in self.kinds
        ]

    def load(self, index: Index) -> list[Value]:
        """The element of each array."""
        b, at = self.b, index
        return [
            tuple(to_register(b, b.load(buffer, [at]), kind) for buffer in buffers)
            for kind, buffers in zip(self.kinds, self.buffers, strict=True)
        ]

    def store(self, index: Index, values: Sequence[Value]) -> None:
        """Stores an element of each array."""
        b, at = self.b, index
        for kind, buffers, value in zip(self.kinds, self.buffers, values, strict=True):
            for buffer, part in zip(buffers, value, strict=True):
                b.store(to_memory(b, part, kind), buffer, [at])
