"""Custom calls of XLA:TPU's optimised modules whose meaning does not depend on the hardware.

Source: their operands and results in dumps, and that the modules around them compute what the
unoptimised ones do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.custom_calls import computes, unfit
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


@computes("ConcatBitcast")
def concat_bitcast(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Neighbouring buffers seen as one: the operands along the dimension in which they differ
    from the result.
    """
    shape = cast(ArrayShape, op.shape).dimensions
    arrays = cast("Sequence[Array]", inputs)
    for dim in range(len(shape)):
        rest = [(*a.shape[:dim], *a.shape[dim + 1 :]) for a in arrays]
        if sum(a.shape[dim] for a in arrays) == shape[dim] and all(
            r == (*shape[:dim], *shape[dim + 1 :]) for r in rest
        ):
            return np.concatenate(arrays, axis=dim)
    raise unfit(op, f"its operands do not make up {op.shape}")


# A 64-bit integer travels as its two halves, a c64 or c128 as its two parts, an f64 as the sum of two f32:
# of those "low" is the greater one, the nearest f32, and "high" what that leaves.


@computes("X64SplitLow", "X128SplitLow")
def x64_split_low(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Low half of integers, real part of complex numbers, the f32 nearest to an f64."""
    value, dtype = inputs[0], cast(ArrayShape, op.shape).element_type.dtype
    if value.dtype.kind in "iu":
        return (value.astype(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.uint32).astype(dtype)
    if value.dtype.kind == "c" and dtype.kind != "c":
        return value.real.astype(dtype)
    return value.astype(dtype)


@computes("X64SplitHigh", "X128SplitHigh")
def x64_split_high(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """High half of integers, imaginary part of complex numbers, what the nearest f32 leaves."""
    value, dtype = inputs[0], cast(ArrayShape, op.shape).element_type.dtype
    if value.dtype.kind in "iu":
        return (value.astype(np.uint64) >> np.uint64(32)).astype(np.uint32).astype(dtype)
    if value.dtype.kind == "c" and dtype.kind != "c":
        return value.imag.astype(dtype)
    rest = value - value.astype(dtype).astype(value.dtype)
    return cast(Array, np.where(np.isfinite(value), rest, 0)).astype(dtype)


@computes("X64Combine", "X128Combine")
def x64_combine(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The value of a low and a high part."""
    low, high = cast("tuple[Any, Any]", tuple(inputs))
    dtype = cast(ArrayShape, op.shape).element_type.dtype
    if dtype.kind in "iu":
        bits = low.astype(np.uint32).astype(np.uint64)
        bits = bits | (high.astype(np.uint32).astype(np.uint64) << np.uint64(32))
        return bits.astype(dtype)
    if dtype.kind == "c" and low.dtype.kind != "c":
        result: Any = np.empty(low.shape, dtype)
        result.real, result.imag = low, high
        return result
    return low.astype(dtype) + high.astype(dtype)
