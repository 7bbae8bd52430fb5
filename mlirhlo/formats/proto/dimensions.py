"""Windows, paddings, slices, dimension numbers, sparsity and aliasing, to and from their messages.

Source: HLO protobuf reference, "Op attribute messages".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlirhlo.dialects.hlo.attributes.aliasing import OutputOperandAlias, OutputOperandAliases
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    Padding,
    PaddingDimension,
    Slice,
    SliceDimension,
    SparsityConfig,
    TensorSparsity,
    Window,
    WindowDimension,
)
from mlirhlo.formats.proto.message import DecodeProblem, bytes_field, number_field, numbers_field
from mlirhlo.formats.proto.module_pb2 import HloInstructionProto
from mlirhlo.formats.proto.op_attributes_pb2 import (
    ConvolutionDimensionNumbers as ConvolutionDimensionNumbersProto,
)
from mlirhlo.formats.proto.op_attributes_pb2 import OutputOperandAliasing, PaddingConfig
from mlirhlo.formats.proto.op_attributes_pb2 import SparsityConfig as SparsityConfigProto
from mlirhlo.formats.proto.op_attributes_pb2 import Window as WindowProto


def window_of(data: bytes) -> Window:
    """The window of a serialised Window; strides and dilations as they are given, 0 too."""
    return Window(
        tuple(
            WindowDimension(
                dim.size,
                dim.stride,
                dim.padding_low,
                dim.padding_high,
                dim.window_dilation,
                dim.base_dilation,
                dim.window_reversal,
            )
            for dim in WindowProto.FromString(data).dimensions
        )
    )


def window_bytes(window: Window) -> bytes:
    """A serialised Window."""
    return b"".join(
        bytes_field(
            1,
            number_field(1, dim.size)
            + number_field(2, dim.stride)
            + number_field(3, dim.padding_low)
            + number_field(4, dim.padding_high)
            + number_field(5, dim.window_dilation)
            + number_field(6, dim.base_dilation)
            + number_field(7, int(dim.window_reversal)),
        )
        for dim in window.dimensions
    )


def padding_of(data: bytes) -> Padding:
    """The padding of a serialised PaddingConfig."""
    dimensions = PaddingConfig.FromString(data).dimensions
    return Padding(
        tuple(
            PaddingDimension(dim.edge_padding_low, dim.edge_padding_high, dim.interior_padding)
            for dim in dimensions
        )
    )


def padding_bytes(padding: Padding) -> bytes:
    """A serialised PaddingConfig."""
    return b"".join(
        bytes_field(
            1, number_field(1, dim.low) + number_field(2, dim.high) + number_field(3, dim.interior)
        )
        for dim in padding.dimensions
    )


def slice_of(dimensions: Iterable[HloInstructionProto.SliceDimensions]) -> Slice:
    """The slice of an instruction's `slice_dimensions`."""
    return Slice(tuple(SliceDimension(dim.start, dim.limit, dim.stride) for dim in dimensions))


def slice_fields(number: int, value: Slice) -> bytes:
    """The repeated field of a slice."""
    return b"".join(
        bytes_field(
            number,
            number_field(1, dim.start) + number_field(2, dim.limit) + number_field(3, dim.stride),
        )
        for dim in value.dimensions
    )


def convolution_of(data: bytes) -> ConvolutionDimensionNumbers:
    """The dimension numbers of a serialised message. Raises `DecodeProblem` HLO0215."""
    proto = ConvolutionDimensionNumbersProto.FromString(data)
    found = ConvolutionDimensionNumbers(
        proto.input_batch_dimension,
        proto.input_feature_dimension,
        tuple(proto.input_spatial_dimensions),
        proto.kernel_input_feature_dimension,
        proto.kernel_output_feature_dimension,
        tuple(proto.kernel_spatial_dimensions),
        proto.output_batch_dimension,
        proto.output_feature_dimension,
        tuple(proto.output_spatial_dimensions),
    )
    _check(
        found.input_batch_dimension, found.input_feature_dimension, found.input_spatial_dimensions
    )
    _check(
        found.kernel_input_feature_dimension,
        found.kernel_output_feature_dimension,
        found.kernel_spatial_dimensions,
    )
    _check(
        found.output_batch_dimension,
        found.output_feature_dimension,
        found.output_spatial_dimensions,
    )
    ranks = {
        len(found.input_spatial_dimensions),
        len(found.kernel_spatial_dimensions),
        len(found.output_spatial_dimensions),
    }
    if len(ranks) > 1:
        raise _problem("the arrays differ in the number of spatial dimensions")
    return found


