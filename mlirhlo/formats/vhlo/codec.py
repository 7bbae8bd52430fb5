"""VHLO's binary encoding of attributes and types.

VHLO has copies of the attributes and types of other dialects, so that these may change. Here they
are read as what they are copies of: `!vhlo.tensor_v1<4x!vhlo.f32_v1>` is `tensor<4xf32>`. Writing
takes the same values; a `Sink` of the vhlo mode asks for this encoding.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    NoneType,
    Signedness,
    StringAttr,
    TensorType,
    TupleType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, TypeAttribute

from mlirhlo.dialects.stablehlo import attributes as stablehlo
from mlirhlo.dialects.stablehlo import mesh
from mlirhlo.dialects.stablehlo.structs import EnumAttr
from mlirhlo.dialects.stablehlo.types import (
    FutureType,
    TokenType,
    UniformQuantization,
    UniformQuantizedType,
)
from mlirhlo.dialects.stablehlo.words import RESULT_ACCURACY_MODES
from mlirhlo.formats.bytecode import builtin_attributes, builtin_types, dense
from mlirhlo.formats.bytecode.codec import Sink, Source
from mlirhlo.formats.bytecode.floats import (
    bits_of,
    double_bits,
    double_of,
    float_of,
    float_width,
)
from mlirhlo.formats.bytecode.stablehlo_codec import (
    bounds_of,
    mesh_of,
    read_accuracy,
    read_accuracy_mode,
    read_enum,
    sizes_of,
)
from mlirhlo.formats.vhlo.attributes import ApiVersionAttr

ENUMS: dict[int, type[EnumAttr]] = {
    3: stablehlo.ComparisonDirectionAttr,
    4: stablehlo.ComparisonTypeAttr,
    5: ApiVersionAttr,
    7: stablehlo.FftTypeAttr,
    11: stablehlo.PrecisionAttr,
    12: stablehlo.RngAlgorithmAttr,
    13: stablehlo.RngDistributionAttr,
    16: stablehlo.TransposeAttr,
}
_ENUM_CODES = {cls: code for code, cls in ENUMS.items()}

ARRAY = 1
BOOLEAN = 2
DICTIONARY = 6
FLOAT = 8
INTEGER = 9
ALIAS = 10
STRING = 14
TENSOR = 15
TYPE = 17
TYPE_EXTENSIONS = 18
ACCURACY_MODE = 19
ACCURACY = 20
SUB_AXIS = 21
AXIS_REF = 22
REPLICA_GROUP_AXES = 23
MESH_AXIS = 24
MESH = 25


def _signed(width: int) -> Attribute:
    return IntegerType(width)


def _unsigned(width: int) -> Attribute:
    return IntegerType(width, Signedness.UNSIGNED)


PLAIN_TYPES: dict[int, Attribute] = {
    0: _signed(1),
    2: builtin.bf16,
    3: builtin.f16,
    4: builtin.f32,
    5: builtin.f64,
    6: builtin.Float8E4M3FNType(),
    7: builtin.Float8E5M2Type(),
    9: IndexType(),
    10: _signed(4),
    11: _signed(8),
    12: _signed(16),
    13: _signed(32),
    14: _signed(64),
    15: _unsigned(4),
    16: _unsigned(8),
    17: _unsigned(16),
    18: _unsigned(32),
    19: _unsigned(64),
    22: TokenType(),
    27: builtin.Float8E4M3FNUZType(),
    28: builtin.Float8E5M2FNUZType(),
    29: builtin.Float8E4M3B11FNUZType(),
    31: _signed(2),
    32: _unsigned(2),
    33: NoneType(),
    34: builtin.FloatTF32Type(),
    35: builtin.Float8E4M3Type(),
    36: builtin.Float8E3M4Type(),
    37: builtin.Float4E2M1FNType(),
    38: builtin.Float6E2M3FNType(),
    39: builtin.Float6E3M2FNType(),
    40: builtin.Float8E8M0FNUType(),
}
"""Types without parameters, by code."""
PLAIN_CODES = {type_: code for code, type_ in PLAIN_TYPES.items()}

COMPLEX = 1
FUNCTION = 8
TENSOR_TYPE = 20
TENSOR_TYPE_WITH_ENCODING = 21
TUPLE = 23
QUANTIZED = 24
UNRANKED = 25
WITNESS = 26
QUANTIZED_PER_AXIS = 30
BUFFER = 41
FUTURE = 42

_SIGNED_STORAGE = 1
"""The flag of quantized types whose storage is signed."""


class VhloCodec:
    """Attributes and types of VHLO as those of StableHLO, func and builtin."""

    # ------------------------------------------------------------ reading

    def read_attribute(self, source: Source) -> Attribute:
        """Decodes an attribute."""
        code = source.varint()
        if code in ENUMS:
            return read_enum(source, ENUMS[code])
        match code:
            case 1:
                return ArrayAttr(source.attributes())
            case 2:
                return IntegerAttr.from_bool(bool(source.varint()))
            case 6:
                return DictionaryAttr(
                    dict(source.many(lambda: (source.string_attribute().data, source.attribute())))
                )
            case 8:
                type_ = source.type()
                width = float_width(type_)
                if width is None:
                    raise source.problem(f"a number of type {type_} cannot be")
                return FloatAttr(float_of(source.bits(width), type_), cast("Any", type_))
            case 9:
                type_ = source.type()
                width = builtin_attributes.integer_width(type_)
                if width is None:
                    raise source.problem(f"an integer of type {type_} cannot be")
                return builtin_attributes.integer_of(source.bits(width), type_)
            case 10:
                return stablehlo.OutputOperandAliasAttr(
                    stablehlo.OutputOperandAlias(
                        tuple(source.signed_list()), source.signed(), tuple(source.signed_list())
                    )
                )
            case 14:
                return StringAttr(source.string())
            case 15:
                return builtin_attributes.read_dense(source)
            case 17:
                return source.type()
            case 18:
                return bounds_of(source.signed_list())
            case 19:
                return read_accuracy_mode(source)
            case 20:
                return read_accuracy(source)
            case 21 | 22 | 23 | 24 | 25:
                return _read_mesh(code, source)
            case _:
                raise source.problem(f"vhlo has no attribute of code {code}")

    def read_type(self, source: Source) -> Attribute:
        """Decodes a type."""
        code = source.varint()
        plain = PLAIN_TYPES.get(code)
        if plain is not None:
            return plain
        match code:
            case 1:
                return cast("Attribute", cast("Any", ComplexType)(source.type()))
            case 8:
                return FunctionType.from_lists(source.types(), source.types())
            case 20:
                sizes = builtin_types.shape(source)
                return TensorType(source.type(), sizes)
            case 21:
                encoding = source.attribute()
                sizes = builtin_types.shape(source)
                return TensorType(source.type(), sizes, encoding)
            case 23:
                return TupleType(ArrayAttr(cast("Any", source.types())))
            case 24 | 30:
                return _read_quantized(code, source)
            case 25:
                return UnrankedTensorType(source.type())
            case 26:
                return _witness()
            case 41:
                sizes = builtin_types.shape(source)
                return MemRefType(source.type(), sizes)
            case 42:
                return FutureType(tuple(source.types()))
            case _:
                raise source.problem(f"vhlo has no type of code {code}")

    # ------------------------------------------------------------ writing

    def write_attribute(self, value: Attribute, sink: Sink) -> bool:
        """Encodes an attribute; False for what VHLO cannot say."""
        match value:
            case StringAttr():
                sink.varint(STRING)
                sink.string(value.data)
            case IntegerAttr():
                width = builtin_attributes.integer_width(value.type)
                if width is None or (width != 1 and value.type not in PLAIN_CODES):
                    return False
                if width == 1:
                    sink.varint(BOOLEAN)
                    sink.varint(value.value.data & 1)
                else:
                    sink.varint(INTEGER)
                    sink.type(value.type)
                    sink.bits(value.value.data, width)
            case FloatAttr():
                width = float_width(value.type)
                if width is None or value.type not in PLAIN_CODES:
                    return False
                sink.varint(FLOAT)
                sink.type(cast("Attribute", value.type))
                sink.bits(bits_of(value.value.data, value.type), width)
            case ArrayAttr():
                sink.varint(ARRAY)
                sink.attributes(value.data)
            case DictionaryAttr():
                sink.varint(DICTIONARY)
                sink.varint(len(value.data))
                for key in sorted(value.data):
                    sink.attribute(StringAttr(key))
                    sink.attribute(value.data[key])
            case EnumAttr() if type(value) in _ENUM_CODES:
                sink.varint(_ENUM_CODES[type(value)])
                sink.varint(value.number)
            case stablehlo.OutputOperandAliasAttr():
                sink.varint(ALIAS)
                sink.signed_list(value.data.output_tuple_indices)
                sink.signed(value.data.operand_index)
                sink.signed_list(value.data.operand_tuple_indices)
            case stablehlo.TypeExtensionsAttr():
                sink.varint(TYPE_EXTENSIONS)
                sink.signed_list(sizes_of(value))
            case stablehlo.ResultAccuracyModeAttr():
                sink.varint(ACCURACY_MODE)
                sink.varint(RESULT_ACCURACY_MODES[value.data])
            case stablehlo.ResultAccuracyAttr():
                sink.varint(ACCURACY)
                sink.bits(double_bits(value.data.atol), 64)
                sink.bits(double_bits(value.data.rtol), 64)
                sink.signed(value.data.ulps)
                sink.attribute(stablehlo.ResultAccuracyModeAttr(value.data.mode))
            case _:
                return _write_further(value, sink)
        return True

    def write_type(self, value: Attribute, sink: Sink) -> bool:
        """Encodes a type; False for what VHLO cannot say."""
        code = PLAIN_CODES.get(value)
        if code is not None:
            sink.varint(code)
            return True
        match value:
            case TensorType():
                has_encoding = not isinstance(value.encoding, NoneAttr)
                sink.varint(TENSOR_TYPE_WITH_ENCODING if has_encoding else TENSOR_TYPE)
                if has_encoding:
                    sink.attribute(value.encoding)
                sink.signed_list(builtin_types.sizes_of(value))
                sink.type(value.element_type)
            case ComplexType():
                sink.varint(COMPLEX)
                sink.type(value.element_type)
            case FunctionType():
                sink.varint(FUNCTION)
                sink.types(value.inputs.data)
                sink.types(value.outputs.data)
            case TupleType():
                sink.varint(TUPLE)
                sink.types(value.types.data)
            case UnrankedTensorType():
                sink.varint(UNRANKED)
                sink.type(value.element_type)
            case FutureType():
                sink.varint(FUTURE)
                sink.types(value.data)
            case MemRefType() if isinstance(value.layout, NoneAttr) and isinstance(
                value.memory_space, NoneAttr
            ):
                sink.varint(BUFFER)
                sink.signed_list(builtin_types.sizes_of(value))
                sink.type(value.element_type)
            case UniformQuantizedType() if not value.data.block_sizes:
                _write_quantized(value.data, sink)
            case _ if str(value) == "!shape.witness":
                sink.varint(WITNESS)
            case _:
                return False
        return True


def _witness() -> Attribute:
    from xdsl.dialects.builtin import UnregisteredAttr

    return UnregisteredAttr.with_name_and_type("shape.witness", True)(
        "shape.witness", True, False, ""
    )


def _read_mesh(code: int, source: Source) -> Attribute:
    match code:
        case 21:
            return mesh.SubAxisInfoAttr(mesh.SubAxisInfo(source.signed(), source.signed()))
        case 22:
            name = source.string_attribute().data
            info = source.attribute() if source.varint() else None
            if info is not None and not isinstance(info, mesh.SubAxisInfoAttr):
                raise source.problem("the part of an axis is expected")
            return mesh.AxisRefAttr(mesh.AxisRef(name, None if info is None else info.data))
        case 23:
            whole, axes = source.attribute(), source.attribute()
            if isinstance(whole, StringAttr):
                whole = builtin.SymbolRefAttr(whole)
            if not isinstance(axes, ArrayAttr):
                raise source.problem("a list of axes is expected")
            listed = cast("ArrayAttr[Attribute]", axes).data
            return mesh.ReplicaGroupMeshAxesAttr(mesh.ReplicaGroupMeshAxes(whole, tuple(listed)))
        case 24:
            name = source.string_attribute().data
            return mesh.MeshAxisAttr(mesh.MeshAxis(name, source.signed()))
        case _:
            axes = source.attribute()
            return mesh_of(source, axes, source.optional_attribute())


def _write_further(value: Attribute, sink: Sink) -> bool:
    match value:
        case mesh.SubAxisInfoAttr():
            sink.varint(SUB_AXIS)
            sink.signed(value.data.pre_size)
            sink.signed(value.data.size)
        case mesh.AxisRefAttr():
            info = value.data.sub_axis_info
            sink.varint(AXIS_REF)
            sink.attribute(StringAttr(value.data.axis))
            sink.varint(info is not None)
            if info is not None:
                sink.attribute(mesh.SubAxisInfoAttr(info))
        case mesh.ReplicaGroupMeshAxesAttr():
            whole = value.data.mesh
            if isinstance(whole, builtin.SymbolRefAttr):
                whole = whole.root_reference
            sink.varint(REPLICA_GROUP_AXES)
            sink.attribute(whole)
            sink.attribute(ArrayAttr(value.data.axes))
        case mesh.MeshAxisAttr():
            sink.varint(MESH_AXIS)
            sink.attribute(StringAttr(value.data.axis))
            sink.signed(value.data.size)
        case mesh.MeshAttr():
            sink.varint(MESH)
            sink.attribute(ArrayAttr([mesh.MeshAxisAttr(axis) for axis in value.data.axes]))
            sink.optional_attribute(value.data.device_ids)
        case _:
            return _write_constant(value, sink)
    return True


def _write_constant(value: Attribute, sink: Sink) -> bool:
    try:
        found = dense.raw_of(value)
    except dense.BadElements:
        return False
    if found is not None:
        if not isinstance(found[0], TensorType):
            return False
        builtin_attributes.write_dense(value, sink, TENSOR)
        return True
    if isinstance(value, TypeAttribute):
        sink.varint(TYPE)
        sink.type(value)
        return True
    return False


def _read_quantized(code: int, source: Source) -> Attribute:
    source.varint()  # flags: the signedness, which the storage type has too
    storage, expressed = source.type(), source.type()
    axis: int | None = None
    if code == QUANTIZED_PER_AXIS:
        axis = source.varint()
        low, high = source.signed(), source.signed()
        scales = tuple(source.many(lambda: double_of(source.bits(64))))
        zeros: tuple[int, ...] = tuple(source.signed_list())
    else:
        scales = (double_of(source.bits(64)),)
        zeros = (source.signed(),)
        low, high = source.signed(), source.signed()
    return UniformQuantizedType(
        UniformQuantization(storage, low, high, expressed, scales, zeros, axis)
    )


def _write_quantized(value: UniformQuantization, sink: Sink) -> None:
    per_axis = value.axis is not None
    storage = value.storage_type
    sink.varint(QUANTIZED_PER_AXIS if per_axis else QUANTIZED)
    sink.varint(0 if builtin_attributes.is_unsigned(storage) else _SIGNED_STORAGE)
    sink.type(storage)
    sink.type(value.expressed_type)
    if value.axis is not None:
        sink.varint(value.axis)
        sink.signed(value.storage_min)
        sink.signed(value.storage_max)
        sink.varint(len(value.scales))
        for scale in value.scales:
            sink.bits(double_bits(scale), 64)
        sink.signed_list(value.zero_points)
    else:
        sink.bits(double_bits(value.scales[0]), 64)
        sink.signed(value.zero_points[0])
        sink.signed(value.storage_min)
        sink.signed(value.storage_max)
