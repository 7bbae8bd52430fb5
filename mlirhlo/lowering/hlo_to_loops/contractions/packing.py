"""Copies of operands in the order in which micro-kernels read them.

A packed operand is rows of units, one unit a group of neighbours along the depth: `by_depth` has a row
for each unit of the depth (panels of right factors, left ones whose memory runs along the rows), the
other form a row for each row of the operand. What is read along the other direction is turned in
registers; what is outside of an operand becomes zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects import arith as xarith
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import FunctionBuilder, Index, vector_of
from mlirhlo.lowering.hlo_to_loops.contractions.operands import (
    MOVED_ZEROS,
    Reader,
    as_units,
    places_of,
    transposed,
    unit_vector,
)
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction, Factor
from mlirhlo.lowering.hlo_to_loops.elements import physical_order

_UNROLLED = 8
"""Vectors of a row that are not worth a loop."""


@dataclass(frozen=True, slots=True)
class Depth:
    """The depth as loops: the axes around, and units along the innermost."""

    outer: tuple[int, ...]
    inner: int | None
    sizes: Sequence[int]
    group: int

    @staticmethod
    def of(c: Contraction) -> Depth:
        """Of a contraction."""
        return Depth(c.depth[:-1], c.depth[-1] if c.depth else None, c.sizes, c.arithmetic.group)

    @property
    def inner_size(self) -> int:
        """Elements along the innermost axis."""
        return 1 if self.inner is None else self.sizes[self.inner]

    @property
    def inner_units(self) -> int:
        """Units along the innermost axis; the last may be filled up with zeros."""
        return -(-self.inner_size // self.group)

    @property
    def outer_count(self) -> int:
        """Rounds of the loops around it."""
        count = 1
        for axis in self.outer:
            count *= self.sizes[axis]
        return count

    @property
    def units(self) -> int:
        """All of them."""
        return self.outer_count * self.inner_units


@dataclass(frozen=True, slots=True)
class Span:
    """Part of the depth: some rounds of the axes around and all units inside, or some units of one."""

    outer: Index
    outer_count: Index
    unit: Index
    unit_count: Index
    is_aligned: bool = False
    """Whether it is all rounds of the axes around but the outermost."""

    @staticmethod
    def whole(depth: Depth) -> Span:
        """All of it."""
        return Span(0, depth.outer_count, 0, depth.inner_units, is_aligned=True)


def runs_along_depth(factor: Factor, c: Contraction) -> bool:
    """Whether neighbours in the operand's memory differ in the innermost axis of the depth."""
    order = [d for d in physical_order(factor.shape) if factor.shape.dimensions[d] != 1]
    if not order or not c.depth:
        return not order
    inner = c.origins.get(c.depth[-1], (c.depth[-1],))[-1]
    # A window moves by its taps and its places: what takes more neighbours counts.
    moving = [axis for axis, step in factor.indices[order[-1]].terms if abs(step) == 1]
    return max(moving, key=lambda axis: c.sizes[axis], default=None) == inner


