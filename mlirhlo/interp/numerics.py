"""Element types and numpy: which type an op computes in, and how it gets back.

Every op rounds to its own type. f16, bf16 and the smaller floats compute in f32 and round once;
sub-byte integers compute in 8 bits and wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.element_types import F16, F32, F64, PrimitiveType
from mlirhlo.interp.registry import Array

ArrayFunction: TypeAlias = Callable[..., Array]

SINGLE = np.dtype(np.float32)
DOUBLE = np.dtype(np.float64)
DOUBLE_COMPLEX = np.dtype(np.complex128)


def is_native(type_: PrimitiveType) -> bool:
    """Whether numpy itself computes in `type_`, with one rounding an operation."""
    if type_.is_float:
        return type_ in (F16, F32, F64)
    return type_.bits >= 8 or not type_.is_integer


def work_dtype(type_: PrimitiveType) -> np.dtype[Any]:
    """Type in which arithmetic on `type_` is done: f32 for narrow floats, 8 bits for s4 and such."""
    if type_.is_float and type_.bits < 32:
        return SINGLE
    if type_.is_integer and type_.bits < 8:
        return np.dtype(np.int8 if type_.is_signed else np.uint8)
    return type_.dtype


def lift(type_: PrimitiveType, function: ArrayFunction) -> ArrayFunction:
    """`function` on arrays of `type_`, computed in `work_dtype` and rounded back."""
    work, dtype = work_dtype(type_), type_.dtype
    if work == dtype:
        return function
    return lambda *arrays: wrap(function(*(a.astype(work) for a in arrays)), dtype)


def lift_precise(type_: PrimitiveType, function: ArrayFunction) -> ArrayFunction:
    """As `lift`, but f32 computes in f64 and c64 in c128, so that one rounding is all the error."""
    dtype = type_.dtype
    if type_.is_complex:
        if dtype == DOUBLE_COMPLEX:
            return function
        return lambda *arrays: function(*(a.astype(DOUBLE_COMPLEX) for a in arrays)).astype(dtype)
    if type_ is F32:
        return lambda *arrays: function(*(a.astype(DOUBLE) for a in arrays)).astype(dtype)
    return lift(type_, function)


def wrap(array: Array, dtype: np.dtype[Any]) -> Array:
    """`array` in `dtype`: floats round to nearest even, integers wrap (ml_dtypes' do too)."""
    return np.asarray(array).astype(dtype)


def unsigned(array: Array) -> Array:
    """The bits of an array of 8-bit or wider elements as unsigned integers."""
    return array.view(f"u{array.dtype.itemsize}")


def signed(array: Array) -> Array:
    """The bits of an array of 8-bit or wider elements as signed integers."""
    return array.view(f"i{array.dtype.itemsize}")


def total_order_key(array: Array, type_: PrimitiveType) -> Array:
    """Integers that order as the floats do in IEEE total order (-NaN < -inf < … < +NaN)."""
    if type_.is_float and type_ not in (F16, F32, F64):
        array = array.astype(SINGLE)
    if not (type_.is_float):
        return array.astype(work_dtype(type_)) if type_.is_integer and type_.bits < 8 else array
    bits = signed(np.asarray(array, order="C"))
    width = bits.dtype.itemsize * 8
    return bits ^ ((bits >> (width - 1)) & np.array((1 << (width - 1)) - 1, dtype=bits.dtype))


def unsupported(opcode: str, *types: PrimitiveType) -> HloError:
    """The error for element types that an op does not take."""
    return error(
        "HLO0307",
        f"{opcode}: element type {', '.join(map(str, types))} has no meaning here",
        help="convert the operands to a type that the op takes",
    )
