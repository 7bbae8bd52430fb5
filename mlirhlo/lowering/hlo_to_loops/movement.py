"""Instructions that move elements: their elements are elements of operands at other places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import S32, S64, PrimitiveType
from mlirhlo.dialects.hlo.ops import (
    BitcastOp,
    BroadcastOp,
    ConcatenateOp,
    ConstantOp,
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    GetTupleElementOp,
    IotaOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    ScatterOp,
    SliceOp,
    TransposeOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index, lanes_of
from mlirhlo.lowering.hlo_to_loops.elemental import Elements, Place, emits, emits_parts
from mlirhlo.lowering.hlo_to_loops.elements import (
    Value,
    physical_dimensions,
    physical_order,
    register_type,
)
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import bits_in_memory, convert, same_bits
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places


def array(value: SSAValue) -> ArrayShape:
    """Shape of an array value."""
    return cast(ArrayShape, shape_of(value.type))


@emits("get-tuple-element")
def _get_tuple_element(e: Elements, op: GetTupleElementOp, position: Place) -> Value:
    owner = cast(Instruction, op.operand.owner)
    if isinstance(owner, TupleOp):
        return e.at(owner.inputs[op.index], position)
    return e.parts(op.operand, position)[op.index]


@emits("broadcast")
def _broadcast(e: Elements, op: BroadcastOp, position: Place) -> Value:
    operand = array(op.operand)
    return e.at(
        op.operand,
        [
            position[d] if size != 1 else Coordinate(0)
            for d, size in zip(op.dimensions, operand.dimensions, strict=True)
        ],
    )


@emits("transpose")
def _transpose(e: Elements, op: TransposeOp, position: Place) -> Value:
    result: list[Coordinate] = [Coordinate(0)] * len(position)
    for at, d in enumerate(op.dimensions):
        result[d] = position[at]
    return e.at(op.operand, result)


@emits("reshape")
def _reshape(e: Elements, op: ReshapeOp, position: Place) -> Value:
    before, after = array(op.operand).dimensions, array(op.output).dimensions
    return e.at(op.operand, _reshaped(e, position, after, before))


def _reshaped(
    e: Elements, position: Place, sizes: tuple[int, ...], to: tuple[int, ...]
) -> list[Coordinate]:
    """The position with the same row-major index in another shape of as many elements.

    Groups of dimensions with equal products are kept apart, so that what does not mix stays simple.
    """
    result: list[Coordinate] = []
    i = j = 0
    while i < len(sizes) or j < len(to):
        if i < len(sizes) and j < len(to) and sizes[i] == to[j]:
            result.append(position[i])
            i, j = i + 1, j + 1
            continue
        first, second = i, j
        left = right = 1
        if i < len(sizes):
            left, i = sizes[i], i + 1
        if j < len(to):
            right, j = to[j], j + 1
        while left != right:
            if (left < right and i < len(sizes)) or j >= len(to):
                left, i = left * sizes[i], i + 1
            else:
                right, j = right * to[j], j + 1
        index = e.places.linear(position[first:i], sizes[first:i])
        result += e.places.unlinear(index, to[second:j])
    return result


@emits("bitcast")
def _bitcast(e: Elements, op: BitcastOp, position: Place) -> Value:
    """The same bytes: physical places agree."""
    before, after = array(op.operand), array(op.output)
    source, target = before.element_type, after.element_type
    if source is not target and (source.is_complex or target.is_complex):
        raise error("HLO0432", f"a bitcast of {source} to {target} has no lowering to a loop")
    if source is not target and bits_in_memory(source) != bits_in_memory(target):
        raise error("HLO0432", f"a bitcast of {source} to {target} has no lowering to a loop")
    ordered = tuple(position[d] for d in physical_order(after))
    physical = _reshaped(e, ordered, physical_dimensions(after), physical_dimensions(before))
    result: list[Coordinate] = [Coordinate(0)] * before.rank
    for at, d in enumerate(physical_order(before)):
        result[d] = physical[at]
    value = e.at(op.operand, result)
    return value if source is target else (same_bits(e.b, value[0], source, target),)


@emits("slice")
def _slice(e: Elements, op: SliceOp, position: Place) -> Value:
    places, slices = e.places, op.slices
    assert slices is not None
    return e.at(
        op.operand,
        [
            places.shifted(places.scaled(c, s.stride), s.start)
            for c, s in zip(position, slices.dimensions, strict=True)
        ],
    )


@emits("reverse")
def _reverse(e: Elements, op: ReverseOp, position: Place) -> Value:
    sizes = array(op.operand).dimensions
    turned = set(op.dimensions)
    return e.at(
        op.operand,
        [e.places.reversed(c, sizes[d]) if d in turned else c for d, c in enumerate(position)],
    )


@emits("iota")
def _iota(e: Elements, op: IotaOp, position: Place) -> Value:
    return index_element(e, position[op.iota_dimension], array(op.output).element_type)


def index_element(e: Elements, c: Coordinate, element: PrimitiveType) -> Value:
    """An index as a number of a type."""
    b = e.b
    if not e.lanes:
        bits = b.cast_index(b.index(c.base), register_type(S64))
    elif c.lanes is None and c.stride in (0, 1) and not element.is_complex:
        return _iota_lanes(e, c, element)
    else:
        bits = b.cast_index(e.places.vector(c), register_type(S64))
    return convert(b, (bits,), S64, element)


def _iota_lanes(e: Elements, c: Coordinate, element: PrimitiveType) -> Value:
    """Neighbours count on from the first one, in 32 bits where that is enough."""
    b = e.b
    wide = S64 if c.within is None or c.within[1] > 1 << 31 else S32
    first = b.cast_index(b.index(c.base), register_type(wide))
    lanes = b.broadcast(first, e.lanes)
    if c.stride:
        steps = b.cast_index(b.steps(e.lanes), register_type(wide))
        lanes = b.addi(lanes, steps)
    return convert(b, (lanes,), wide, element)


@emits("constant")
def _constant(e: Elements, op: ConstantOp, position: Place) -> Value:
    """Splats and scalars; other constants stand in buffers."""
    del position
    shape = array(op.output)
    literal = op.literal
    assert literal is not None
    return splat_constant(e, literal.array.reshape(-1)[0], shape.element_type)


def splat_constant(e: Elements, number: Any, element: PrimitiveType) -> Value:
    """One number of numpy's in every lane."""
    type_ = register_type(element)
    if element.is_complex:
        return (e.constant(float(number.real), type_), e.constant(float(number.imag), type_))
    if element.is_float and element.bits >= 16:
        return (e.constant(float(number), type_),)
    if element.is_float:
        import numpy as np

        bits = int(np.asarray(number).view(np.uint8))
        return (e.constant(bits, type_),)
    return (e.constant(int(number), type_),)


