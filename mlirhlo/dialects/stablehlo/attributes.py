"""The attributes of the stablehlo dialect; those of one word and those of meshes come from next door.

Each holds a frozen value (`attr.data.offset_dims`); those of one word hold the word (`attr.data ==
"LT"`). Field names are those of the dialect's definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser

from mlirhlo.dialects.stablehlo.float_text import float_text
from mlirhlo.dialects.stablehlo.mesh import (
    AxisRefAttr,
    MeshAttr,
    MeshAxisAttr,
    ReplicaGroupMeshAxesAttr,
    SubAxisInfoAttr,
)
from mlirhlo.dialects.stablehlo.structs import (
    Ints,
    StructAttr,
    TextualAttr,
)
from mlirhlo.dialects.stablehlo.words import (
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    FftTypeAttr,
    PrecisionAttr,
    ResultAccuracyModeAttr,
    RngAlgorithmAttr,
    RngDistributionAttr,
    TransposeAttr,
)

__all__ = [
    "ATTRIBUTES",
    "AxisRefAttr",
    "ChannelHandle",
    "ChannelHandleAttr",
    "ComparisonDirectionAttr",
    "ComparisonTypeAttr",
    "ConvDimensionNumbers",
    "ConvDimensionNumbersAttr",
    "DotAlgorithm",
    "DotAlgorithmAttr",
    "DotDimensionNumbers",
    "DotDimensionNumbersAttr",
    "FftTypeAttr",
    "FormerTypeExtensionsAttr",
    "GatherDimensionNumbers",
    "GatherDimensionNumbersAttr",
    "Ints",
    "MeshAttr",
    "MeshAxisAttr",
    "OutputOperandAlias",
    "OutputOperandAliasAttr",
    "PrecisionAttr",
    "ReplicaGroupMeshAxesAttr",
    "ResultAccuracy",
    "ResultAccuracyAttr",
    "ResultAccuracyModeAttr",
    "RngAlgorithmAttr",
    "RngDistributionAttr",
    "ScatterDimensionNumbers",
    "ScatterDimensionNumbersAttr",
    "SubAxisInfoAttr",
    "TransposeAttr",
    "TypeExtensions",
    "TypeExtensionsAttr",
    "parse_conv_dimension_numbers",
]

# ---------------------------------------------------------------- dimension numbers


@dataclass(frozen=True, slots=True)
class DotDimensionNumbers:
    """Which dimensions of `dot_general` are batched and which contracted."""

    lhs_batching_dimensions: Ints = ()
    rhs_batching_dimensions: Ints = ()
    lhs_contracting_dimensions: Ints = ()
    rhs_contracting_dimensions: Ints = ()


@irdl_attr_definition
class DotDimensionNumbersAttr(StructAttr[DotDimensionNumbers]):
    """`#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>`."""

    name = "stablehlo.dot"
    value_class = DotDimensionNumbers


@dataclass(frozen=True, slots=True)
class GatherDimensionNumbers:
    """How `gather` maps dimensions of operand, indices and result."""

    offset_dims: Ints = ()
    collapsed_slice_dims: Ints = ()
    operand_batching_dims: Ints = ()
    start_indices_batching_dims: Ints = ()
    start_index_map: Ints = ()
    index_vector_dim: int = 0


@irdl_attr_definition
class GatherDimensionNumbersAttr(StructAttr[GatherDimensionNumbers]):
    """`#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>`."""

    name = "stablehlo.gather"
    value_class = GatherDimensionNumbers


@dataclass(frozen=True, slots=True)
class ScatterDimensionNumbers:
    """How `scatter` maps dimensions of operand, indices and updates."""

    update_window_dims: Ints = ()
    inserted_window_dims: Ints = ()
    input_batching_dims: Ints = ()
    scatter_indices_batching_dims: Ints = ()
    scatter_dims_to_operand_dims: Ints = ()
    index_vector_dim: int = 0


@irdl_attr_definition
class ScatterDimensionNumbersAttr(StructAttr[ScatterDimensionNumbers]):
    """`#stablehlo.scatter<update_window_dims = [1], index_vector_dim = 1>`."""

    name = "stablehlo.scatter"
    value_class = ScatterDimensionNumbers


@dataclass(frozen=True, slots=True)
class ConvDimensionNumbers:
    """Which dimension of input, kernel and output is which."""

    input_batch_dimension: int
    input_feature_dimension: int
    input_spatial_dimensions: Ints
    kernel_input_feature_dimension: int
    kernel_output_feature_dimension: int
    kernel_spatial_dimensions: Ints
    output_batch_dimension: int
    output_feature_dimension: int
    output_spatial_dimensions: Ints

    def __str__(self) -> str:
        """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
        lhs = _letters(
            {self.input_batch_dimension: "b", self.input_feature_dimension: "f"},
            self.input_spatial_dimensions,
        )
        kernel = _letters(
            {self.kernel_input_feature_dimension: "i", self.kernel_output_feature_dimension: "o"},
            self.kernel_spatial_dimensions,
        )
        result = _letters(
            {self.output_batch_dimension: "b", self.output_feature_dimension: "f"},
            self.output_spatial_dimensions,
        )
        return f"{lhs}x{kernel}->{result}"


