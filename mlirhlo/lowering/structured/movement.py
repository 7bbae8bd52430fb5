"""Instructions that move elements to indices known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from mlirhlo.dialects.hlo.element_types import PRED, PRIMITIVE_TYPES, S64, PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.data_movement import (
    BitcastConvertOp,
    BitcastOp,
    BroadcastOp,
    ConcatenateOp,
    DynamicUpdateSliceOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.structured import AssembleOp, GatherOp, identity_map, sizes_of
from mlirhlo.dialects.structured.dense import DYNAMIC
from mlirhlo.dialects.structured.index_maps import flattened, reversed_index, unflattened
from mlirhlo.interp.layouts import same_memory
from mlirhlo.lowering.memory_order import physical_dimensions, physical_order
from mlirhlo.lowering.structured.bodies import Body
from mlirhlo.lowering.structured.conversion import (
    Kernel,
    converts,
    element_of,
    in_memory_order,
    logical,
    no_form,
    static_shape,
    tensor,
    tensor_of,
)


def _moved(kernel: Kernel, op: Instruction, indices: Sequence[AffineExpr]) -> Sequence[SSAValue]:
    """The operand's elements at logical indices."""
    operand = op.inputs[0]
    shape = static_shape(op.shape)
    source = static_shape(shape_of(operand.type))
    return [kernel.read(kernel.array(operand), source, indices, physical_dimensions(shape))]


@converts("broadcast")
def convert_broadcast(kernel: Kernel, op: BroadcastOp) -> Sequence[SSAValue]:
    """`r[…] = x[r's dimensions]`"""
    indices = logical(static_shape(op.shape))
    return _moved(kernel, op, [indices[dim] for dim in op.dimensions])


@converts("transpose")
def convert_transpose(kernel: Kernel, op: TransposeOp) -> Sequence[SSAValue]:
    """`r[i, j] = x[j, i]`"""
    indices = logical(static_shape(op.shape))
    source = [indices[0]] * len(indices) if indices else []
    for position, dim in enumerate(op.dimensions):
        source[dim] = indices[position]
    return _moved(kernel, op, source)


@converts("reverse")
def convert_reverse(kernel: Kernel, op: ReverseOp) -> Sequence[SSAValue]:
    """`r[i] = x[n - 1 - i]`"""
    shape = static_shape(op.shape)
    indices = logical(shape)
    for dim in op.dimensions:
        indices[dim] = reversed_index(indices[dim], shape.dimensions[dim])
    return _moved(kernel, op, indices)


@converts("slice")
def convert_slice(kernel: Kernel, op: SliceOp) -> Sequence[SSAValue]:
    """`r[i] = x[start + i * stride]`"""
    slices = op.slices
    assert slices is not None
    indices = [
        index * row.stride + row.start
        for index, row in zip(logical(static_shape(op.shape)), slices.dimensions, strict=True)
    ]
    return _moved(kernel, op, indices)


@converts("reshape", "dynamic-reshape")
def convert_reshape(kernel: Kernel, op: ReshapeOp) -> Sequence[SSAValue]:
    """Indices by the number of the element."""
    shape = static_shape(op.shape)
    source = static_shape(shape_of(op.inputs[0].type))
    number = flattened(logical(shape), shape.dimensions)
    return _moved(kernel, op, unflattened(number, source.dimensions))


@converts("bitcast")
def convert_bitcast(kernel: Kernel, op: BitcastOp) -> Sequence[SSAValue]:
    """Memory as it is under other dimensions, and bits as another type.

    Tiles that put elements into another order than dimensions do are a table of where each element stands.
    """
    shape, source = static_shape(op.shape), static_shape(shape_of(op.operand.type))
    value = kernel.array(op.operand)
    if _width(source.element_type) == _width(shape.element_type):
        table = same_memory(source, shape)
        if table is not None:
            return [_by_table(kernel, op, table)]
    else:
        if any(s.layout is not None and s.layout.tiles for s in (shape, source)):
            raise no_form(op, "it changes the width of elements in tiles")
        value = _of_width(kernel, op, _in_one_row(kernel, value), shape.element_type)
    sizes = physical_dimensions(shape)
    space = [AffineExpr.dimension(dim) for dim in range(len(sizes))]
    body = Body([element_of(value)])
    block = body.finish([body.bits(body.arguments[0], shape.element_type)])
    indices = unflattened(flattened(space, sizes), sizes_of(value))
    return [kernel.map(tensor_of(shape), [value], [indices], block)]


