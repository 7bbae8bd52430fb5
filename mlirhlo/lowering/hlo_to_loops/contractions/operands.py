"""Elements of an operand as they are multiplied, at places that are fixed axis by axis.

reader = Reader.of(...)                     # nothing fixed
reader = reader.at({row: i, tap: j})        # arithmetic on those goes here, outside of inner loops
value = reader.load(channel, k, 16)         # neighbours along an axis
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects import arith as xarith
from xdsl.dialects import memref
from xdsl.dialects import vector as xvector
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import F32, PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.builder import FunctionBuilder, Index, lanes_of, memref_of, vector_of
from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import rounding
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction, Factor
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Index as DimensionIndex
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, buffer_type, memory_type
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.math_numbers import Numbers
from mlirhlo.lowering.hlo_to_loops.math_others import reduce_precision
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

MOVED_ZEROS = -0x7F7F7F80
"""A unit of four bytes that are zero but for their highest bits, as a signed number."""


@dataclass(frozen=True)
class Memory:
    """An array in memory: as bytes, and as the kinds of memrefs that loops use."""

    b: FunctionBuilder
    bytes: SSAValue
    shape: ArrayShape

    def view(self, type_: Attribute) -> SSAValue:
        """As another memref."""
        return self.b.emit(memref.ViewOp, [self.bytes, self.b.index(0)], type_)

    @property
    def array(self) -> SSAValue:
        """As `buffer_type` says."""
        return self.view(buffer_type(self.shape))

    @property
    def flat(self) -> SSAValue:
        """As one dimension of numbers, in the order of memory; complex ones are two each."""
        parts = 2 if self.shape.element_type.is_complex else 1
        element = memory_type(self.shape.element_type)
        return self.view(memref_of(element, self.shape.element_count * parts))

    def units(self, unit: Attribute) -> SSAValue:
        """As any number of `unit`."""
        return self.b.emit(
            memref.CastOp,
            [self.view(memref_of(unit, _count_of(self.shape, unit)))],
            memref_of(unit, DYNAMIC_INDEX),
        )


def _count_of(shape: ArrayShape, unit: Attribute) -> int:
    return shape.element_count * shape.element_type.byte_size // cast(int, cast(Any, unit).size)


@dataclass(frozen=True)
class Reader:
    """An operand with some axes fixed."""

    b: FunctionBuilder
    contraction: Contraction
    factor: Factor
    element: PrimitiveType
    """What its elements become."""
    buffers: Mapping[SSAValue, SSAValue]
    """Memrefs of HLO values."""
    coordinates: Mapping[int, Coordinate]
    """Of axes before they were merged; of a linear operand, of all that are fixed."""
    dimensions: Mapping[int, Coordinate]
    """Of the operand, where they are known."""
    inside: SSAValue | None = None
    """i1: whether what is fixed so far is inside of the operand."""
    base: Index = 0
    """Where in memory a linear operand's elements are, so far."""
    strides: Mapping[int, int] | None = None
    """Of a linear operand by axis, those of merged ones too."""
    flat: SSAValue | None = None
    array: SSAValue | None = None
    """An operand in memory that is not linear, in the factor's shape."""
    is_inside: bool = False
    """Whether what is read is known to be inside."""

    @staticmethod
    def of(
        b: FunctionBuilder,
        contraction: Contraction,
        factor: Factor,
        element: PrimitiveType,
        memory: Mapping[SSAValue, Memory],
        buffers: Mapping[SSAValue, SSAValue],
    ) -> Reader:
        """Nothing fixed. `memory` holds the HLO values in memory, `buffers` their memrefs."""
        # No loop walks an axis of one round, or others of a depth that is empty.
        c = contraction
        walked = {
            origin
            for axis in (*c.batch, *c.rows, *c.columns, *c.depth)
            for origin in c.origins.get(axis, (axis,))
        }
        known = {a: Coordinate(0) for a in range(len(c.sizes)) if a not in walked}
        reader = Reader(b, contraction, factor, element, buffers, known, {})
        if factor.is_linear:
            base, strides = factor.strides()
            for new, parts in contraction.origins.items():
                strides[new] = strides.get(parts[-1], 0)
            flat = memory[factor.value].flat
            reader = replace(reader, base=base, strides=strides, flat=flat)
        elif factor.is_buffer and factor.value in memory:
            array = memory[factor.value].view(buffer_type(factor.shape))
            reader = replace(reader, array=array)
        # Dimensions that no axis moves through are known from the start.
        return reader.at({})

    def at(self, axes: Mapping[int, Index]) -> Reader:
        """With these axes fixed too."""
        b = self.b
        if self.strides is not None:
            base = self.base
            for axis, place in axes.items():
                if stride := self.strides.get(axis, 0):
                    base = b.add(base, b.mul(place, stride))
            return replace(self, base=base)
        coordinates = dict(self.coordinates)
        for axis, place in axes.items():
            coordinates |= self._origins(axis, Coordinate(place), 0)
        known, inside = dict(self.dimensions), self.inside
        for dim, index in enumerate(self.factor.indices):
            if dim in known or any(axis not in coordinates for axis, _ in index.terms):
                continue
            known[dim], here = self._dimension(dim, index, coordinates, 0)
            if here is not None:
                inside = here if inside is None else b.andi(inside, here)
        return replace(self, coordinates=coordinates, dimensions=known, inside=inside)

    def load(self, axis: int, start: Index, lanes: int, count: Index | None = None) -> Value:
        """Neighbours along an axis; zeros outside, and in lanes beyond `count` of them."""
        b = self.b
        mask = None if count is None else b.mask(b.index(count), lanes)
        return self._moved(self._load(axis, start, lanes, mask))

    @property
    def is_moved(self) -> bool:
        """Whether its bytes have their highest bit turned, zeros outside of it too."""
        return self.contraction.arithmetic.moved and self.factor is self.contraction.lhs

    def _moved(self, value: Value) -> Value:
        b = self.b
        if not self.is_moved:
            return value
        return tuple(b.xori(v, b.constant(-128, v.type)) for v in value)

    def _load(self, axis: int, start: Index, lanes: int, mask: SSAValue | None) -> Value:
        b, source = self.b, self.factor.shape.element_type
        if self.strides is not None:
            stride = self.strides.get(axis, 0)
            base = b.add(self.base, b.mul(start, stride))
            if source.is_complex:
                value = self._complex(base, stride, lanes, mask)
            else:
                assert self.flat is not None
                size = self.factor.shape.element_count
                shape = ArrayShape(source, (size,))
                # The last lane's place need not exist: it is masked.
                value = Places(b, lanes, mask).load(self.flat, shape, [Coordinate(base, stride)])
            return self._as_multiplied(value, source)
        place, inside = self.place(axis, start, lanes)
        if inside is not None:
            mask = inside if mask is None else b.andi(mask, inside)
        places = Places(b, lanes, mask)
        if self.array is not None:
            value = places.load(self.array, self.factor.shape, place)
        else:
            value = Elements(places, self.buffers).at(self.factor.value, place)
        value = self._as_multiplied(value, source)
        if mask is not None and not self.factor.is_buffer:
            value = tuple(b.select(mask, v, b.constant(0, v.type)) for v in value)
        return value

    def span_inside(self, axis: int, count: int) -> SSAValue | None:
        """i1: whether `count` neighbours from the start of an axis are inside; None: always, or not
        worth asking."""
        if self.strides is not None or axis in self.contraction.origins:
            return None
        b, found = self.b, cast("SSAValue | None", None)
        for dim, index in enumerate(self.factor.indices):
            if dim in self.dimensions or not index.is_checked:
                continue
            if index.dilation != 1 or (axis, 1) not in index.terms:
                return None
            first, _ = replace(self, is_inside=True)._dimension(
                dim, index, {**self.coordinates, axis: Coordinate(0, 1)}, 1
            )
            last = self.factor.shape.dimensions[dim] - count
            if last < 0:
                return None
            found = b.cmpi("ult", b.index(first.base), b.index(last + 1))
        return found

    def place(
        self, axis: int, start: Index, lanes: int
    ) -> tuple[tuple[Coordinate, ...], SSAValue | None]:
        """Where neighbours along an axis are in the operand, and the lanes that are inside of it."""
        b = self.b
        divisible = lanes if isinstance(start, SSAValue) or start % max(lanes, 1) == 0 else 1
        coordinates = dict(self.coordinates)
        coordinates |= self._origins(axis, Coordinate(start, 1, None, divisible), lanes)
        mask = None if self.inside is None else b.broadcast(self.inside, lanes)
        place: list[Coordinate] = []
        for dim, index in enumerate(self.factor.indices):
            if dim in self.dimensions:
                place.append(self.dimensions[dim])
                continue
            coordinate, here = self._dimension(dim, index, coordinates, lanes)
            place.append(coordinate)
            if here is not None:
                here = here if lanes_of(here.type) else b.broadcast(here, lanes)
                mask = here if mask is None else b.andi(mask, here)
        return tuple(place), mask

    def _complex(self, base: Index, stride: int, lanes: int, mask: SSAValue | None) -> Value:
        b = self.b
        assert self.flat is not None
        steps = b.steps(lanes)
        offsets = b.muli(steps, b.constant(2 * stride, steps.type))
        start = b.mul(base, 2)
        return tuple(b.gather(self.flat, [b.add(start, part)], offsets, mask) for part in (0, 1))

    def _as_multiplied(self, value: Value, source: PrimitiveType) -> Value:
        b = self.b
        rounds = rounding(source, self.contraction.algorithm)
        if rounds == "tf32":
            (x,) = convert(b, value, source, F32)
            value, source = (reduce_precision(Numbers(b, x.type), x, 8, 10),), F32
        elif isinstance(rounds, PrimitiveType):
            value, source = convert(b, value, source, rounds), rounds
        return convert(b, value, source, self.element)

    def _origins(self, axis: int, place: Coordinate, lanes: int) -> dict[int, Coordinate]:
        """Places on the axes that were merged into one."""
        origins = self.contraction.origins.get(axis)
        if origins is None:
            return {axis: place}
        sizes = [self.contraction.sizes[a] for a in origins]
        return dict(zip(origins, Places(self.b, lanes).unlinear(place, sizes), strict=True))

    def _dimension(
        self, dim: int, index: DimensionIndex, coordinates: Mapping[int, Coordinate], lanes: int
    ) -> tuple[Coordinate, SSAValue | None]:
        """Where in a dimension the axes point, and (None: always) whether that is inside of it."""
        b, places = self.b, Places(self.b, lanes)
        total = Coordinate(0)
        for axis, factor in index.terms:
            total = places.sum(total, places.scaled(coordinates[axis], factor))
        if index.offset:
            total = places.shifted(total, index.offset)
        if not index.is_checked or (self.is_inside and not total.uniform):
            return total, None
        size = self.factor.shape.dimensions[dim]
        return _checked(b, places, total, size, index.dilation)