def _letters(named: dict[int, str], spatial: Ints) -> str:
    numbers = {at: str(number) for number, at in enumerate(spatial)}
    words = {**numbers, **named}
    rank = max(words, default=-1) + 1
    if not 0 <= rank <= 1 << 10 or min(words, default=0) < 0:
        # Not the positions of dimensions; nothing to lay out.
        return f"[{', '.join(f'{at}: {word}' for at, word in words.items())}]"
    return f"[{', '.join(words.get(at, '?') for at in range(rank))}]"


def _dimension_list(parser: AttrParser, first: str, second: str) -> tuple[int, int, Ints]:
    """Positions of both letters and of the numbers in `[b, 0, 1, f]`; `?` stands for no meaning."""
    start = parser.pos
    named: dict[str, int] = {}

    def entry() -> None:
        at = len(named)
        word = parser.parse_optional_identifier()
        if word is None and parser.parse_optional_punctuation("?") is not None:
            word = f"?{at}"
        elif word is None:
            word = str(parser.parse_integer(allow_negative=False))
        elif word not in (first, second):
            parser.raise_error(f"expected '{first}', '{second}' or a number, found '{word}'")
        if word in named:
            parser.raise_error(f"dimension '{word}' stands twice")
        named[word] = at

    parser.parse_comma_separated_list(parser.Delimiter.SQUARE, entry)
    if first not in named or second not in named:
        parser.raise_error(f"dimensions '{first}' and '{second}' are needed", start)
    count = sum(word.isdigit() for word in named)
    if any(str(number) not in named for number in range(count)):
        parser.raise_error("spatial dimensions are numbered 0, 1, …", start)
    return named[first], named[second], tuple(named[str(number)] for number in range(count))