def _by_table(kernel: Kernel, op: BitcastOp, table: Any) -> SSAValue:
    """An array whose elements are those of the operand by their row-major number; 0 where it is negative."""
    shape = static_shape(op.shape)
    source = _in_one_row(kernel, kernel.row_major(op.operand))
    element = element_of(source)
    numbers = ArrayShape(S64, shape.dimensions, (), shape.layout)
    places = kernel.constant(Literal.from_array(numbers, table.reshape(shape.dimensions)))
    sizes = physical_dimensions(shape)
    identity = identity_map(len(sizes))
    last = sizes_of(source)[0] - 1
    offsets = AffineMap(len(sizes), 0, (AffineExpr.constant(0),))
    (found,) = kernel.add(
        GatherOp(source, [places], [identity], [0], [last], offsets, tensor_of(shape, element))
    )
    body = Body([element, S64])
    inside = body.compare("GE", body.arguments[1], body.constant(S64, 0))
    chosen = body.emit("select", [inside, body.arguments[0], body.constant(element, 0)], element)
    block = body.finish([body.bits(chosen, shape.element_type)])
    reads = [identity.results, identity.results]
    return kernel.map(tensor_of(shape), [found, places], reads, block)


def _in_one_row(kernel: Kernel, value: SSAValue) -> SSAValue:
    sizes = sizes_of(value)
    plain = ArrayShape(element_of(value), sizes)
    indices = unflattened(AffineExpr.dimension(0), sizes)
    return kernel.read(value, plain, indices, (prod(sizes),))


def _width(element: PrimitiveType) -> int:
    """Bits of an element where arrays are seen as memory."""
    return 8 if element is PRED else element.bits


@converts("bitcast-convert")
def convert_bits(kernel: Kernel, op: BitcastConvertOp) -> Sequence[SSAValue]:
    """The same bits; another width adds a last dimension or takes it away."""
    shape = static_shape(op.shape)
    element = shape.element_type
    source = static_shape(shape_of(op.operand.type)).element_type
    if _width(source) == _width(element):
        value = kernel.as_laid_out(op.operand, shape)
        body = Body([source])
        block = body.finish([body.bits(body.arguments[0], element)])
        identity = [AffineExpr.dimension(dim) for dim in range(shape.rank)]
        return [kernel.map(tensor_of(shape), [value], [identity], block)]
    value = kernel.row_major(op.operand)
    if _width(source) < _width(element):
        return [kernel.laid_out(_of_width(kernel, op, value, element), shape)]
    value = _of_width(kernel, op, value, element)
    if shape.rank and value.type != tensor(element, shape.dimensions):
        plain = ArrayShape(element, sizes_of(value))
        number = flattened(
            [AffineExpr.dimension(dim) for dim in range(shape.rank)], shape.dimensions
        )
        value = kernel.read(value, plain, unflattened(number, plain.dimensions), shape.dimensions)
    return [kernel.laid_out(value, shape)]


