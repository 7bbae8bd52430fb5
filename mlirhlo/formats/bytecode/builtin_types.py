"""The builtin dialect's binary encoding of types."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    ComplexType,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    NoneType,
    Signedness,
    TensorType,
    TupleType,
    UnrankedMemRefType,
    UnrankedTensorType,
    VectorType,
)
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from mlirhlo.formats.bytecode.codec import Sink, Source

_FLOATS: dict[int, Attribute] = {
    3: builtin.bf16,
    4: builtin.f16,
    5: builtin.f32,
    6: builtin.f64,
    7: builtin.f80,
    8: builtin.f128,
}
_FLOAT_CODES = {type_: code for code, type_ in _FLOATS.items()}
_SMALL_FLOATS: dict[int, Attribute] = {
    21: builtin.FloatTF32Type(),
    22: builtin.Float8E5M2Type(),
    23: builtin.Float8E4M3Type(),
    24: builtin.Float8E4M3FNType(),
    25: builtin.Float8E5M2FNUZType(),
    26: builtin.Float8E4M3FNUZType(),
    27: builtin.Float8E4M3B11FNUZType(),
    28: builtin.Float8E3M4Type(),
    29: builtin.Float4E2M1FNType(),
    30: builtin.Float6E2M3FNType(),
    31: builtin.Float6E3M2FNType(),
    32: builtin.Float8E8M0FNUType(),
}
"""Codes that came without a new version: written as text, which every reader takes."""
_SIGNS = (Signedness.SIGNLESS, Signedness.SIGNED, Signedness.UNSIGNED)

DYNAMIC = -(1 << 63)
"""A dynamic size as MLIR stores it."""

_MAX_WIDTH = (1 << 24) - 1
_INDEX = IndexType()
_NONE = NoneType()

# ---------------------------------------------------------------- reading


def read(source: Source) -> Attribute:
    """Decodes a type."""
    code = source.varint()
    match code:
        case 0:
            return _integer(source)
        case 1:
            return _INDEX
        case 2:
            return FunctionType.from_lists(source.types(), source.types())
        case 3 | 4 | 5 | 6 | 7 | 8:
            return _FLOATS[code]
        case 9:
            return cast("Attribute", cast("Any", ComplexType)(source.type()))
        case 10 | 11:
            return _memref(source, has_space=code == 11)
        case 12:
            return _NONE
        case 13:
            sizes = shape(source)
            return TensorType(source.type(), sizes)
        case 14:
            encoding = source.attribute()
            sizes = shape(source)
            return TensorType(source.type(), sizes, encoding)
        case 15:
            return TupleType(ArrayAttr(cast("Any", source.types())))
        case 16:
            return UnrankedMemRefType(source.type(), NoneAttr())
        case 17:
            space = source.attribute()
            return UnrankedMemRefType(source.type(), space)
        case 18:
            return UnrankedTensorType(source.type())
        case 19:
            sizes = shape(source)
            return VectorType(source.type(), sizes)
        case 20:
            return _scalable(source)
        case _ if code in _SMALL_FLOATS:
            return _SMALL_FLOATS[code]
        case _:
            raise source.problem(f"the builtin dialect has no type of code {code}")


def _integer(source: Source) -> Attribute:
    value = source.varint()
    width = value >> 2
    if value & 3 == 3 or width > _MAX_WIDTH:
        raise source.problem(f"an integer type of {width} bits cannot be")
    return IntegerType(width, _SIGNS[value & 3])


def shape(source: Source) -> list[int]:
    """Sizes; a dynamic one as xDSL has it."""
    sizes = source.signed_list()
    for dim, size in enumerate(sizes):
        if size == DYNAMIC:
            sizes[dim] = DYNAMIC_INDEX
        elif size < 0:
            raise source.problem(f"a size of {size} cannot be")
    return sizes


def _memref(source: Source, *, has_space: bool) -> Attribute:
    space: Attribute = source.attribute() if has_space else NoneAttr()
    sizes = shape(source)
    element, layout = source.type(), source.attribute()
    if isinstance(layout, builtin.AffineMapAttr):
        if layout.data == AffineMap.identity(len(sizes)):
            layout = NoneAttr()
    elif not isinstance(layout, builtin.MemRefLayoutAttr):
        layout = cast("Any", layout)
    return MemRefType(element, sizes, cast("Any", layout), space)


def _scalable(source: Source) -> Attribute:
    flags = source.many(source.varint)
    sizes = shape(source)
    if len(flags) != len(sizes):
        raise source.problem("a scalable vector needs a flag for each dimension")
    scalable = ArrayAttr([IntegerAttr(-(flag & 1), 1) for flag in flags])
    return VectorType(source.type(), sizes, cast("Any", scalable))


# ---------------------------------------------------------------- writing


def write(value: Attribute, sink: Sink) -> bool:
    """Encodes a type; False for what has no binary encoding (8-bit floats, for one)."""
    match value:
        case TensorType():
            has_encoding = not isinstance(value.encoding, NoneAttr)
            sink.varint(14 if has_encoding else 13)
            if has_encoding:
                sink.attribute(value.encoding)
            sink.signed_list(sizes_of(value))
            sink.type(value.element_type)
        case IntegerType():
            sink.varint(0)
            sink.varint(value.width.data << 2 | _SIGNS.index(value.signedness.data))
        case IndexType():
            sink.varint(1)
        case FunctionType():
            sink.varint(2)
            sink.types(value.inputs.data)
            sink.types(value.outputs.data)
        case ComplexType():
            sink.varint(9)
            sink.type(value.element_type)
        case MemRefType():
            _write_memref(value, sink)
        case NoneType():
            sink.varint(12)
        case TupleType():
            sink.varint(15)
            sink.types(value.types.data)
        case UnrankedMemRefType():
            has_space = not isinstance(value.memory_space, NoneAttr)
            sink.varint(17 if has_space else 16)
            if has_space:
                sink.attribute(value.memory_space)
            sink.type(value.element_type)
        case UnrankedTensorType():
            sink.varint(18)
            sink.type(value.element_type)
        case VectorType():
            _write_vector(value, sink)
        case _:
            code = _FLOAT_CODES.get(value)
            if code is None:
                return False
            sink.varint(code)
    return True


def sizes_of(value: TensorType[Attribute] | MemRefType[Attribute]) -> list[int]:
    """Sizes as MLIR stores them."""
    return [DYNAMIC if size == DYNAMIC_INDEX else size for size in value.get_shape()]


def _write_memref(value: MemRefType[Attribute], sink: Sink) -> None:
    has_space = not isinstance(value.memory_space, NoneAttr)
    sink.varint(11 if has_space else 10)
    if has_space:
        sink.attribute(value.memory_space)
    sizes = sizes_of(value)
    sink.signed_list(sizes)
    sink.type(value.element_type)
    layout: Attribute = value.layout
    if isinstance(layout, NoneAttr):
        layout = builtin.AffineMapAttr(AffineMap.identity(len(sizes)))
    sink.attribute(layout)


def _write_vector(value: VectorType[Attribute], sink: Sink) -> None:
    flags = [bool(flag.value.data) for flag in value.scalable_dims.data]
    sink.varint(20 if any(flags) else 19)
    if any(flags):
        sink.varint(len(flags))
        for flag in flags:
            sink.varint(int(flag))
    sink.signed_list([size.data for size in value.shape.data])
    sink.type(value.element_type)
