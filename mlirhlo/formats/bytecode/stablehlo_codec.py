"""The stablehlo and chlo dialects' own binary encodings, as StableHLO's and CHLO's bytecode have them.

What has no code there (dot algorithms, result accuracies, quantized types, …) is text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.ir import Attribute

from mlirhlo.dialects.stablehlo import attributes as stablehlo
from mlirhlo.dialects.stablehlo.structs import EnumAttr, StructAttr
from mlirhlo.dialects.stablehlo.types import TokenType
from mlirhlo.formats.bytecode.builtin_types import DYNAMIC
from mlirhlo.formats.bytecode.codec import Sink, Source

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
        raise source.problem(f"the stablehlo dialect has no attribute of code {code}")

    def read_type(self, source: Source) -> Attribute:
        """Decodes a type."""
        code = source.varint()
        if code:
            raise source.problem(f"the stablehlo dialect has no type of code {code}")
        return _TOKEN

    def write_attribute(self, value: Attribute, sink: Sink) -> bool:
        """Encodes an attribute."""
        if isinstance(value, EnumAttr) and type(value) in _ENUM_CODES:
            sink.varint(_ENUM_CODES[type(value)])
            sink.varint(value.number)
        elif isinstance(value, StructAttr) and type(value) in _STRUCT_CODES:
            struct = cast("StructAttr[Any]", value)
            code = _STRUCT_CODES[type(struct)]
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
