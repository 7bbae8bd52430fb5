"""ShapeProto and LayoutProto to and from `Shape`.

Encoding writes what XLA writes: a layout with its padding alignment for every array, one
`is_dynamic_dimension` per dimension. Both directions are memoised; a module of 100,000 instructions
has some hundred shapes. Source: HLO protobuf reference, "Shapes and layouts".
"""

from __future__ import annotations

import functools

from mlirhlo.dialects.hlo.element_types import (
    BUFFER,
    BY_NUMBER,
    OPAQUE,
    TOKEN,
    TUPLE,
    PrimitiveType,
)
from mlirhlo.dialects.hlo.shapes import (
    OPAQUE_SHAPE,
    TOKEN_SHAPE,
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    Layout,
    OpaqueShape,
    Shape,
    TokenShape,
    TupleShape,
    default_layout,
)
from mlirhlo.formats.proto.message import (
    DecodeProblem,
    bytes_field,
    number_field,
    numbers_field,
)
from mlirhlo.formats.proto.shape_pb2 import LayoutProto, ProgramShapeProto, ShapeProto

_MAX_SIZE = 1 << 62
"""Largest product of sizes that is accepted; sizes beyond are damage, not data."""


@functools.lru_cache(maxsize=1 << 14)
def shape_of_bytes(data: bytes) -> Shape:
    """The shape of a serialised ShapeProto. Raises `DecodeProblem` HLO0213."""
    return decode_shape(ShapeProto.FromString(data))


def decode_shape(proto: ShapeProto) -> Shape:
    """The shape of a message; arrays without layout are row-major. Raises `DecodeProblem`."""
    element_type = BY_NUMBER.get(proto.element_type)
    if element_type is None:
        raise _problem(f"{int(proto.element_type)} is not an element type")
    if element_type is TUPLE:
        return TupleShape(tuple(map(decode_shape, proto.tuple_shapes)))
    if element_type is TOKEN:
        return TOKEN_SHAPE
    if element_type is OPAQUE:
        return OPAQUE_SHAPE
    if element_type is BUFFER:
        inner = decode_shape(proto.tuple_shapes[0]) if len(proto.tuple_shapes) == 1 else None
        if not isinstance(inner, ArrayShape):
            raise _problem("a buffer holds exactly one array")
        return BufferShape(inner)
    return _decode_array(proto, element_type)


def _decode_array(proto: ShapeProto, element_type: PrimitiveType) -> ArrayShape:
    sizes, dynamic = tuple(proto.dimensions), tuple(proto.is_dynamic_dimension)
    if dynamic and len(dynamic) != len(sizes):
        raise _problem(
            f"{len(dynamic)} dynamic marks for {len(sizes)} dimensions of {element_type}"
        )
    count = 1
    for dim, size in enumerate(sizes):
        if size == UNBOUNDED:
            if not dynamic:
                dynamic = tuple(s == UNBOUNDED for s in sizes)
            if not dynamic[dim]:
                raise _problem(f"dimension {dim} of {element_type} is unbounded but not dynamic")
        elif size < 0:
            raise _problem(f"dimension {dim} of {element_type} has the negative size {size}")
        else:
            count *= size or 1
    if count > _MAX_SIZE:
        raise _problem(f"{element_type}[{','.join(map(str, sizes))}] has too many elements")
    layout = default_layout(len(sizes))
    if proto.HasField("layout"):
        layout = decode_layout(proto.layout)
        if len(layout.minor_to_major) != len(sizes):
            raise _problem(
                f"a layout of {len(layout.minor_to_major)} dimensions for an array of {len(sizes)}"
            )
    return ArrayShape(element_type, sizes, dynamic if True in dynamic else (), layout)


