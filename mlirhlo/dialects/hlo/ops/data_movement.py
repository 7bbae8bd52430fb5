"""Instructions that move elements and compute nothing with them."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.dimensions import Padding, Slice
from mlirhlo.dialects.hlo.attributes.header import RawText
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops.base import (
    Instruction,
    Unary,
    bool_property,
    computation_property,
    instruction,
    int_property,
    ints_property,
    value_property,
)


@instruction("bitcast")
class BitcastOp(Unary):
    """The same bytes under another shape and layout."""


@instruction("bitcast-convert")
class BitcastConvertOp(Unary):
    """The same bits as another element type."""


@instruction("broadcast")
class BroadcastOp(Unary):
    """Operand dimension i becomes result dimension dimensions[i]."""

    dimensions = ints_property()


@instruction("concatenate")
class ConcatenateOp(Instruction):
    """Operands one after the other along a dimension."""

    dimensions = ints_property()


@instruction("dynamic-reshape")
class DynamicReshapeOp(Instruction):
    """Reshape to sizes given as operands."""


@instruction("dynamic-slice")
class DynamicSliceOp(Instruction):
    """A slice at start indices given as operands, clamped into the array."""

    dynamic_slice_sizes = ints_property()


@instruction("dynamic-update-slice")
class DynamicUpdateSliceOp(Instruction):
    """The array with a slice replaced, start indices clamped."""


@instruction("gather")
class GatherOp(Unary):
    """Slices of the operand at the indices."""

    offset_dims = ints_property()
    collapsed_slice_dims = ints_property()
    start_index_map = ints_property()
    operand_batching_dims = ints_property()
    start_indices_batching_dims = ints_property()
    index_vector_dim = int_property()
    slice_sizes = ints_property()
    indices_are_sorted = bool_property()

    @property
    def start_indices(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("get-dimension-size")
class GetDimensionSizeOp(Unary):
    """Size of a dimension, as s32[]."""

    dimensions = ints_property()


@instruction("iota")
class IotaOp(Instruction):
    """0, 1, 2, … along a dimension."""

    iota_dimension = int_property()


@instruction("pad")
class PadOp(Unary):
    """Edges and gaps filled with a value; negative edges crop."""

    padding = value_property(Padding)

    @property
    def padding_value(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("reshape")
class ReshapeOp(Unary):
    """The same elements in row-major order under another shape."""

    inferred_dimension = int_property(-1)


@instruction("reverse")
class ReverseOp(Unary):
    """Dimensions turned round."""

    dimensions = ints_property()


@instruction("scatter")
class ScatterOp(Instruction):
    """Inputs with updates combined in at the indices."""

    update_window_dims = ints_property()
    inserted_window_dims = ints_property()
    scatter_dims_to_operand_dims = ints_property()
    input_batching_dims = ints_property()
    scatter_indices_batching_dims = ints_property()
    index_vector_dim = int_property()
    indices_are_sorted = bool_property()
    unique_indices = bool_property()
    to_apply = computation_property()


@instruction("set-dimension-size")
class SetDimensionSizeOp(Unary):
    """The array with a dimension's dynamic size set."""

    dimensions = ints_property()

    @property
    def size(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("shuffle")
class ShuffleOp(Instruction):
    """Elements moved along dimensions, by a rotation or a permutation."""

    dimensions = ints_property()
    mode = value_property(RawText)
    shifts = ints_property()
    indices = value_property(Literal)


@instruction("slice")
class SliceOp(Unary):
    """x[start:limit:stride] in every dimension."""

    slices = value_property(Slice, "slice")


@instruction("transpose")
class TransposeOp(Unary):
    """Result dimension i is operand dimension dimensions[i]."""

    dimensions = ints_property()