def parse_conv_dimension_numbers(parser: AttrParser) -> ConvDimensionNumbers:
    """Reads `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
    batch, feature, spatial = _dimension_list(parser, "b", "f")
    parser.parse_keyword("x")
    kernel_in, kernel_out, kernel = _dimension_list(parser, "i", "o")
    parser.parse_punctuation("->")
    out_batch, out_feature, out = _dimension_list(parser, "b", "f")
    return ConvDimensionNumbers(
        batch, feature, spatial, kernel_in, kernel_out, kernel, out_batch, out_feature, out
    )


@irdl_attr_definition
class ConvDimensionNumbersAttr(StructAttr[ConvDimensionNumbers]):
    """`#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`."""

    name = "stablehlo.conv"
    value_class = ConvDimensionNumbers
    all_fields = True

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ConvDimensionNumbers:
        """Reads the letters, or `raw` and the fields."""
        with parser.in_angle_brackets():
            if parser.parse_optional_keyword("raw") is None:
                return parse_conv_dimension_numbers(parser)
            return cls.parse_fields(parser)

    def spelled(self) -> str:
        """`<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`."""
        return f"<{self.data}>"


# ---------------------------------------------------------------- further structures


@dataclass(frozen=True, slots=True)
class ChannelHandle:
    """A channel between processes."""

    handle: int
    type: int


@irdl_attr_definition
class ChannelHandleAttr(StructAttr[ChannelHandle]):
    """`#stablehlo.channel_handle<handle = 1, type = 0>`."""

    name = "stablehlo.channel_handle"
    value_class = ChannelHandle
    all_fields = True


@dataclass(frozen=True, slots=True)
class OutputOperandAlias:
    """An output of a custom call that lives in an operand."""

    output_tuple_indices: Ints
    operand_index: int
    operand_tuple_indices: Ints


@irdl_attr_definition
class OutputOperandAliasAttr(StructAttr[OutputOperandAlias]):
    """`#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, …>`."""

    name = "stablehlo.output_operand_alias"
    value_class = OutputOperandAlias
    all_fields = True


@dataclass(frozen=True, slots=True)
class DotAlgorithm:
    """The numerics `dot_general` shall have. The types are MLIR types."""

    lhs_precision_type: Attribute
    rhs_precision_type: Attribute
    accumulation_type: Attribute
    lhs_component_count: int
    rhs_component_count: int
    num_primitive_operations: int
    allow_imprecise_accumulation: bool

    def __str__(self) -> str:
        """`<lhs_precision_type = tf32, …>`."""
        return (
            f"<lhs_precision_type = {self.lhs_precision_type}"
            f", rhs_precision_type = {self.rhs_precision_type}"
            f", accumulation_type = {self.accumulation_type}"
            f", lhs_component_count = {self.lhs_component_count}"
            f", rhs_component_count = {self.rhs_component_count}"
            f", num_primitive_operations = {self.num_primitive_operations}"
            f", allow_imprecise_accumulation = {str(self.allow_imprecise_accumulation).lower()}>"
        )


@irdl_attr_definition
class DotAlgorithmAttr(TextualAttr[DotAlgorithm]):
    """`#stablehlo.dot_algorithm<lhs_precision_type = tf32, …>`."""

    name = "stablehlo.dot_algorithm"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> DotAlgorithm:
        """Reads the fields, in any order."""
        readers: dict[str, Any] = {
            "lhs_precision_type": parser.parse_type,
            "rhs_precision_type": parser.parse_type,
            "accumulation_type": parser.parse_type,
            "lhs_component_count": parser.parse_integer,
            "rhs_component_count": parser.parse_integer,
            "num_primitive_operations": parser.parse_integer,
            "allow_imprecise_accumulation": parser.parse_boolean,
        }
        values: dict[str, Any] = {}
        with parser.in_angle_brackets():
            while True:
                name = parser.parse_identifier()
                if name not in readers or name in values:
                    parser.raise_error(f"{cls.name}: unexpected field '{name}'")
                parser.parse_punctuation("=")
                values[name] = readers[name]()
                if parser.parse_optional_punctuation(",") is None:
                    break
            if missing := [name for name in readers if name not in values]:
                parser.raise_error(f"{cls.name}: expected '{missing[0]}'")
        return DotAlgorithm(**values)

    def spelled(self) -> str:
        """`<lhs_precision_type = tf32, …>`."""
        return str(self.data)


@dataclass(frozen=True, slots=True)
class ResultAccuracy:
    """How exact the result of a transcendental function shall be."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0
    mode: str = "DEFAULT"


