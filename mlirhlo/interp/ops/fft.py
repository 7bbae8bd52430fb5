"""fft: discrete Fourier transforms of the last dimensions, computed in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.registry import Array, Frame, Value, evaluates

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.linear_algebra import FftOp


@evaluates("fft")
def fft(op: FftOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """FFT and IFFT of complex, RFFT of real numbers, IRFFT to real numbers.

    Inverse transforms divide by the product of `fft_length`. RFFT keeps the first n/2 + 1 terms of
    the last dimension; IRFFT takes them. A transform of length 0 gives zeros, as XLA's evaluator
    does. Raises `HloError` HLO0355 for sizes that do not fit.
    Source: operation semantics, "Fft".
    """
    operand = cast(Array, inputs[0])
    lengths, kind = op.fft_length, op.fft_type
    shape = cast(ArrayShape, op.shape)
    axes = tuple(range(operand.ndim - len(lengths), operand.ndim))
    dtype = shape.element_type.dtype
    if 0 in (*lengths, *shape.dimensions):
        return np.zeros(shape.dimensions, dtype=dtype)
    last = lengths[-1] // 2 + 1 if kind == "IRFFT" else lengths[-1]
    if operand.shape[operand.ndim - len(lengths) :] != (*lengths[:-1], last):
        sizes = ",".join(map(str, lengths))
        raise error(
            "HLO0355", f"fft: {kind} of length {{{sizes}}} does not fit {op.input_shapes[0]}"
        )
    match kind:
        case "FFT":
            result: Any = np.fft.fftn(operand.astype(np.complex128), axes=axes)
        case "IFFT":
            result = np.fft.ifftn(operand.astype(np.complex128), axes=axes)
        case "RFFT":
            result = np.fft.rfftn(operand.astype(np.float64), axes=axes)
        case _:
            result = np.fft.irfftn(operand.astype(np.complex128), s=lengths, axes=axes)
    return cast(Array, result).astype(dtype)