@emits("pad")
def _pad(e: Elements, op: PadOp, position: Place) -> Value:
    padding = op.padding
    assert padding is not None
    offsets = [edge.low for edge in padding.dimensions]
    strides = [edge.interior + 1 for edge in padding.dimensions]
    piece = Piece(op.operand, offsets, strides)
    return assembled(e, [piece], op.padding_value, array(op.output).dimensions, position)


@dataclass(frozen=True, slots=True)
class Piece:
    """An array among others: element `i` stands at `offset + i * stride` of what they make up."""

    value: SSAValue
    offsets: Sequence[Index]
    strides: Sequence[int] | None = None
    """By dimension; None where all are 1."""


@dataclass(slots=True)
class _Cover:
    """What an element, or a vector of them, takes from a piece."""

    value: SSAValue
    position: list[Coordinate]
    """Clamped, but along neighbours: of those the ones in `lanes` are read."""
    lanes: SSAValue | None = None
    inside: SSAValue | None = None
    """Where the piece is, as far as `lanes` do not say so."""

    @property
    def is_whole(self) -> bool:
        """Whether all elements lie in the piece."""
        return self.lanes is None and self.inside is None


def assembled(
    e: Elements,
    pieces: Sequence[Piece],
    fill: SSAValue | None,
    sizes: Sequence[int],
    position: Sequence[Coordinate],
) -> Value:
    """An element of an array of these sizes that is put together from pieces: the last one that covers it, `fill`
    where none does. Of neighbours the lanes that are inside of a piece are read."""
    covers: list[_Cover] = []
    for piece in reversed(pieces):
        cover = _cover(e, piece, sizes, position)
        if cover is not None:
            covers.append(cover)
            if cover.is_whole:
                break
    value = None
    if fill is not None and not (covers and covers[-1].is_whole):
        value = e.at(fill, ())
    for cover in reversed(covers):
        part = _at_some(e, cover.value, cover.position, cover.lanes)
        inside = cover.lanes
        if cover.inside is not None:
            inside = cover.inside if inside is None else _both(e, cover.inside, inside)
        if value is None or inside is None:
            value = part
        else:
            value = tuple(e.b.select(inside, x, y) for x, y in zip(part, value, strict=True))
    assert value is not None
    return value