@irdl_attr_definition
class ResultAccuracyAttr(TextualAttr[ResultAccuracy]):
    """`#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>`."""

    name = "stablehlo.result_accuracy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ResultAccuracy:
        """Reads `<atol = 1.0e-5, rtol = 0.0, ulps = 1, mode = …>`; numbers may be missing."""
        atol, rtol, ulps, mode = 0.0, 0.0, 0, "DEFAULT"
        with parser.in_angle_brackets():
            while True:
                match name := parser.parse_identifier():
                    case "atol" | "rtol":
                        parser.parse_punctuation("=")
                        value = float(parser.parse_number())
                        atol, rtol = (value, rtol) if name == "atol" else (atol, value)
                    case "ulps":
                        parser.parse_punctuation("=")
                        ulps = parser.parse_integer()
                    case "mode":
                        parser.parse_punctuation("=")
                        mode = _accuracy_mode(parser)
                    case _:
                        parser.raise_error(f"{cls.name} has no field '{name}'")
                if parser.parse_optional_punctuation(",") is None:
                    break
        return ResultAccuracy(atol, rtol, ulps, mode)

    def spelled(self) -> str:
        """Numbers that are zero are left out."""
        value = self.data
        parts = [
            f"{name} = {float_text(number)}"
            for name, number in (("atol", value.atol), ("rtol", value.rtol))
            if number != 0
        ]
        if value.ulps:
            parts.append(f"ulps = {value.ulps}")
        parts.append(f"mode = #stablehlo.result_accuracy_mode<{value.mode}>")
        return f"<{', '.join(parts)}>"


def _accuracy_mode(parser: AttrParser) -> str:
    start = parser.pos
    attribute = parser.parse_attribute()
    if not isinstance(attribute, ResultAccuracyModeAttr):
        parser.raise_error("expected #stablehlo.result_accuracy_mode", start)
    return attribute.data


@dataclass(frozen=True, slots=True)
class TypeExtensions:
    """Bounds of the dynamic dimensions of a tensor type; None where there is none."""

    bounds: tuple[int | None, ...]


@irdl_attr_definition
class TypeExtensionsAttr(TextualAttr[TypeExtensions]):
    """`#stablehlo.bounds<4, ?>`; once `#stablehlo.type_extensions<bounds = [4, ?]>`."""

    name = "stablehlo.bounds"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TypeExtensions:
        """Reads `<4, ?>`."""
        return TypeExtensions(
            tuple(
                parser.parse_comma_separated_list(
                    parser.Delimiter.ANGLE, lambda: _optional_size(parser)
                )
            )
        )

    def spelled(self) -> str:
        """`<4, ?>`."""
        return f"<{', '.join('?' if b is None else str(b) for b in self.data.bounds)}>"


@irdl_attr_definition
class FormerTypeExtensionsAttr(TextualAttr[TypeExtensions]):
    """The former spelling of `#stablehlo.bounds`; the reader makes a `TypeExtensionsAttr` of it."""

    name = "stablehlo.type_extensions"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TypeExtensions:
        """Reads `<bounds = [4, ?]>`."""
        with parser.in_angle_brackets():
            parser.parse_keyword("bounds")
            parser.parse_punctuation("=")
            bounds = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: _optional_size(parser)
            )
        return TypeExtensions(tuple(bounds))

    def spelled(self) -> str:
        """`<bounds = [4, ?]>`."""
        return f"<bounds = [{TypeExtensionsAttr(self.data).spelled()[1:-1]}]>"


def _optional_size(parser: AttrParser) -> int | None:
    if parser.parse_optional_punctuation("?") is not None:
        return None
    return parser.parse_integer()


ATTRIBUTES: list[type[Attribute]] = [
    AxisRefAttr,
    ChannelHandleAttr,
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    ConvDimensionNumbersAttr,
    DotAlgorithmAttr,
    DotDimensionNumbersAttr,
    FftTypeAttr,
    FormerTypeExtensionsAttr,
    GatherDimensionNumbersAttr,
    MeshAttr,
    MeshAxisAttr,
    OutputOperandAliasAttr,
    PrecisionAttr,
    ReplicaGroupMeshAxesAttr,
    ResultAccuracyAttr,
    ResultAccuracyModeAttr,
    RngAlgorithmAttr,
    RngDistributionAttr,
    ScatterDimensionNumbersAttr,
    SubAxisInfoAttr,
    TransposeAttr,
    TypeExtensionsAttr,
]
"""The attributes of the stablehlo dialect."""
