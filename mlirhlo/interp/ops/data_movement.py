"""Ops that move elements and compute nothing with them.

Results are views where numpy can give one: values are never written to.
"""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.dynamic import (
    cut_to,
    is_dynamic,
    reshape_sizes,
    reshaped,
    sizes_of,
    whole,
)
from mlirhlo.interp.layouts import major_to_minor, same_memory
from mlirhlo.interp.numerics import work_dtype
from mlirhlo.interp.ops.elementwise import element_type
from mlirhlo.interp.registry import (
    Array,
    DynamicArray,
    Frame,
    Program,
    Run,
    Value,
    evaluates,
    prepares,
)

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.data_movement import (
        BitcastConvertOp,
        BitcastOp,
        BroadcastOp,
        ConcatenateOp,
        IotaOp,
        PadOp,
        ReshapeOp,
        ReverseOp,
        ShuffleOp,
        SliceOp,
        TransposeOp,
    )


def first(inputs: Sequence[Any], frame: Frame) -> Value:
    """The operand as it is; what moving a scalar comes to, also when it stands for many."""
    return cast(Value, inputs[0])


# ---------------------------------------------------------------- bitcasts


@prepares("bitcast")
def bitcast(op: BitcastOp, program: Program) -> Run:
    """The same bytes under another shape and layout.

    Elements are taken in the physical order of the operand's layout and laid down in that of the
    result's. Where tiles make the two differ in size or order, each result element is what lies at
    its place in memory; padding reads as zero.
    """
    shape = op.shape
    if not isinstance(shape, ArrayShape) or not isinstance(op.input_shapes[0], ArrayShape):
        return lambda inputs, frame: cast(Value, inputs[0])
    operand = op.input_shapes[0]
    if shape.is_scalar and operand.is_scalar:
        return _bits_as(operand.element_type, shape.element_type)
    source, target = operand.element_type, shape.element_type
    found = same_memory(operand, shape) if source.bits == target.bits else None
    if found is not None:
        return _by_places(found, source, target, shape.dimensions)
    to_physical = major_to_minor(operand)
    order = major_to_minor(shape)
    sizes = tuple(shape.dimensions[dim] for dim in order)
    from_physical = tuple(order.index(dim) for dim in range(shape.rank))

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        flat = inputs[0].transpose(to_physical).reshape(-1)
        if source is not target:
            flat = np.frombuffer(to_bytes(flat, source), np.uint8)
            flat = from_bytes(flat, target)
        return flat.reshape(sizes).transpose(from_physical)

    return run


def _by_places(
    found: Array, source: PrimitiveType, target: PrimitiveType, sizes: tuple[int, ...]
) -> Run:
    inside = found >= 0
    whole = bool(inside.all())
    as_target = _bits_as(source, target)

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        flat = inputs[0].reshape(-1)[found]
        if not whole:
            flat = np.where(inside, flat, np.zeros((), flat.dtype))
        return as_target([flat.reshape(sizes)], frame)

    return run


def to_bytes(flat: Array, type_: PrimitiveType) -> bytes:
    """The bytes of elements, sub-byte ones packed from the low bits up."""
    flat = np.ascontiguousarray(flat)
    if type_.bits >= 8 or type_.kind is Kind.PRED:
        return flat.tobytes()
    return np.packbits(_bits_of(flat, type_).reshape(-1), bitorder="little").tobytes()


def from_bytes(raw: Array, type_: PrimitiveType) -> Array:
    """The elements that bytes (uint8) hold; the inverse of `to_bytes`."""
    if type_.bits >= 8 or type_.kind is Kind.PRED:
        return raw.view(type_.dtype)
    bits = np.unpackbits(raw, bitorder="little").reshape(-1, type_.bits)
    return _from_bits(bits, type_)


def _bits_of(array: Array, type_: PrimitiveType) -> Array:
    """One more dimension with the bits of each element, lowest first."""
    if type_.kind is Kind.PRED:
        return array.astype(np.uint8)[..., None]
    raw = np.ascontiguousarray(array).view(np.uint8).reshape((*array.shape, -1))
    if type_.is_integer and type_.bits < 8:
        raw = array.astype(work_dtype(type_)).view(np.uint8)[..., None]
    bits = np.unpackbits(raw, axis=-1, bitorder="little")
    return bits[..., : type_.bits]


