"""Element types of kernels in numpy: which are computed wider, and how bits are read."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirhlo.mosaic.interpreter.registry import Activation, Run


def width_of(dtype: np.dtype[Any]) -> int:
    """Bits of an element: 1 for booleans, 4 or 2 for the narrow types of ml_dtypes."""
    if dtype.kind == "b":
        return 1
    name = dtype.name
    for prefix, width in (("int4", 4), ("uint4", 4), ("int2", 2), ("uint2", 2), ("float4", 4)):
        if name.startswith(prefix):
            return width
    return dtype.itemsize * 8


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether the elements are floats, of numpy's types or ml_dtypes'."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def is_native_float(dtype: np.dtype[Any]) -> bool:
    """Whether numpy computes in the type itself."""
    return dtype.kind == "f" and dtype.itemsize > 2


def to_float(a: Any) -> Any:
    """Floats as f32 or f64, exactly."""
    return a if is_native_float(a.dtype) else a.astype(np.float32)


def lifted(function: Callable[..., Any], dtype: np.dtype[Any]) -> Run:
    """What runs a function of floats of one type: narrow ones in f32, rounded once."""
    if is_native_float(dtype):
        return lambda frame, *operands: np.asarray(function(*operands), dtype)[()]

    def run(frame: Activation, *operands: Any) -> Any:
        wide = [operand.astype(np.float32) for operand in operands]
        return np.asarray(function(*wide)).astype(dtype)[()]

    return run


def as_unsigned(a: Any) -> Any:
    """The same bits as unsigned numbers; booleans as 0 and 1, four bits as a byte."""
    dtype = a.dtype
    if dtype.kind == "b":
        return a.astype(np.uint8)
    if dtype.kind == "u":
        return a
    if dtype.kind == "i":
        return a.view(f"u{dtype.itemsize}")
    width = width_of(dtype)
    wide = a.astype(np.int8)
    return (wide & np.int8((1 << width) - 1)).view(np.uint8)


def integer_limits(dtype: np.dtype[Any], *, is_unsigned: bool = False) -> tuple[int, int]:
    """Least and greatest number of a signless integer type, read one way."""
    width = width_of(dtype)
    if is_unsigned or dtype.kind == "u" or dtype.name.startswith("uint"):
        return 0, (1 << width) - 1
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def float_to_integer(a: Any, dtype: np.dtype[Any], *, is_unsigned: bool) -> Any:
    """Toward zero; what does not fit becomes the nearest limit, NaN zero."""
    low, high = integer_limits(dtype, is_unsigned=is_unsigned)
    if dtype.kind == "b":
        return np.trunc(a) != 0
    wide = np.trunc(np.asarray(a, np.float64))
    wide = np.where(np.isnan(wide), 0.0, wide)
    inside = np.clip(wide, float(low), float(high))
    # The greatest 64-bit numbers are no doubles: what is beyond them is put in afterwards.
    top = inside >= float(high)
    whole = np.where(top, 0.0, inside).astype(np.int64 if low < 0 or high < 1 << 63 else np.uint64)
    limit = np.array(high, np.uint64).astype(whole.dtype)
    return np.where(top, limit, whole).astype(dtype)[()]