def _checked(
    b: FunctionBuilder, places: Places, at: Coordinate, size: int, dilation: int
) -> tuple[Coordinate, SSAValue]:
    """A place that may be outside, or between elements; and whether it is not."""
    reach = (size - 1) * dilation + 1
    if at.uniform:
        value = b.index(at.base)
        inside = b.cmpi("ult", value, b.index(reach))
        if dilation > 1:
            rest = b.integer(xarith.RemUIOp, value, b.index(dilation))
            inside = b.andi(inside, b.cmpi("eq", rest, b.index(0)))
            value = b.integer(xarith.DivUIOp, value, b.index(dilation))
        return Coordinate(b.select(inside, value, b.index(0))), inside
    value = places.vector(at)
    inside = b.cmpi("ult", value, b.constant(reach, value.type))
    if dilation == 1:
        # A masked load does not touch what is outside.
        return at, inside
    divisor = b.constant(dilation, value.type)
    rest = b.integer(xarith.RemUIOp, value, divisor)
    inside = b.andi(inside, b.cmpi("eq", rest, b.constant(0, value.type)))
    value = b.integer(xarith.DivUIOp, value, divisor)
    return Coordinate(0, 0, b.select(inside, value, b.constant(0, value.type))), inside


def unit_vector(b: FunctionBuilder, values: list[SSAValue], group: int) -> SSAValue:
    """Units of `group` elements, lane by lane from as many vectors."""
    if group == 1:
        return values[0]
    bits = cast(int, cast(Any, values[0].type).element_type.bitwidth)
    unit = IntegerType(bits * group)
    total: SSAValue | None = None
    for at, value in enumerate(values):
        part = b.cast(casts.ExtUIOp, b.bitcast(value, IntegerType(bits)), unit)
        if at:
            part = b.shli(part, b.constant(at * bits, part.type))
        total = part if total is None else b.ori(total, part)
    assert total is not None
    return total


