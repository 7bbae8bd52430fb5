"""Custom calls with which XLA takes dynamic arrays apart and puts them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.custom_calls import computes
from mlirhlo.interp.registry import DynamicArray, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


@computes("PadToStatic")
def pad_to_static(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(array at its bounds, s32 sizes in use…)`."""
    value = inputs[0]
    data = value.data if isinstance(value, DynamicArray) else value
    sizes = value.sizes if isinstance(value, DynamicArray) else data.shape
    return (data, *(np.array(size, dtype=np.int32) for size in sizes))


@computes("SliceToDynamic")
def slice_to_dynamic(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The array with the sizes in use that the other operands give. Raises HLO0306."""
    data = inputs[0].data if isinstance(inputs[0], DynamicArray) else inputs[0]
    sizes = tuple(int(size) for size in inputs[1:])
    if any(not 0 <= size <= bound for size, bound in zip(sizes, data.shape, strict=True)):
        raise error(
            "HLO0306",
            f"custom-call %{op.instruction_name} (SliceToDynamic): sizes {list(sizes)} are not within "
            f"the bounds {list(data.shape)}",
        )
    shape = cast(ArrayShape, op.shape)
    return DynamicArray(data, sizes) if shape.is_dynamic else data