def _cover(
    e: Elements, piece: Piece, sizes: Sequence[int], position: Sequence[Coordinate]
) -> _Cover | None:
    """What a piece has of an element; None for nothing."""
    b, places, own = e.b, e.places, array(piece.value).dimensions
    if 0 in own:
        return None
    cover = _Cover(piece.value, [])
    strides = piece.strides or [1] * len(own)
    for c, offset, stride, size, whole in zip(
        position, piece.offsets, strides, own, sizes, strict=True
    ):
        if offset == 0 and stride == 1 and size == whole:
            cover.position.append(c)
            continue
        moved = c if offset == 0 else places.shifted(c, b.sub(0, offset))
        if moved.within is not None and stride == 1:
            if moved.within[0] >= 0 and moved.within[1] <= size:
                cover.position.append(moved)
                continue
            if moved.within[1] <= 0 or moved.within[0] >= size:
                return None
        if stride == 1 and _are_neighbours(moved):
            here = _inside(e, moved, size)
            cover.lanes = here if cover.lanes is None else b.andi(cover.lanes, here)
            cover.position.append(_cut(moved, size))
            continue
        here, source = _tested(e, lane_values(e, moved), stride, size)
        cover.inside = here if cover.inside is None else _both(e, cover.inside, here)
        cover.position.append(source)
    return cover


def _tested(e: Elements, value: SSAValue, stride: int, size: int) -> tuple[SSAValue, Coordinate]:
    """Whether an index is that of one of `size` elements so far apart, and the number of the element, clamped."""
    b = e.b
    if stride == 1:
        # Unsigned, what is below zero is above all sizes.
        return b.cmpi("ult", value, b.constant(size, value.type)), clamped(e, value, size)
    low = b.cmpi("sge", value, b.constant(0, value.type))
    divisor = b.constant(stride, value.type)
    exact = b.integer(arith.RemSIOp, value, divisor)
    low = b.andi(low, b.cmpi("eq", exact, b.constant(0, value.type)))
    value = b.integer(arith.DivSIOp, value, divisor)
    here = b.andi(low, b.cmpi("slt", value, b.constant(size, value.type)))
    return here, clamped(e, value, size)


def _are_neighbours(c: Coordinate) -> bool:
    """Whether lanes have indices one after the other, wherever they begin."""
    return c.lanes is None and c.stride == 1


def _inside(e: Elements, c: Coordinate, size: int) -> SSAValue:
    """A mask of the neighbours whose index is in [0, size): in 32 bits where that is enough."""
    b = e.b
    wide = S32 if c.within is not None and max(*map(abs, c.within), size) < 1 << 31 else S64
    type_ = register_type(wide)
    first = b.broadcast(b.cast_index(b.index(c.base), type_), e.lanes)
    value = b.addi(first, b.cast_index(b.steps(e.lanes), type_))
    # Unsigned, what is below zero is above all sizes.
    return b.cmpi("ult", value, b.constant(size, value.type))


