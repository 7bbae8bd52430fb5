"""LiteralProto to and from `Literal`, and to numpy for the inputs and results of snapshots.

LiteralProto keeps elements in physical order, `Literal` in logical order. A LiteralProto without data
for a shape that has elements stands for a literal that was elided from text (`{...}`): that is how
such a module travels through protos, and XLA refuses it as it should.
Source: HLO protobuf reference, "LiteralProto".
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, default_layout
from mlirhlo.formats.proto.elements import get_elements, set_elements
from mlirhlo.formats.proto.literal_pb2 import LiteralProto
from mlirhlo.formats.proto.message import DecodeProblem
from mlirhlo.formats.proto.shapes import decode_shape, shape_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Value: TypeAlias = "NDArray[Any] | tuple[Value, ...]"
"""An array, or a tuple of values."""


def decode_literal(proto: LiteralProto) -> Literal:
    """The literal of a message. Raises `DecodeProblem` HLO0206 or HLO0213."""
    if not proto.HasField("shape"):
        raise DecodeProblem("HLO0206", "a literal without a shape")
    return _decode(proto, decode_shape(proto.shape))


def _decode(proto: LiteralProto, shape: Shape) -> Literal:
    if isinstance(shape, TupleShape):
        if not proto.tuple_literals and shape.elements:
            return Literal.elided(shape)
        if len(proto.tuple_literals) != len(shape.elements):
            raise DecodeProblem(
                "HLO0206",
                f"{len(proto.tuple_literals)} literals in a tuple of {len(shape.elements)}",
            )
        parts = zip(proto.tuple_literals, shape.elements, strict=True)
        elements = tuple(_decode(part, element) for part, element in parts)
        return Literal(TupleShape(tuple(e.shape for e in elements)), None, elements)
    if not isinstance(shape, ArrayShape):
        raise DecodeProblem("HLO0206", f"a literal cannot be a {shape}")
    if any(size < 0 for size in shape.dimensions):
        raise DecodeProblem("HLO0206", f"a literal of the unbounded shape {shape}")
    data = get_elements(proto, shape.element_type)
    unit, count = shape.element_type.byte_size, shape.element_count
    if not data and count:
        return Literal.elided(shape)
    if len(data) != count * unit:
        found = f"{len(data) / unit:g} {shape.element_type} elements"
        raise DecodeProblem("HLO0206", f"{found} in a literal of {count}")
    static = ArrayShape(shape.element_type, shape.dimensions, (), shape.layout)
    return Literal(static, _reorder(data, shape, to_logical=True))


def encode_literal(literal: Literal) -> LiteralProto:
    """The message of a literal; without data where it is elided."""
    proto = LiteralProto()
    proto.shape.ParseFromString(shape_bytes(stored_shape(literal.shape)))
    if isinstance(literal.shape, TupleShape):
        for element in literal.elements:
            proto.tuple_literals.append(encode_literal(element))
    elif not literal.is_elided and isinstance(literal.shape, ArrayShape):
        data = _reorder(literal.data, literal.shape, to_logical=False)
        set_elements(proto, literal.shape.element_type, data)
    return proto


@functools.lru_cache(maxsize=1 << 12)
def stored_shape(shape: Shape) -> Shape:
    """The shape as a LiteralProto has it: with a layout, in which sizes in bits of stored elements mean nothing.

    XLA refuses a literal whose shape has such a size, or has no layout.
    """
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(stored_shape, shape.elements)))
    if isinstance(shape, ArrayShape):
        layout = shape.layout or default_layout(len(shape.dimensions))
        return shape.with_layout(replace(layout, element_size_bits=0))
    return shape


def fitted(literal: Literal, shape: Shape) -> Literal:
    """The literal under the static shape of its constant, where that is the same in a proto."""
    if isinstance(shape, ArrayShape) and isinstance(literal.shape, ArrayShape):
        static = ArrayShape(shape.element_type, shape.dimensions, (), shape.layout)
        if static != literal.shape and stored_shape(static) == literal.shape:
            return literal.with_shape(static)
    return literal


def _reorder(data: bytes, shape: ArrayShape, *, to_logical: bool) -> bytes:
    """Between physical and logical order; only minor_to_major counts."""
    layout = shape.layout
    order = () if layout is None else layout.minor_to_major
    # Dimensions of size 1 have no place: {1,0} and {0,1} are the same for f32[1,5].
    real = [dim for dim in order if shape.dimensions[dim] != 1]
    if real == sorted(real, reverse=True) or not data:
        return data
    import numpy as np

    units = np.frombuffer(data, np.dtype((np.void, shape.element_type.byte_size)))
    physical = order[::-1]
    if to_logical:
        grid = units.reshape([shape.dimensions[dim] for dim in physical])
        return grid.transpose(np.argsort(physical)).tobytes()
    return units.reshape(shape.dimensions).transpose(physical).tobytes()


def literal_to_numpy(proto: LiteralProto) -> Value:
    """The value of a literal in logical order, dynamic dimensions cut to their actual sizes.

    Arrays are read-only. Raises `HloError` HLO0206 or HLO0213 for a damaged or elided literal.
    """
    try:
        literal = decode_literal(proto)
    except DecodeProblem as problem:
        raise problem.at("<literal>", "literal") from None
    return _value(proto, literal)


def _value(proto: LiteralProto, literal: Literal) -> Value:
    if isinstance(literal.shape, TupleShape):
        parts = zip(proto.tuple_literals, literal.elements, strict=True)
        return tuple(_value(part, element) for part, element in parts)
    if literal.is_elided:
        problem = DecodeProblem("HLO0206", f"no data in a literal of {literal.shape}")
        raise problem.at("<literal>", "literal")
    array = literal.array
    sizes = tuple(proto.dynamic_sizes)
    if len(sizes) == array.ndim:
        array = array[tuple(slice(0, max(0, size)) for size in sizes)]
    return array


def numpy_to_literal(value: Value, shape: Shape | None = None) -> LiteralProto:
    """The message of an array or tuple of arrays.

    `shape` gives the layout, and the element type where numpy has none of that name; without
    it the array's own type and a row-major layout are taken. Raises `TypeError` for types HLO lacks
    and `ValueError` for sizes that differ.
    """
    return encode_literal(_literal(value, shape))


def _literal(value: Value, shape: Shape | None) -> Literal:
    if isinstance(value, tuple):
        shapes = shape.elements if isinstance(shape, TupleShape) else (None,) * len(value)
        return Literal.tuple_of([_literal(v, s) for v, s in zip(value, shapes, strict=True)])
    import numpy as np

    array = np.asarray(value)
    if shape is None:
        element_type = primitive_type_of(array.dtype)
        shape = ArrayShape(element_type, array.shape, (), default_layout(array.ndim))
    return Literal.from_array(shape, array)


def primitive_type_of(dtype: np.dtype[Any]) -> PrimitiveType:
    """The HLO element type of a numpy or ml_dtypes type. Raises `TypeError` when there is none."""
    for row in PRIMITIVE_TYPES.values():
        if row.numpy_name and row.dtype == dtype:
            return row
    raise TypeError(f"HLO has no element type for numpy's {dtype}")
