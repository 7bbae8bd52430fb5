"""The stablehlo and chlo dialects' own binary encodings, as StableHLO's and CHLO's bytecode have them.

What has no code there (quantized types, for one) is text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from mlirhlo.dialects.stablehlo import attributes as stablehlo
from mlirhlo.dialects.stablehlo import mesh
from mlirhlo.dialects.stablehlo.structs import EnumAttr, StructAttr
from mlirhlo.dialects.stablehlo.types import FutureType, TokenType
from mlirhlo.dialects.stablehlo.words import RESULT_ACCURACY_MODES
from mlirhlo.formats.bytecode.builtin_types import DYNAMIC
from mlirhlo.formats.bytecode.codec import Sink, Source
from mlirhlo.formats.bytecode.floats import double_of

_ENUMS: dict[int, type[EnumAttr]] = {
    2: stablehlo.ComparisonDirectionAttr,
    3: stablehlo.ComparisonTypeAttr,
    6: stablehlo.FftTypeAttr,
    8: stablehlo.PrecisionAttr,
    9: stablehlo.RngAlgorithmAttr,
    10: stablehlo.RngDistributionAttr,
    12: stablehlo.TransposeAttr,
}
"""Attributes of one word, by code."""

_STRUCTS: dict[int, tuple[type[StructAttr[Any]], tuple[str, ...]]] = {
    1: (stablehlo.ChannelHandleAttr, ("handle", "type")),
    4: (
        stablehlo.ConvDimensionNumbersAttr,
        (
            "input_batch_dimension",
            "input_feature_dimension",
            "input_spatial_dimensions[]",
            "kernel_input_feature_dimension",
            "kernel_output_feature_dimension",
            "kernel_spatial_dimensions[]",
            "output_batch_dimension",
            "output_feature_dimension",
            "output_spatial_dimensions[]",
        ),
    ),
    5: (
        stablehlo.DotDimensionNumbersAttr,
        (
            "lhs_batching_dimensions[]",
            "rhs_batching_dimensions[]",
            "lhs_contracting_dimensions[]",
            "rhs_contracting_dimensions[]",
        ),
    ),
    7: (
        stablehlo.GatherDimensionNumbersAttr,
        (
            "offset_dims[]",
            "collapsed_slice_dims[]",
            "operand_batching_dims[]",
            "start_indices_batching_dims[]",
            "start_index_map[]",
            "index_vector_dim",
        ),
    ),
    11: (
        stablehlo.ScatterDimensionNumbersAttr,
        (
            "update_window_dims[]",
            "inserted_window_dims[]",
            "input_batching_dims[]",
            "scatter_indices_batching_dims[]",
            "scatter_dims_to_operand_dims[]",
            "index_vector_dim",
        ),
    ),
    14: (
        stablehlo.OutputOperandAliasAttr,
        ("output_tuple_indices[]", "operand_index", "operand_tuple_indices[]"),
    ),
}
"""Attributes of several fields in the order of their encoding, by code."""

_BATCHING = {
    7: ("operand_batching_dims[]", "start_indices_batching_dims[]"),
    11: ("input_batching_dims[]", "scatter_indices_batching_dims[]"),
}
"""Fields that came later; former encodings lack them."""

_TYPE_EXTENSIONS = 13
_TOKEN = TokenType()
_ENUM_CODES = {cls: code for code, cls in _ENUMS.items()}
_STRUCT_CODES = {cls: code for code, (cls, _) in _STRUCTS.items()}


def read_enum(source: Source, cls: type[EnumAttr]) -> Attribute:
    """An attribute of one word, given by its number."""
    number = source.varint()
    for word, value in cls.cases.items():
        if value == number:
            return cls(word)
    raise source.problem(f"{cls.name} has no case of number {number}")


def bounds_of(sizes: list[int]) -> Attribute:
    """Bounds of dynamic dimensions."""
    return stablehlo.TypeExtensionsAttr(
        stablehlo.TypeExtensions(tuple(None if s == DYNAMIC else s for s in sizes))
    )


def sizes_of(value: stablehlo.TypeExtensionsAttr) -> list[int]:
    """Bounds as they are stored."""
    return [DYNAMIC if bound is None else bound for bound in value.data.bounds]


class StablehloCodec:
    """Attributes and types of the stablehlo dialect."""

    def read_attribute(self, source: Source) -> Attribute:
        """Decodes an attribute."""
        code = source.varint()
        if code in _ENUMS:
            return read_enum(source, _ENUMS[code])
        if code in _STRUCTS:
            return _read_struct(source, code)
        if code == _TYPE_EXTENSIONS:
            return bounds_of(source.signed_list())
        if code in _LATER:
            return _LATER[code](source)
        raise source.problem(f"the stablehlo dialect has no attribute of code {code}")

    def read_type(self, source: Source) -> Attribute:
        """Decodes a type."""
        code = source.varint()
        if code == 0:
            return _TOKEN
        if code == 1:
            return FutureType(tuple(source.types()))
        raise source.problem(f"the stablehlo dialect has no type of code {code}")

    def write_attribute(self, value: Attribute, sink: Sink) -> bool:
        """Encodes an attribute."""
        if isinstance(value, EnumAttr) and type(value) in _ENUM_CODES:
            sink.varint(_ENUM_CODES[type(value)])
            sink.varint(value.number)
        elif isinstance(value, StructAttr):
            struct = cast("StructAttr[Any]", value)
            code = _STRUCT_CODES.get(type(struct), -1)
            if code < 0:
                return False
            sink.varint(code)
            for name in _STRUCTS[code][1]:
                if name.endswith("[]"):
                    sink.signed_list(getattr(struct.data, name[:-2]))
                else:
                    sink.signed(getattr(struct.data, name))
        elif isinstance(value, stablehlo.TypeExtensionsAttr):
            sink.varint(_TYPE_EXTENSIONS)
            sink.signed_list(sizes_of(value))
        else:
            return False
        return True

    def write_type(self, value: Attribute, sink: Sink) -> bool:
        """Encodes a type."""
        if not isinstance(value, TokenType):
            return False
        sink.varint(0)
        return True


def _read_struct(source: Source, code: int) -> Attribute:
    cls, names = _STRUCTS[code]
    begin = source.cursor.pos
    try:
        values = _fields(source, names)
        if source.cursor.done():
            return cls(cls.value_class(**values))
    except Exception:
        if code not in _BATCHING:
            raise
    source.cursor.pos = begin
    former = tuple(name for name in names if name not in _BATCHING.get(code, ()))
    return cls(cls.value_class(**_fields(source, former)))


def _fields(source: Source, names: tuple[str, ...]) -> Mapping[str, Any]:
    return {
        name.removesuffix("[]"): (
            tuple(source.signed_list()) if name.endswith("[]") else source.signed()
        )
        for name in names
    }


def _algorithm(source: Source) -> Attribute:
    return stablehlo.DotAlgorithmAttr(
        stablehlo.DotAlgorithm(
            source.type(),
            source.type(),
            source.type(),
            source.signed(),
            source.signed(),
            source.signed(),
            bool(source.cursor.byte()),
        )
    )


def read_accuracy_mode(source: Source) -> Attribute:
    """How the exactness of a result is said, by its number."""
    number = source.varint()
    for word, value in RESULT_ACCURACY_MODES.items():
        if value == number:
            return stablehlo.ResultAccuracyModeAttr(word)
    raise source.problem(f"no result accuracy mode has number {number}")


def read_accuracy(source: Source) -> Attribute:
    """How exact a result shall be."""
    atol, rtol = double_of(source.bits(64)), double_of(source.bits(64))
    ulps, mode = source.signed(), source.attribute()
    if not isinstance(mode, stablehlo.ResultAccuracyModeAttr):
        raise source.problem("a result accuracy mode is expected")
    return stablehlo.ResultAccuracyAttr(stablehlo.ResultAccuracy(atol, rtol, ulps, mode.data))


def _optional(source: Source) -> Attribute | None:
    return source.attribute() if source.cursor.byte() else None


def _groups(source: Source) -> Attribute:
    whole = source.attribute()
    return mesh.ReplicaGroupMeshAxesAttr(
        mesh.ReplicaGroupMeshAxes(whole, tuple(source.attributes()))
    )


def _axis_ref(source: Source) -> Attribute:
    name, info = source.string(), _optional(source)
    if info is not None and not isinstance(info, mesh.SubAxisInfoAttr):
        raise source.problem("the part of an axis is expected")
    return mesh.AxisRefAttr(mesh.AxisRef(name, None if info is None else info.data))


def _mesh(source: Source) -> Attribute:
    axes = source.attribute()
    return mesh_of(source, axes, _optional(source))


def mesh_of(source: Source, axes: Attribute, ids: Attribute | None) -> Attribute:
    """A mesh from a list of its axes. Raises HLO0221 for another list."""
    if not isinstance(axes, ArrayAttr):
        raise source.problem("a list of axes is expected")
    found: list[mesh.MeshAxis] = []
    for axis in cast("ArrayAttr[Attribute]", axes).data:
        if not isinstance(axis, mesh.MeshAxisAttr):
            raise source.problem("the axis of a mesh is expected")
        found.append(axis.data)
    return mesh.MeshAttr(mesh.Mesh(tuple(found), ids))


_LATER: dict[int, Callable[[Source], Attribute]] = {
    15: _algorithm,
    16: read_accuracy_mode,
    17: read_accuracy,
    18: _groups,
    19: lambda source: mesh.SubAxisInfoAttr(mesh.SubAxisInfo(source.signed(), source.signed())),
    20: _axis_ref,
    21: lambda source: mesh.MeshAxisAttr(mesh.MeshAxis(source.string(), source.signed())),
    22: _mesh,
}
"""Attributes whose codes came later; they are written as text, which every reader takes."""


class ChloCodec:
    """Attributes of the chlo dialect: the words of comparisons."""

    def __init__(self, direction: type[EnumAttr], kind: type[EnumAttr]) -> None:
        self._classes = (direction, kind)

    def read_attribute(self, source: Source) -> Attribute:
        """Decodes an attribute."""
        code = source.varint()
        if code >= len(self._classes):
            raise source.problem(f"the chlo dialect has no attribute of code {code}")
        return read_enum(source, self._classes[code])

    def read_type(self, source: Source) -> Attribute:
        """There are none."""
        raise source.problem(f"the chlo dialect has no type of code {source.varint()}")

    def write_attribute(self, value: Attribute, sink: Sink) -> bool:
        """Encodes an attribute."""
        if not isinstance(value, EnumAttr) or type(value) not in self._classes:
            return False
        sink.varint(self._classes.index(type(value)))
        sink.varint(value.number)
        return True

    def write_type(self, value: Attribute, sink: Sink) -> bool:
        """There are none."""
        return False
