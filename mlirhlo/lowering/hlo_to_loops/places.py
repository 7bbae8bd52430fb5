"""Where an element stands: indices of all lanes of a vector at once.

A `Coordinate` is one index of an array for every lane: `base + stride * lane` as long as that holds
through slices, transposes and broadcasts, else a vector of indices. Loads look at it to tell
neighbours (one vector load), the same element (a splat), a constant distance or anything (gathers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, IntegerType, MemRefType, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.x86 import PermuteOp
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index, vector_of
from mlirhlo.lowering.hlo_to_loops.elements import physical_dimensions, physical_order, to_register
from mlirhlo.lowering.target import current

_NEAR = 4
"""Elements so far apart are picked out of all that is between them."""


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One index, for all lanes."""

    base: Index
    """That of the first lane."""
    stride: int = 0
    """From a lane to the next one."""
    lanes: SSAValue | None = None
    """`vector<lanes x index>`: all of them; then `base` and `stride` say nothing."""
    divisible: int = 1
    """A number that divides `base`."""
    within: tuple[int, int] | None = None
    """A range that it does not leave, in any lane whose mask is set."""

    @property
    def uniform(self) -> bool:
        """Whether all lanes have the same index."""
        return self.lanes is None and self.stride == 0


def ranged(place: Sequence[Coordinate], sizes: Sequence[int]) -> list[Coordinate]:
    """A place in an array of these sizes, which it does not leave."""
    return [replace(c, within=(0, size)) for c, size in zip(place, sizes, strict=True)]


