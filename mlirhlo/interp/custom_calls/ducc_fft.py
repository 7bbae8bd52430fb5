"""`dynamic_ducc_fft`: how JAX called its FFT library on the CPU until 2024.

Operands: a FlatBuffers table (number of dimensions, element type, kind, axes, forward or not), the array,
its dimensions, both arrays' strides, the scale, the result's dimensions.
Source: the calls in modules that jaxlib 0.4.13 wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.formats.flatbuffer import BadBuffer, Table, unsigned
from mlirhlo.interp.custom_calls import computes, unfit
from mlirhlo.interp.registry import Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp

_KIND, _AXES, _FORWARD = 2, 3, 4
"""Fields of the table."""
_TO_REAL, _OF_REAL = 1, 2
"""Kinds; 0 is complex to complex."""


@computes("dynamic_ducc_fft")
def dynamic_ducc_fft(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The transform along some axes, times the scale. Raises `HloError` HLO0355 for a bad table."""
    is_table = len(inputs) == 7 and inputs[0].dtype == np.uint8
    if not is_table or not isinstance(op.shape, ArrayShape):
        raise unfit(op, "takes a table, an array, three lists, a scale and a list")
    try:
        table = Table.root(inputs[0].tobytes())
        kind, is_forward = table.number(_KIND, 1), table.number(_FORWARD, 1) != 0
        start, count = table.vector(_AXES, 4) or (0, 0)
        axes = [unsigned(table.data, start + 4 * k, 4) for k in range(count)]
    except BadBuffer as problem:
        raise unfit(op, f"the table is damaged: {problem}") from None
    array: Any = inputs[1]
    fits = np.iscomplexobj(array) == (kind != _OF_REAL)
    fits &= op.shape.element_type.is_complex == (kind != _TO_REAL)
    if not fits or kind > _OF_REAL or not axes or max(axes) >= array.ndim:
        raise unfit(op, f"a transform of kind {kind} along {axes} has no meaning here")
    array = array.astype(np.float64 if kind == _OF_REAL else np.complex128)
    result: Any
    if kind == _TO_REAL:
        lengths = [op.shape.dimensions[axis] for axis in axes]
        result = np.fft.irfftn(array, lengths, axes, norm="forward")
    elif kind == _OF_REAL:
        result = np.fft.rfftn(array, axes=axes)
    else:
        result = (
            np.fft.fftn(array, axes=axes)
            if is_forward
            else np.fft.ifftn(array, axes=axes, norm="forward")
        )
    return (result * inputs[5][0]).astype(op.shape.element_type.dtype)
