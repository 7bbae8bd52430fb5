"""Rows of arrays, which are sorted or searched one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import prod

from xdsl.ir import Attribute, SSAValue

from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.hlo_to_loops.array_kernel import chunk_of, in_chunks
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.loops.kernel import LoopKernel, array, is_minor

_ELEMENT_NS = 20.0
"""Time that ordering takes for an element, about."""


def rows_in_chunk(first: SSAValue, dim: int, buffers: Sequence[tuple[int, Attribute]]) -> int:
    """How many rows along a dimension one part of a parallel loop takes, each part with `buffers`."""
    sizes = array(first).dimensions
    return max(1, chunk_of(prod(n for d, n in enumerate(sizes) if d != dim), buffers))


class Rows:
    """Rows of arrays of one shape along a dimension."""

    def __init__(self, k: LoopKernel, first: SSAValue, dim: int) -> None:
        """`first`: an array of the shape."""
        self.k, self.b, self.dim = k, k.b, dim
        sizes = array(first).dimensions
        self.length = sizes[dim]
        self.outer = [n for d, n in enumerate(sizes) if d != dim]
        self.count = prod(self.outer)

    def each(
        self, buffers: Sequence[tuple[int, Attribute]], chunk: int
    ) -> AbstractContextManager[tuple[list[Coordinate], list[SSAValue]]]:
        """A loop over all rows, `chunk` of them in each part of a parallel loop: gives the indices of a row but for
        `dim`, and buffers of these lengths and element types."""
        work = self.count * self.length * _ELEMENT_NS
        return in_chunks(self.b, self.outer, buffers, chunk, work)

    def at(self, row: Sequence[Coordinate], c: Coordinate) -> list[Coordinate]:
        """A place in a row."""
        return [*row[: self.dim], c, *row[self.dim :]]

    def vectors(
        self, length: int, body: Callable[[Index, int, SSAValue | None], None], *, lanes: int
    ) -> None:
        """`body(at, lanes, mask)` for all of 0…length."""
        b = self.b
        if not lanes:
            with b.loop(0, length) as at:
                body(at, 0, None)
            return
        whole = length - length % lanes
        if whole:
            with b.loop(0, whole, lanes) as at:
                body(at, lanes, None)
        if whole != length:
            body(whole, lanes, b.mask(b.index(length - whole), lanes))

    def give(
        self,
        row: Sequence[Coordinate],
        number: Callable[[Index, int, SSAValue | None], SSAValue],
        results: Sequence[tuple[SSAValue, SSAValue]],
        *,
        lanes: int,
    ) -> None:
        """Writes elements by their indices: `results` pairs operands with the results that they go to."""
        are_minor = all(is_minor(to, self.dim) for _, to in results)

        def move(at: Index, lanes: int, mask: SSAValue | None) -> None:
            index = number(at, lanes, mask)
            source = Coordinate(0, 0, index) if lanes else Coordinate(index)
            places = Places(self.b, lanes, mask)
            for operand, to in results:
                value = self.k.read(operand, self.at(row, source), places)
                target = self.at(row, Coordinate(at, 1 if lanes else 0))
                self.k.write(to, target, value, lanes, mask)

        self.vectors(self.length, move, lanes=lanes if are_minor else 0)