class Places:
    """Arithmetic on coordinates within one loop body of `lanes` lanes (0: no vectors)."""

    def __init__(self, b: FunctionBuilder, lanes: int, mask: SSAValue | None = None) -> None:
        self.b, self.lanes, self.mask = b, lanes, mask

    def vector(self, c: Coordinate) -> SSAValue:
        """The indices of all lanes."""
        b = self.b
        if c.lanes is not None:
            return c.lanes
        value = b.broadcast(b.index(c.base), self.lanes)
        if c.stride == 0:
            return value
        steps = b.steps(self.lanes)
        if c.stride != 1:
            steps = b.muli(steps, b.constant(c.stride, steps.type))
        return b.addi(value, steps)

    def shifted(self, c: Coordinate, by: Index) -> Coordinate:
        """`c + by`."""
        b = self.b
        if c.lanes is not None:
            return Coordinate(0, 0, b.addi(c.lanes, b.broadcast(b.index(by), self.lanes)))
        if not isinstance(by, int):
            return Coordinate(b.add(c.base, by), c.stride)
        divisible = c.divisible if by % c.divisible == 0 else 1
        within = None if c.within is None else (c.within[0] + by, c.within[1] + by)
        return Coordinate(b.add(c.base, by), c.stride, None, divisible, within)

    def scaled(self, c: Coordinate, factor: int) -> Coordinate:
        """`c * factor`."""
        if factor == 1:
            return c
        b = self.b
        if c.lanes is not None:
            lanes = b.muli(c.lanes, b.constant(factor, c.lanes.type))
            return Coordinate(0, 0, lanes)
        return Coordinate(
            b.mul(c.base, factor), c.stride * factor, None, c.divisible * abs(factor) or 1
        )

    def sum(self, c: Coordinate, d: Coordinate) -> Coordinate:
        """`c + d`."""
        b = self.b
        if c.lanes is not None or d.lanes is not None:
            if d == Coordinate(0):
                return c
            return Coordinate(0, 0, b.addi(self.vector(c), self.vector(d)))
        from math import gcd

        return Coordinate(
            b.add(c.base, d.base), c.stride + d.stride, None, gcd(c.divisible, d.divisible)
        )

    def reversed(self, c: Coordinate, size: int) -> Coordinate:
        """`size - 1 - c`."""
        b = self.b
        if c.lanes is not None:
            return Coordinate(0, 0, b.subi(b.constant(size - 1, c.lanes.type), c.lanes))
        return Coordinate(b.sub(size - 1, c.base), -c.stride)

    def divided(self, c: Coordinate, by: int) -> tuple[Coordinate, Coordinate]:
        """Quotient and remainder of indices that are not negative."""
        if by == 1:
            return c, Coordinate(0)
        b = self.b
        if c.uniform:
            return Coordinate(b.div(c.base, by)), Coordinate(b.rem(c.base, by))
        span = c.stride * (self.lanes - 1)
        if c.lanes is None and c.stride > 0 and c.divisible % by == 0 and span < by:
            # The lanes never leave the block of `by` that the first one opens.
            return Coordinate(b.div(c.base, by)), Coordinate(0, c.stride)
        if c.lanes is None and c.stride > 0 and self._stays(c, by):
            return Coordinate(b.div(c.base, by)), Coordinate(b.rem(c.base, by), c.stride)
        from xdsl.dialects import arith

        lanes = self.vector(c)
        divisor = b.constant(by, lanes.type)
        return (
            Coordinate(0, 0, b.integer(arith.DivUIOp, lanes, divisor)),
            Coordinate(0, 0, b.integer(arith.RemUIOp, lanes, divisor)),
        )

    def _stays(self, c: Coordinate, by: int) -> bool:
        """Whether all lanes have the same quotient: blocks of lanes tile blocks of `by`."""
        block = c.stride * self.lanes
        return c.divisible % block == 0 and by % block == 0

    def linear(self, place: Sequence[Coordinate], sizes: Sequence[int]) -> Coordinate:
        """The index in row-major order."""
        total = Coordinate(0)
        for c, size in zip(place, sizes, strict=True):
            total = self.sum(self.scaled(total, size), c)
        return total

    def unlinear(self, index: Coordinate, sizes: Sequence[int]) -> list[Coordinate]:
        """The place that has an index in row-major order."""
        # Nothing is divided for the outermost dimension, those of one element left aside.
        ones = next((at for at, size in enumerate(sizes) if size != 1), max(len(sizes) - 1, 0))
        place: list[Coordinate] = []
        for size in reversed(sizes[ones + 1 :]):
            index, rest = self.divided(index, size)
            place.append(rest)
        if sizes:
            place.append(index)
        return [Coordinate(0)] * ones + place[::-1]

    def load(
        self, buffer: SSAValue, shape: ArrayShape, place: Sequence[Coordinate]
    ) -> tuple[SSAValue, ...]:
        """The elements of an array at a place, in registers."""
        element = shape.element_type
        order = physical_order(shape)
        sizes = physical_dimensions(shape)
        ordered = [place[d] for d in order]
        if not element.is_complex:
            return (to_register(self.b, self._read(buffer, ordered, sizes), element),)
        sizes = (*sizes, 2)
        pairs = self._pairs(buffer, ordered)
        return pairs or tuple(
            to_register(self.b, self._read(buffer, [*ordered, Coordinate(part)], sizes), element)
            for part in (0, 1)
        )

    def _read(
        self, buffer: SSAValue, place: Sequence[Coordinate], sizes: Sequence[int]
    ) -> SSAValue:
        b, lanes = self.b, self.lanes
        if not lanes:
            return b.load(buffer, [c.base for c in place])
        strides = [1] * len(sizes)
        for at in range(len(sizes) - 2, -1, -1):
            strides[at] = strides[at + 1] * sizes[at + 1]
        affine = all(c.lanes is None for c in place)
        distance = sum(c.stride * s for c, s in zip(place, strides, strict=True)) if affine else 0
        bases = [c.base if c.lanes is None else 0 for c in place]
        if affine and distance == 0:
            # As masked loads and gathers have it: zeros in the lanes that are off.
            value = b.broadcast(b.load(buffer, bases), lanes)
            return (
                value
                if self.mask is None
                else b.select(self.mask, value, b.constant(0, value.type))
            )
        if affine and distance == 1:
            return b.vector_load(buffer, bases, lanes, self.mask)
        if affine and 1 < distance <= _NEAR and self.mask is None:
            return self._apart(buffer, bases, distance)
        if affine and -_NEAR <= distance < 0 and self.mask is None:
            turned = [self._from_the_last(c) for c in place]
            value = self._read(buffer, turned, sizes)
            return b.shuffle(value, value, range(lanes - 1, -1, -1))
        offsets: SSAValue | None = None
        if affine:
            steps = b.steps(lanes)
            offsets = b.muli(steps, b.constant(distance, steps.type))
        else:
            for c, stride in zip(place, strides, strict=True):
                if c.uniform:
                    continue
                part = (
                    self.vector(c) if c.lanes is not None else self.vector(Coordinate(0, c.stride))
                )
                if stride != 1:
                    part = b.muli(part, b.constant(stride, vector_of(INDEX, lanes)))
                offsets = part if offsets is None else b.addi(offsets, part)
        assert offsets is not None
        if len(sizes) == 1 and bases == [0]:
            found = self._looked_up(buffer, sizes[0], offsets)
            if found is not None:
                return found
        return b.gather(buffer, bases, offsets, self.mask)

    def _looked_up(self, buffer: SSAValue, size: int, places: SSAValue) -> SSAValue | None:
        """Elements of an array that one or two registers hold; None where that takes more than a gather."""
        b, lanes = self.b, self.lanes
        element = cast("MemRefType[Any]", buffer.type).element_type
        bits = _bits(element)
        if bits not in (32, 64) or bits * lanes != 512 or size > 2 * lanes:
            return None
        if not current().has("avx512f"):
            return None
        as_float, as_integer = (f32, i32) if bits == 32 else (f64, i64)
        vectors: list[SSAValue] = []
        for at in range(0, size, lanes):
            left = size - at
            mask = b.mask(b.index(left), lanes) if left < lanes else None
            vectors.append(b.bitcast(b.vector_load(buffer, [at], lanes, mask), as_float))
        numbers = b.cast_index(places, as_integer)
        value = b.bitcast(b.emit(PermuteOp, (numbers, *vectors), vectors[0].type), element)
        return value if self.mask is None else b.select(self.mask, value, b.constant(0, value.type))

    def _from_the_last(self, c: Coordinate) -> Coordinate:
        """The same indices, those of the last lane first."""
        return replace(c, base=self.b.add(c.base, c.stride * (self.lanes - 1)), stride=-c.stride)

    def _apart(self, buffer: SSAValue, bases: Sequence[Index], distance: int) -> SSAValue:
        """Elements some way apart, out of vectors of all that is between the first and the last."""
        b, lanes = self.b, self.lanes
        *outer, first = bases
        starts = [*range(0, (distance - 1) * lanes, lanes), (distance - 1) * (lanes - 1)]
        vectors = [b.vector_load(buffer, [*outer, b.add(first, at)], lanes) for at in starts]
        value = vectors[0]
        for at, (start, vector) in enumerate(zip(starts[1:], vectors[1:], strict=True), start=1):
            picked: list[int] = []
            for lane in range(lanes):
                place = lane * distance
                if place >= at * lanes:
                    picked.append(lanes + min(place - start, lanes - 1))
                else:
                    picked.append(place if at == 1 else lane)
            value = b.shuffle(value, vector, picked)
        return value

    def _pairs(self, buffer: SSAValue, place: Sequence[Coordinate]) -> tuple[SSAValue, ...]:
        """Both parts of neighbours, out of vectors of pairs; nothing for what are no neighbours."""
        b, lanes = self.b, self.lanes
        near = [c.stride for c in place if not c.uniform]
        if not lanes or self.mask is not None or near != [1] or place[-1].stride != 1:
            return ()
        *outer, last = (c.base for c in place)
        low, high = (
            b.vector_load(buffer, [*outer, b.add(last, at), 0], lanes) for at in (0, lanes // 2)
        )
        return tuple(b.shuffle(low, high, range(part, 2 * lanes, 2)) for part in (0, 1))


def _bits(element: Attribute) -> int:
    """Of a number in memory."""
    return element.bitwidth if isinstance(element, IntegerType | AnyFloat) else 0