_MOST_DIMENSIONS = 12
"""Two plus the ten spatial dimensions that labels have digits for."""


def _check(first: int, second: int, spatial: Sequence[int]) -> None:
    every = (first, second, *spatial)
    # Labels have `?` for dimensions without a part, so gaps are fine but repetitions are not.
    if len(set(every)) != len(every) or not all(0 <= dim < 2 * _MOST_DIMENSIONS for dim in every):
        raise _problem(f"dimensions {', '.join(map(str, every))} are not different small numbers")
    if len(every) > _MOST_DIMENSIONS:
        raise _problem(f"{len(spatial)} spatial dimensions are too many")


def _problem(message: str) -> DecodeProblem:
    return DecodeProblem("HLO0215", f"convolution_dimension_numbers: {message}")


def convolution_bytes(value: ConvolutionDimensionNumbers) -> bytes:
    """A serialised ConvolutionDimensionNumbers."""
    return b"".join(
        (
            number_field(3, value.kernel_input_feature_dimension),
            number_field(4, value.kernel_output_feature_dimension),
            numbers_field(6, value.kernel_spatial_dimensions),
            number_field(7, value.input_batch_dimension),
            number_field(8, value.input_feature_dimension),
            number_field(9, value.output_batch_dimension),
            number_field(10, value.output_feature_dimension),
            numbers_field(11, value.input_spatial_dimensions),
            numbers_field(12, value.output_spatial_dimensions),
        )
    )


def sparsity_of(data: bytes) -> SparsityConfig | None:
    """The sparsity of a serialised SparsityConfig; None for an empty one."""
    proto = SparsityConfigProto.FromString(data)

    def side(value: SparsityConfigProto.TensorSparsityConfig) -> TensorSparsity:
        return TensorSparsity(
            value.num_non_zero, value.block_size, value.dimension, value.stride, value.idx
        )

    lhs = side(proto.lhs) if proto.HasField("lhs") else None
    rhs = side(proto.rhs) if proto.HasField("rhs") else None
    return SparsityConfig(lhs, rhs) if lhs is not None or rhs is not None else None


def sparsity_bytes(value: SparsityConfig) -> bytes:
    """A serialised SparsityConfig."""

    def side(number: int, part: TensorSparsity | None) -> bytes:
        if part is None:
            return b""
        return bytes_field(
            number,
            number_field(1, part.num_non_zero)
            + number_field(2, part.block_size)
            + number_field(3, part.dimension)
            + number_field(4, part.stride)
            + number_field(5, part.idx),
        )

    return side(1, value.lhs) + side(2, value.rhs)


def aliases_of(entries: Iterable[OutputOperandAliasing]) -> OutputOperandAliases:
    """The aliases of an instruction's `output_operand_aliasing`."""
    return OutputOperandAliases(
        tuple(
            OutputOperandAlias(
                tuple(entry.output_shape_index),
                entry.operand_index,
                tuple(entry.operand_shape_index),
            )
            for entry in entries
        )
    )


def alias_fields(number: int, value: OutputOperandAliases) -> bytes:
    """The repeated field of aliases."""
    return b"".join(
        bytes_field(
            number,
            numbers_field(1, entry.output_index)
            + number_field(2, entry.operand_number)
            + numbers_field(3, entry.operand_index),
        )
        for entry in value.entries
    )