def decode_layout(proto: LayoutProto) -> Layout:
    """The layout of a message. Raises `DecodeProblem` HLO0213."""
    order = tuple(proto.minor_to_major)
    if sorted(order) != list(range(len(order))):
        raise _problem(f"minor_to_major {{{','.join(map(str, order))}}} is not a permutation")
    if proto.tail_padding_alignment_in_elements < 0:
        raise _problem(f"a padding to {proto.tail_padding_alignment_in_elements} elements")
    for size in (size for tile in proto.tiles for size in tile.dimensions):
        if size < 0 and size != UNBOUNDED:
            raise _problem(f"a tile has the negative size {size}")
    return Layout(
        order,
        tuple(tuple(tile.dimensions) for tile in proto.tiles),
        proto.tail_padding_alignment_in_elements or 1,
        _index_type(proto.index_primitive_type),
        _index_type(proto.pointer_primitive_type),
        proto.element_size_in_bits,
        proto.memory_space,
        tuple((split.dimension, tuple(split.split_indices)) for split in proto.split_configs),
        decode_shape(proto.physical_shape) if proto.HasField("physical_shape") else None,
        proto.dynamic_shape_metadata_prefix_bytes,
    )


def _index_type(number: int) -> PrimitiveType | None:
    if not number:
        return None
    found = BY_NUMBER.get(number)
    if found is None or not found.is_unsigned:
        raise _problem(f"element type {number} cannot be an index or pointer type")
    return found


def _problem(message: str) -> DecodeProblem:
    return DecodeProblem("HLO0213", f"shape: {message}")


@functools.lru_cache(maxsize=1 << 14)
def shape_bytes(shape: Shape) -> bytes:
    """A serialised ShapeProto."""
    match shape:
        case ArrayShape():
            parts = [number_field(2, shape.element_type.number), numbers_field(3, shape.dimensions)]
            if shape.layout is not None:
                parts.append(bytes_field(5, layout_bytes(shape.layout)))
            parts.append(numbers_field(6, shape.dynamic or (0,) * len(shape.dimensions)))
            return b"".join(parts)
        case TupleShape():
            elements = [bytes_field(4, shape_bytes(element)) for element in shape.elements]
            return number_field(2, TUPLE.number) + b"".join(elements)
        case BufferShape():
            return number_field(2, BUFFER.number) + bytes_field(4, shape_bytes(shape.element))
        case TokenShape():
            return number_field(2, TOKEN.number)
        case OpaqueShape():
            return number_field(2, OPAQUE.number)


@functools.lru_cache(maxsize=1 << 12)
def layout_bytes(layout: Layout) -> bytes:
    """A serialised LayoutProto."""
    parts = [numbers_field(1, layout.minor_to_major)]
    parts += [bytes_field(6, numbers_field(1, tile)) for tile in layout.tiles]
    parts.append(number_field(7, layout.element_size_bits))
    parts.append(number_field(8, layout.memory_space))
    if layout.physical_shape is not None:
        parts.append(bytes_field(10, shape_bytes(layout.physical_shape)))
    if layout.index_type is not None:
        parts.append(number_field(11, layout.index_type.number))
    if layout.pointer_type is not None:
        parts.append(number_field(12, layout.pointer_type.number))
    parts.append(number_field(15, layout.metadata_prefix_bytes))
    parts.append(number_field(16, layout.tail_padding_alignment))
    for dimension, indices in layout.split_configs:
        split = number_field(1, dimension) + numbers_field(2, indices)
        parts.append(bytes_field(17, split))
    return b"".join(parts)


def program_shape_bytes(
    parameters: tuple[Shape, ...], result: Shape, names: tuple[str, ...]
) -> bytes:
    """A serialised ProgramShapeProto."""
    parts = [bytes_field(1, shape_bytes(shape)) for shape in parameters]
    parts.append(bytes_field(2, shape_bytes(result)))
    parts += [bytes_field(3, name.encode("utf-8", "replace")) for name in names]
    return b"".join(parts)


def decode_program_shape(proto: ProgramShapeProto) -> tuple[tuple[Shape, ...], Shape]:
    """Parameter and result shapes; a missing layout stays unset. Raises `DecodeProblem`."""
    return tuple(map(_keep_unset, proto.parameters)), _keep_unset(proto.result)


def _keep_unset(proto: ShapeProto) -> Shape:
    shape = decode_shape(proto)
    return _without_defaults(proto, shape)


def _without_defaults(proto: ShapeProto, shape: Shape) -> Shape:
    if isinstance(shape, ArrayShape):
        return shape if proto.HasField("layout") else shape.with_layout(None)
    if isinstance(shape, TupleShape):
        parts = zip(proto.tuple_shapes, shape.elements, strict=True)
        return TupleShape(tuple(_without_defaults(inner, part) for inner, part in parts))
    return shape