def _cut(c: Coordinate, size: int) -> Coordinate:
    """What `_inside` leaves of a coordinate."""
    low, high = c.within or (0, size)
    return replace(c, within=(max(low, 0), min(high, size)))


def _at_some(
    e: Elements, value: SSAValue, position: list[Coordinate], mask: SSAValue | None
) -> Value:
    """An element in the lanes of a mask alone: elsewhere it is any number, and nothing is read."""
    if mask is None:
        return e.at(value, position)
    if e.places.mask is not None:
        mask = e.b.andi(e.places.mask, mask)
    return e.scope(Places(e.b, e.lanes, mask)).at(value, position)


def lane_values(e: Elements, c: Coordinate) -> SSAValue:
    """A coordinate as one value: that of all lanes where it is the same, else a vector of theirs."""
    return e.b.index(c.base) if c.uniform else e.places.vector(c)


def _coordinate(value: SSAValue) -> Coordinate:
    return Coordinate(value) if value.type == INDEX else Coordinate(0, 0, value)


def _both(e: Elements, x: SSAValue, y: SSAValue) -> SSAValue:
    """Two conditions, of which one may be of all lanes."""
    if x.type != y.type:
        x, y = (e.b.broadcast(v, e.lanes) if v.type == i1 else v for v in (x, y))
    return e.b.andi(x, y)


def clamped(e: Elements, value: SSAValue, size: int) -> Coordinate:
    """A coordinate brought into [0, size)."""
    b = e.b
    low = b.integer(arith.MaxSIOp, value, b.constant(0, value.type))
    return _coordinate(b.integer(arith.MinSIOp, low, b.constant(max(size - 1, 0), value.type)))


@emits("concatenate")
def _concatenate(e: Elements, op: ConcatenateOp, position: Place) -> Value:
    (d,) = op.dimensions
    sizes = array(op.output).dimensions
    starts = accumulate((array(v).dimensions[d] for v in op.inputs), initial=0)
    pieces = [
        Piece(v, [start if at == d else 0 for at in range(len(sizes))])
        for v, start in zip(op.inputs, starts, strict=False)
    ]
    return assembled(e, pieces, None, sizes, position)


def start_index(e: Elements, value: SSAValue, most: int, position: Place = ()) -> SSAValue:
    """A start index, at a position that is the same for all lanes, clamped into [0, most]."""
    element = array(value).element_type

    def make(inner: Elements) -> SSAValue:
        b = inner.b
        (x,) = Elements(type(e.places)(b, 0), e.buffers).at(value, position)
        return clamped_start(b, x, element, most)

    return e.once((value, most), position, make)


def clamped_start(b: FunctionBuilder, x: SSAValue, element: PrimitiveType, most: int) -> SSAValue:
    """Start indices of a type, clamped into [0, most]."""
    if lanes_of(x.type) and element.bits == 32 and most < 1 << 31:  # half as wide as indices
        limit = b.constant(most, x.type)
        if not element.is_signed:
            return b.cast_index(b.integer(arith.MinUIOp, x, limit), INDEX, signed=False)
        low = b.integer(arith.MaxSIOp, x, b.constant(0, x.type))
        return b.cast_index(b.integer(arith.MinSIOp, low, limit), INDEX)
    index = b.cast_index(x, INDEX, signed=element.is_signed)
    type_ = index.type
    low = b.integer(arith.MaxSIOp, index, b.constant(0, type_))
    if not element.is_signed and element.bits == 64:
        beyond = b.cmpi("slt", index, b.constant(0, type_))
        low = b.select(beyond, b.constant(most, type_), index)
    return b.integer(arith.MinSIOp, low, b.constant(most, type_))


@dataclass(frozen=True, slots=True)
class Start:
    """What is added to an index along a dimension: an element of an array, clamped into [0, most]."""

    dim: int
    indices: SSAValue
    position: Sequence[Coordinate]
    most: int