class Packer:
    """Emits the loops that pack one operand."""

    def __init__(
        self, b: FunctionBuilder, reader: Reader, depth: Depth, lanes: int, *, along_depth: bool
    ) -> None:
        """`reader` with the batch fixed; `lanes`: units of a vector; `along_depth`: how memory runs."""
        self.b, self.reader, self.depth, self.lanes = b, reader, depth, lanes
        self.along_depth = along_depth
        self.parts = reader.contraction.arithmetic.parts
        self.group = depth.group

    def _around(self, span: Span, body: Callable[[Reader, Index], None], reader: Reader) -> None:
        """`body(reader, units before)` for each round of the axes around."""
        b, depth = self.b, self.depth
        if not depth.outer:
            body(reader, 0)
        elif span.is_aligned:
            self._nest(span, body, reader)
        else:
            with b.loop(0, span.outer_count) as step:
                places = places_of(b, reader.contraction, depth.outer, b.add(span.outer, step))
                body(reader.at(places), b.mul(step, depth.inner_units))

    def _nest(self, span: Span, body: Callable[[Reader, Index], None], reader: Reader) -> None:
        """A loop for each axis: what an axis decides is found once for all loops inside."""
        b, depth = self.b, self.depth
        first, *others = depth.outer
        inside = depth.outer_count // depth.sizes[first]

        def loops(axes: Sequence[int], fixed: Reader, before: Index) -> None:
            if not axes:
                body(fixed, b.mul(before, depth.inner_units))
                return
            with b.loop(0, depth.sizes[axes[0]]) as i:
                linear = b.add(b.mul(before, depth.sizes[axes[0]]), i)
                loops(axes[1:], fixed.at({axes[0]: i}), linear)

        start = b.div(span.outer, inside)
        with b.loop(0, b.div(span.outer_count, inside)) as i:
            loops(others, reader.at({first: b.add(start, i)}), i)

    def by_depth(
        self,
        target: SSAValue,
        start: Index,
        axis: int | None,
        first: Index,
        count: Index,
        vectors: int,
        stride: int,
        span: Span,
        *,
        edge: bool,
    ) -> None:
        """`target[start + unit * stride + lane]`: `vectors` vectors of the places `first…` of an axis.

        `count` of them exist; `edge`: whether that may be fewer than lanes. Parts of complex numbers
        stand behind each other in a row.
        """
        b, lanes = self.b, self.lanes

        def whole(reader: Reader, before: Index) -> None:
            if not self.along_depth or self.parts == 2 or axis is None:
                self._straight(
                    reader, before, target, start, axis, first, count, vectors, stride, span, edge
                )
                return
            with b.loop(0, vectors) as v:
                moved = b.mul(v, lanes)
                # A vector may lie beyond the last place as a whole: it reads that one, too.
                last = b.integer(xarith.MaxSIOp, b.index(b.sub(count, 1)), b.index(0))
                places = [
                    b.add(first, b.integer(xarith.MinSIOp, b.index(b.add(moved, lane)), last))
                    for lane in range(lanes)
                ]
                at = b.add(start, moved)
                self._turned(reader, before, target, at, axis, places, stride, span)

        self._around(span, whole, self.reader)

    def _units(self, span: Span, body: Callable[[Index, Index, int], None]) -> None:
        """`body(unit of the axis, unit of the span, elements)` along the innermost axis."""
        b, depth = self.b, self.depth
        rest = depth.inner_size % self.group
        count = span.unit_count
        if rest == 0:
            with b.loop(0, count) as u:
                body(b.add(span.unit, u), u, self.group)
            return
        # The last unit of the axis is not full.
        full = depth.inner_units - 1
        end = b.integer(xarith.MinSIOp, b.index(b.sub(full, span.unit)), b.index(count))
        with b.loop(0, end) as u:
            body(b.add(span.unit, u), u, self.group)
        with b.loop(end, count) as u:
            body(b.add(span.unit, u), u, rest)

    def _straight(
        self,
        reader: Reader,
        before: Index,
        target: SSAValue,
        start: Index,
        axis: int | None,
        first: Index,
        count: Index,
        vectors: int,
        stride: int,
        span: Span,
        edge: bool,
    ) -> None:
        """Lanes along the axis, in the order of the operand's memory."""
        b, lanes, depth = self.b, self.lanes, self.depth

        def one(unit: Index, of_span: Index, elements: int) -> None:
            at = b.add(start, b.mul(b.add(before, of_span), stride))
            fixed = [
                reader
                if depth.inner is None
                else reader.at({depth.inner: b.add(b.mul(unit, self.group), e)})
                for e in range(elements)
            ]
            for v in range(vectors):
                left = b.sub(count, v * lanes) if edge else None
                place = b.add(first, v * lanes)
                loaded = [f.load(-1 if axis is None else axis, place, lanes, left) for f in fixed]
                for part in range(self.parts):
                    values = [x[part] for x in loaded]
                    offset = (part * vectors + v) * lanes
                    b.vector_store(unit_vector(b, values, self.group), target, [b.add(at, offset)])

        self._units(span, one)

    def _turned(
        self,
        reader: Reader,
        before: Index,
        target: SSAValue,
        start: Index,
        axis: int,
        places: Sequence[Index],
        stride: int,
        span: Span,
    ) -> None:
        """Squares of units of these places, read along the depth."""
        b, lanes = self.b, self.lanes
        rows = [reader.at({axis: place}) for place in places]
        with b.loop(0, span.unit_count, lanes) as u:
            square = [self._along(row, b.add(span.unit, u))[0] for row in rows]
            at = b.add(start, b.mul(b.add(before, u), stride))
            for lane, column in enumerate(transposed(b, square)):
                b.vector_store(column, target, [b.add(at, lane * stride)])

    def _along(self, reader: Reader, unit: Index) -> list[SSAValue]:
        """Units along the depth, zeros beyond its end."""
        b, depth = self.b, self.depth
        place = b.mul(unit, self.group)
        if depth.inner is None:
            values = reader.load(-1, place, self.lanes * self.group, 1)
        else:
            left = b.sub(depth.inner_size, place)
            whole = depth.inner_size % (self.lanes * self.group) == 0
            values = reader.load(
                depth.inner, place, self.lanes * self.group, None if whole else left
            )
        return [as_units(b, value, self.group) for value in values]

    def by_rows(
        self,
        target: SSAValue,
        place_of: Callable[[Index], dict[int, Index]],
        first: Index,
        rows: Index,
        stride: int,
        span: Span,
    ) -> None:
        """`target[row * stride + unit]`: rows of units of the places `place_of(first + row)`.

        What the operand does not fill of the last vector is zeros, `stride` has to have room for it.
        """
        b = self.b
        with b.loop(0, rows) as row:
            start = b.mul(row, stride)
            reader = self.reader.at(place_of(b.add(first, row)))

            def along(inner: Reader, before: Index, start: Index = start) -> None:
                at = b.add(start, before)
                if inner.inside is None:
                    self._part_row(inner, target, at, span)
                    return
                with b.if_(inner.inside):
                    self._part_row(replace(inner, inside=None), target, at, span)
                with b.if_(self._not(inner.inside)):
                    self._row(None, target, at, span)

            self._around(span, along, reader)

    def _not(self, x: SSAValue) -> SSAValue:
        return self.b.xori(x, self.b.constant(True, x.type))

    def _part_row(self, reader: Reader, target: SSAValue, at: Index, span: Span) -> None:
        """A row that may reach over an edge of the operand: that takes masks, others do without."""
        b, depth = self.b, self.depth
        inner = depth.inner
        whole = None if inner is None else reader.span_inside(inner, depth.inner_size)
        if whole is None:
            self._row(reader, target, at, span)
            return
        with b.if_(whole):
            self._row(replace(reader, is_inside=True), target, at, span)
        with b.if_(self._not(whole)):
            self._row(reader, target, at, span)

    def _row(self, reader: Reader | None, target: SSAValue, at: Index, span: Span) -> None:
        """One row at one place of the axes around; None: outside of the operand."""
        b, lanes = self.b, self.lanes
        count = span.unit_count
        if isinstance(count, int) and count <= _UNROLLED * lanes:
            for u in range(0, count, lanes):
                self._row_vector(reader, target, at, span, u)
            return
        with b.loop(0, count, lanes) as u:
            self._row_vector(reader, target, at, span, u)

    def _row_vector(
        self, reader: Reader | None, target: SSAValue, at: Index, span: Span, u: Index
    ) -> None:
        b, lanes = self.b, self.lanes
        place = b.mul(b.add(at, u), self.parts)
        if reader is None:
            type_ = cast("MemRefType[Any]", target.type).element_type
            zero = MOVED_ZEROS if self.reader.is_moved else 0
            values = [b.constant(zero, vector_of(type_, lanes))] * self.parts
        else:
            values = self._along(reader, b.add(span.unit, u))
        for part, value in enumerate(_side_by_side(b, values, lanes)):
            b.vector_store(value, target, [b.add(place, part * lanes)])

    def window(
        self, target: SSAValue, row: Mapping[int, Index], length: Index, stride: int
    ) -> None:
        """`target[n * stride + unit]`: `length` neighbours from a row on, for each round of the axes around.

        What is outside of the operand is zeros; so is what the last vector has beyond them.
        """
        b, depth, lanes = self.b, self.depth, self.lanes
        assert depth.inner is not None
        inner = depth.inner
        type_ = cast("MemRefType[Any]", target.type).element_type
        fixed = self.reader.at(row)

        def line(reader: Reader | None, start: Index) -> None:
            with b.loop(0, length, lanes) as u:
                if reader is None:
                    value = b.constant(0, vector_of(type_, lanes))
                else:
                    (value,) = reader.load(inner, u, lanes, b.sub(length, u))
                b.vector_store(value, target, [b.add(start, u)])

        with b.loop(0, depth.outer_count) as n:
            reader = fixed.at(places_of(b, fixed.contraction, depth.outer, n))
            start = b.mul(n, stride)
            if reader.inside is None:
                line(reader, start)
            else:
                with b.if_(reader.inside):
                    line(replace(reader, inside=None), start)
                with b.if_(self._not(reader.inside)):
                    line(None, start)

    def by_rows_turned(
        self,
        target: SSAValue,
        axis: int | None,
        first: Index,
        rows: Index,
        count: int,
        stride: int,
        span: Span,
        room: SSAValue,
    ) -> None:
        """As `by_rows` of places `first…` of one axis with `count`, whose memory runs along it.

        `room` is for as many rows as there are lanes, packed by depth before they are turned.
        """
        b, lanes = self.b, self.lanes
        with b.loop(0, rows, lanes) as row:
            place = b.add(first, row)
            left = b.sub(count, place)
            self.by_depth(room, 0, axis, place, left, 1, lanes, span, edge=count % lanes != 0)
            units = b.mul(span.outer_count, span.unit_count)
            with b.loop(0, units, lanes) as u:
                square = [
                    b.vector_load(room, [b.mul(b.add(u, unit), lanes)], lanes)
                    for unit in range(lanes)
                ]
                start = b.add(b.mul(row, stride), u)
                for lane, column in enumerate(transposed(b, square)):
                    b.vector_store(column, target, [b.add(start, lane * stride)])


def _side_by_side(b: FunctionBuilder, parts: list[SSAValue], lanes: int) -> list[SSAValue]:
    """Real and imaginary parts in turns, as complex numbers stand in memory."""
    if len(parts) == 1:
        return parts
    pairs = [x for lane in range(lanes) for x in (lane, lanes + lane)]
    real, imag = parts
    return [b.shuffle(real, imag, pairs[:lanes]), b.shuffle(real, imag, pairs[lanes:])]