def _of_width(kernel: Kernel, op: Instruction, value: SSAValue, element: PrimitiveType) -> SSAValue:
    """The bits of a row-major array as elements of another width, low bits first.

    Narrower: with one more dimension, for the bits of one element, but for arrays of one row, which get longer.
    Wider: the last dimension holds the bits of one element, of arrays of one row those of all.
    """
    source, sizes = element_of(value), sizes_of(value)
    wide, narrow = max(_width(source), _width(element)), min(_width(source), _width(element))
    if wide % narrow or source.is_complex or element.is_complex:
        raise no_form(op, f"{source} has no whole number of {element}")
    ratio = wide // narrow
    whole, part = PRIMITIVE_TYPES[f"u{wide}"], PRIMITIVE_TYPES[f"u{narrow}"]
    is_row = op.opcode.name == "bitcast"
    if _width(source) > _width(element):
        result = (sizes[0] * ratio,) if is_row else (*sizes, ratio)
        space = [AffineExpr.dimension(dim) for dim in range(len(result))]
        read = [space[0] // ratio] if is_row else space[:-1]
        body = Body([source])
        bits = body.bits(body.arguments[0], whole)
        at = body.convert(body.index(len(result) - 1, wide=max(result) > 1 << 31), whole)
        if is_row:
            at = body.emit("remainder", [at, body.constant(whole, ratio)], whole)
        shift = body.emit("multiply", [at, body.constant(whole, narrow)], whole)
        bits = body.emit("shift-right-logical", [bits, shift], whole)
        block = body.finish([body.bits(body.convert(bits, part), element)])
        return kernel.map(tensor(element, result), [value], [read], block)
    result = (sizes[0] // ratio,) if is_row else sizes[:-1]
    space = [AffineExpr.dimension(dim) for dim in range(len(result))]
    body = Body([source] * ratio)
    total: SSAValue | None = None
    for number, argument in enumerate(body.arguments):
        bits = body.convert(body.bits(argument, part), whole)
        if number:
            bits = body.emit("shift-left", [bits, body.constant(whole, number * narrow)], whole)
        total = bits if total is None else body.emit("or", [total, bits], whole)
    assert total is not None
    reads = [
        [space[0] * ratio + number] if is_row else [*space, AffineExpr.constant(number)]
        for number in range(ratio)
    ]
    block = body.finish([body.bits(total, element)])
    return kernel.map(tensor(element, result), [value] * ratio, reads, block)


@converts("concatenate")
def convert_concatenate(kernel: Kernel, op: ConcatenateOp) -> Sequence[SSAValue]:
    """Pieces one after the other."""
    shape = static_shape(op.shape)
    (dim,) = op.dimensions
    pieces: list[SSAValue] = []
    sizes: list[int] = []
    for value in op.inputs:
        own = static_shape(shape_of(value.type))
        ordered = ArrayShape(own.element_type, own.dimensions, (), shape.layout)
        pieces.append(kernel.as_laid_out(value, ordered))
        sizes.append(own.dimensions[dim])
    work = element_of(pieces[0])
    pieces = [kernel.as_type(piece, work) for piece in pieces]
    offsets = [
        in_memory_order(shape, [start if d == dim else 0 for d in range(shape.rank)])
        for start in accumulate(sizes[:-1], initial=0)
    ]
    return kernel.add(AssembleOp(pieces, offsets, tensor_of(shape, work)))


@converts("pad")
def convert_pad(kernel: Kernel, op: PadOp) -> Sequence[SSAValue]:
    """One piece among filling."""
    shape, padding = static_shape(op.shape), op.padding
    assert padding is not None
    own = static_shape(shape_of(op.operand.type))
    ordered = ArrayShape(own.element_type, own.dimensions, (), shape.layout)
    piece = kernel.as_laid_out(op.operand, ordered)
    fill = kernel.as_type(kernel.array(op.padding_value), own.element_type)
    offsets = in_memory_order(shape, [row.low for row in padding.dimensions])
    strides = in_memory_order(shape, [row.interior + 1 for row in padding.dimensions])
    type_ = tensor_of(shape, own.element_type)
    return kernel.add(AssembleOp([piece], [offsets], type_, strides=[strides], fill=fill))


@converts("dynamic-update-slice")
def convert_update(kernel: Kernel, op: DynamicUpdateSliceOp) -> Sequence[SSAValue]:
    """The update covers a part of the operand."""
    shape = static_shape(op.shape)
    own = static_shape(shape_of(op.inputs[0].type))
    update = static_shape(shape_of(op.inputs[1].type))
    ordered = ArrayShape(update.element_type, update.dimensions, (), shape.layout)
    pieces = [
        kernel.as_laid_out(op.inputs[0], shape),
        kernel.as_type(kernel.as_laid_out(op.inputs[1], ordered), own.element_type),
    ]
    starts = start_indices(kernel, op.inputs[2:], shape.rank)
    offsets: list[int] = []
    indices: list[SSAValue] = []
    for dim in physical_order(shape):
        is_free = update.dimensions[dim] < shape.dimensions[dim]
        offsets.append(DYNAMIC if is_free else 0)
        if is_free:
            indices.append(starts[dim])
    return kernel.add(
        AssembleOp(
            pieces,
            [[0] * shape.rank, offsets],
            tensor_of(shape, own.element_type),
            indices=indices,
        )
    )


def start_indices(kernel: Kernel, operands: Sequence[SSAValue], rank: int) -> list[SSAValue]:
    """A scalar a dimension, of scalars or of one array of them."""
    if len(operands) == 1 and static_shape(shape_of(operands[0].type)).rank == 1:
        shape = static_shape(shape_of(operands[0].type))
        array = kernel.array(operands[0])
        return [kernel.read(array, shape, [AffineExpr.constant(dim)], ()) for dim in range(rank)]
    return [kernel.array(value) for value in operands]