def looked_up(
    e: Elements, source: SSAValue, offsets: Sequence[Coordinate], starts: Sequence[Start]
) -> Value:
    """An element at indices that are data."""
    position = list(offsets)
    for start in starts:
        if all(c.uniform for c in start.position):
            # One slice for all lanes, and for all of the loop along it.
            by = start_index(e, start.indices, start.most, tuple(start.position))
            position[start.dim] = e.places.shifted(position[start.dim], by)
            continue
        (x,) = e.at(start.indices, start.position)
        lanes = clamped_start(e.b, x, array(start.indices).element_type, start.most)
        position[start.dim] = e.places.sum(_coordinate(lanes), position[start.dim])
    return e.at(source, position)


@emits("dynamic-slice")
def _dynamic_slice(e: Elements, op: DynamicSliceOp, position: Place) -> Value:
    operand, *starts = op.inputs
    sizes, taken = array(operand).dimensions, array(op.output).dimensions
    found = [
        Start(d, start, (), sizes[d] - taken[d])
        for d, start in enumerate(starts)
        if sizes[d] != taken[d]
    ]
    return looked_up(e, operand, position, found)


@emits("dynamic-update-slice")
def _dynamic_update_slice(e: Elements, op: DynamicUpdateSliceOp, position: Place) -> Value:
    operand, update, *starts = op.inputs
    sizes, taken = array(operand).dimensions, array(update).dimensions
    offsets: list[Index] = [
        start_index(e, start, n - m) if n != m else 0
        for start, n, m in zip(starts, sizes, taken, strict=True)
    ]
    pieces = [Piece(operand, [0] * len(sizes)), Piece(update, offsets)]
    return assembled(e, pieces, None, sizes, position)


@emits("scatter")
def _scatter(e: Elements, op: ScatterOp, position: Place) -> Value:
    return _scattered(e, op, position)[0]


@emits_parts("scatter")
def _scattered(e: Elements, op: ScatterOp, position: Place) -> Sequence[Value]:
    """The operands: there is nothing to scatter, or windows are larger than they are."""
    count = len(op.inputs) // 2
    sizes, updates = array(op.inputs[0]).dimensions, array(op.inputs[count + 1]).dimensions
    skipped = {*op.inserted_window_dims, *op.input_batching_dims}
    kept = [n for d, n in enumerate(sizes) if d not in skipped]
    widths = [updates[d] for d in op.update_window_dims]
    if 0 not in updates and all(m <= n for m, n in zip(widths, kept, strict=True)):
        raise error("HLO0432", "`scatter` has no lowering to a loop over elements")
    return [e.at(v, position) for v in op.inputs[:count]]


@emits("gather")
def _gather(e: Elements, op: GatherOp, position: Place) -> Value:
    """Slices at clamped start indices, as the interpreter's gather."""
    operand, indices = op.operand, op.start_indices
    sizes = array(operand).dimensions
    index_shape = array(indices)
    offsets = list(op.offset_dims)
    batch = [d for d in range(len(position)) if d not in offsets]
    vector_dim = op.index_vector_dim
    base = [position[d] for d in batch]

    def index_place(component: int) -> list[Coordinate]:
        if vector_dim == index_shape.rank:
            return base
        number = Coordinate(component, within=(component, component + 1))
        return [*base[:vector_dim], number, *base[vector_dim:]]

    windowed = [
        d
        for d in range(len(sizes))
        if d not in op.collapsed_slice_dims and d not in op.operand_batching_dims
    ]
    window: dict[int, Coordinate] = dict(zip(windowed, (position[d] for d in offsets), strict=True))
    source: list[Coordinate] = []
    starts: list[Start] = []
    for d, size in enumerate(sizes):
        if d in op.operand_batching_dims:
            at = op.start_indices_batching_dims[list(op.operand_batching_dims).index(d)]
            source.append(base[at - (1 if at > vector_dim else 0)])
            continue
        source.append(window.get(d, Coordinate(0)))
        most = size - op.slice_sizes[d]
        if d in op.start_index_map and most:
            component = list(op.start_index_map).index(d)
            starts.append(Start(d, indices, index_place(component), most))
    return looked_up(e, operand, source, starts)