def as_units(b: FunctionBuilder, value: SSAValue, group: int) -> SSAValue:
    """Neighbours taken together as units."""
    if group == 1:
        return value
    type_ = cast(Any, value.type)
    (lanes,) = type_.get_shape()
    unit = IntegerType(type_.element_type.bitwidth * group)
    return b.emit(xvector.BitcastOp, [value], vector_of(unit, lanes // group))


def transposed(b: FunctionBuilder, rows: list[SSAValue]) -> list[SSAValue]:
    """A square of as many vectors as they have lanes, turned: log2(lanes) rounds of shuffles."""
    size = len(rows)
    step = 1
    while step < size:
        following: list[SSAValue | None] = [None] * size
        for at in range(size):
            if at & step:
                continue
            x, y = rows[at], rows[at + step]
            low = [lane if not lane & step else size + (lane ^ step) for lane in range(size)]
            high = [lane | step if not lane & step else size + lane for lane in range(size)]
            following[at] = b.shuffle(x, y, low)
            following[at + step] = b.shuffle(x, y, high)
        rows = cast("list[SSAValue]", following)
        step *= 2
    return rows


def places_of(
    b: FunctionBuilder, c: Contraction, axes: Sequence[int], linear: Index
) -> dict[int, Index]:
    """Where a number of a round is on each of these axes."""
    places: dict[int, Index] = {}
    for axis in reversed(axes[1:]):
        places[axis] = b.rem(linear, c.sizes[axis])
        linear = b.div(linear, c.sizes[axis])
    if axes:
        places[axes[0]] = linear
    return places