def _from_bits(bits: Array, type_: PrimitiveType) -> Array:
    """Elements from their bits in the last dimension, lowest first."""
    if type_.kind is Kind.PRED:
        return bits[..., 0].astype(np.bool_)
    if type_.bits < 8:
        weights = (1 << np.arange(type_.bits)).astype(np.uint8)
        raw = (bits * weights).sum(axis=-1, dtype=np.uint8)
        if type_.is_integer:
            return raw.view(work_dtype(type_)).astype(type_.dtype)
        return raw.view(type_.dtype)
    packed = np.packbits(bits, axis=-1, bitorder="little")
    return np.ascontiguousarray(packed).view(type_.dtype)[..., 0]


@prepares("bitcast-convert")
def bitcast_convert(op: BitcastConvertOp, program: Program) -> Run:
    """The same bits as another element type; a change of width adds or drops a last dimension."""
    return _bits_as(element_type(op), cast(ArrayShape, op.shape).element_type)


def _bits_as(source: PrimitiveType, target: PrimitiveType) -> Run:
    if source is target:
        return first
    from_bits = 8 if source.kind is Kind.PRED else source.bits
    to_bits = 8 if target.kind is Kind.PRED else target.bits

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        operand = inputs[0]
        if from_bits == to_bits and from_bits >= 8:
            return np.ascontiguousarray(operand).view(target.dtype).reshape(operand.shape)
        if min(from_bits, to_bits) >= 8:
            raw = np.ascontiguousarray(operand).reshape(-1).view(target.dtype)
            if from_bits > to_bits:
                return raw.reshape((*operand.shape, from_bits // to_bits))
            return raw.reshape(operand.shape[:-1])
        bits = _bits_of(operand, source)
        if from_bits > to_bits:
            return _from_bits(bits.reshape((*operand.shape, -1, to_bits)), target)
        if from_bits < to_bits:
            return _from_bits(bits.reshape((*operand.shape[:-1], to_bits)), target)
        return _from_bits(bits, target)

    return run


# ---------------------------------------------------------------- shapes


@prepares("broadcast")
def broadcast(op: BroadcastOp, program: Program) -> Run:
    """Operand dimension i becomes result dimension dimensions[i]."""
    shape = cast(ArrayShape, op.shape)
    if shape.is_scalar:
        return first
    dimensions = op.dimensions
    sizes, rank = shape.dimensions, shape.rank
    # Ascending order is the rule, but the text may name any.
    order = tuple(sorted(range(len(dimensions)), key=lambda i: dimensions[i]))
    bounds = cast(ArrayShape, op.input_shapes[0]).dimensions
    is_sorted = order == tuple(range(len(dimensions)))

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        operand = inputs[0]
        if not dimensions:
            return np.broadcast_to(operand, sizes)
        spread = [1] * rank
        target = list(sizes)
        for own, dim in enumerate(dimensions):
            spread[dim] = operand.shape[own]
            if bounds[own] != 1 or sizes[dim] == 1:
                target[dim] = operand.shape[own]  # its size in use, when dynamic
        ordered = operand if is_sorted else operand.transpose(order)
        return np.broadcast_to(ordered.reshape(spread), target)

    return run


@prepares("reshape")
def reshape(op: ReshapeOp, program: Program) -> Run:
    """The same elements in row-major order under another shape."""
    shape, operand = cast(ArrayShape, op.shape), cast(ArrayShape, op.input_shapes[0])
    sizes = shape.dimensions
    if shape.is_scalar and operand.is_scalar:
        return first
    if not (shape.is_dynamic or operand.is_dynamic):

        def static(inputs: Sequence[Any], frame: Frame) -> Array:
            return inputs[0].reshape(sizes)

        return static
    inferred = op.inferred_dimension

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        source = inputs[0]
        return reshaped(source, reshape_sizes(source.shape, shape, operand, inferred), "reshape")

    return run


@prepares("transpose")
def transpose(op: TransposeOp, program: Program) -> Run:
    """Result dimension i is operand dimension dimensions[i]."""
    dimensions = op.dimensions
    if not dimensions:
        return first

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        return inputs[0].transpose(dimensions)

    return run


@prepares("reverse")
def reverse(op: ReverseOp, program: Program) -> Run:
    """Dimensions turned round."""
    dimensions = op.dimensions

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        return np.flip(inputs[0], dimensions) if dimensions else inputs[0]

    return run


@prepares("concatenate")
def concatenate(op: ConcatenateOp, program: Program) -> Run:
    """Operands one after the other along a dimension."""
    dim = op.dimensions[0]

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        return inputs[0] if len(inputs) == 1 else np.concatenate(inputs, axis=dim)

    return run


@prepares("slice")
def slice_(op: SliceOp, program: Program) -> Run:
    """x[start:limit:stride] in every dimension; also of what is not in use, where the result is declared static."""
    slices, shape = op.slices, cast(ArrayShape, op.shape)
    assert slices is not None
    index = tuple(slice(d.start, d.limit, d.stride) for d in slices.dimensions)

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        return inputs[0][index]

    def dynamic(inputs: Sequence[Any], frame: Frame) -> Array | DynamicArray:
        sizes = zip(index, sizes_of(inputs[0]), strict=True)
        counts = [len(range(part.start, min(part.stop, n), part.step)) for part, n in sizes]
        return cut_to(whole(inputs[0])[index], shape, counts)

    return dynamic if shape.is_dynamic or is_dynamic(op.input_shapes[0]) else run


@prepares("pad")
def pad(op: PadOp, program: Program) -> Run:
    """Edges and gaps filled with the second operand; negative edges crop."""
    padding = op.padding
    assert padding is not None
    edges = tuple((d.low, d.high, d.interior) for d in padding.dimensions)

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        return padded(inputs[0], inputs[1], edges)

    return run


def padded(operand: Array, value: Array, edges: Sequence[tuple[int, int, int]]) -> Array:
    """`operand` with (low, high, interior) padding per dimension; cropping comes after filling."""
    sizes = [
        max(0, low + high + size + interior * max(size - 1, 0))
        for size, (low, high, interior) in zip(operand.shape, edges, strict=True)
    ]
    result = np.full(sizes, value, dtype=operand.dtype)
    source: list[slice] = []
    target: list[slice] = []
    for size, full, (low, _, interior) in zip(operand.shape, sizes, edges, strict=True):
        step = interior + 1
        first = max(0, -(low // step))  # first element whose place low + i*step is not negative
        count = max(0, min(size, (full - 1 - low) // step + 1) - first)
        source.append(slice(first, first + count))
        start = low + first * step
        target.append(slice(start, start + (count - 1) * step + 1, step) if count else slice(0, 0))
    result[tuple(target)] = operand[tuple(source)]
    return result


@prepares("iota")
def iota(op: IotaOp, program: Program) -> Run:
    """0, 1, 2, … along a dimension."""
    shape = cast(ArrayShape, op.shape)
    type_, dim = shape.element_type, op.iota_dimension
    spread = [1] * shape.rank
    spread[dim] = shape.dimensions[dim]
    count = np.arange(shape.dimensions[dim], dtype=np.int64)
    if type_.is_integer or type_.kind is Kind.PRED:
        line = count.astype(work_dtype(type_)).astype(type_.dtype)
    else:
        line = count.astype(work_dtype(type_)).astype(type_.dtype)
    result = np.broadcast_to(line.reshape(spread), shape.dimensions)
    return lambda inputs, frame: result


@evaluates("shuffle")
def shuffle(op: ShuffleOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Elements rotated towards lower indices, by the mode's shifts or by amounts given as operands; or permuted:
    each is the one at the place that the indices tell along the dimensions, a component each.

    Raises HLO0307 for another mode. Source: XLA's pass that writes shuffles by slices and gathers.
    """
    mode = str(op.mode).lower() if op.mode is not None else ""
    if mode == "permute" and op.indices is not None:
        return _permuted(np.asarray(inputs[0]), op.dimensions, op.indices.array)
    shifts = [*op.shifts, *(int(number) for number in re.findall(r"-?[0-9]+", mode))]
    shifts = shifts or [int(amount) for amounts in inputs[1:] for amount in np.ravel(amounts)]
    if len(shifts) == 1:
        shifts *= len(op.dimensions)
    if "rotate" not in mode or len(shifts) != len(op.dimensions):
        raise error(
            "HLO0307",
            f"shuffle: mode {op.mode} of {len(op.dimensions)} dimensions has no meaning here",
            help="the modes known are rotate, with one shift a dimension, and permute, with indices",
        )
    return np.roll(inputs[0], [-shift for shift in shifts], axis=op.dimensions)


def _permuted(x: Array, dimensions: Sequence[int], indices: Array) -> Array:
    """Elements of `x` at `indices` along dimensions.

    Indices have the rank of `x`, sizes of 1 standing for all, and one more dimension with a component for each of
    `dimensions`, which one component may do without.
    """
    parts = indices if indices.ndim == x.ndim + 1 else indices[..., np.newaxis]
    places: list[Array] = list(np.indices(x.shape, sparse=True))
    for component, dim in enumerate(dimensions):
        places[dim] = parts[..., component].astype(np.int64)
    return x[tuple(np.broadcast_arrays(*places))]
