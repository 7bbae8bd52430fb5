"""Element types of kernels: numpy's to MLIR's, and which one two of them become."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import IntegerType

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind
from mlirhlo.mosaic.language.faults import bad_type

if TYPE_CHECKING:
    from xdsl.ir import Attribute

DType: TypeAlias = "np.dtype[Any]"
DTypeLike: TypeAlias = Any

BOOL = np.dtype(np.bool_)
I32 = np.dtype(np.int32)
F32 = np.dtype(np.float32)
BF16: DType = np.dtype(ml_dtypes.bfloat16)

_KINDS = {Kind.PRED: "b", Kind.SIGNED: "i", Kind.UNSIGNED: "u", Kind.FLOAT: "f"}


@lru_cache(maxsize=1024)
def kind_of(dtype: DType) -> str:
    """`b` of booleans, `i` and `u` of integers with and without sign, `f` of floats."""
    return _KINDS[_row(dtype).kind]


@lru_cache(maxsize=1024)
def bits_of(dtype: DType) -> int:
    """Width in bits; 1 of booleans."""
    bits: int = _row(dtype).bits
    return bits


@lru_cache(maxsize=1024)
def element_type(dtype: DType) -> Attribute:
    """The MLIR type of elements: integers without sign, i1 of booleans."""
    row = _row(dtype)
    if row.is_integer:
        return IntegerType(row.bits)
    found: Attribute = row.mlir
    return found


@lru_cache(maxsize=1024)
def _row(dtype: DType) -> Any:
    for row in PRIMITIVE_TYPES.values():
        if row.is_array and not row.is_complex and row.numpy_name and row.dtype == dtype:
            return row
    raise bad_type(f"kernels have no elements of {dtype}")


def short_name(dtype: DType) -> str:
    """`f32`, `bf16`, `s8`: the name in HLO."""
    return str(_row(dtype).name)


def as_dtype(like: DTypeLike) -> DType:
    """The dtype of what numpy or ml_dtypes call one. Raises HLO0722 for those kernels have not."""
    try:
        dtype: DType = np.dtype(like)
    except TypeError:
        raise bad_type(
            f"{like!r} is no element type", "write np.float32, jnp.bfloat16 …, or a name"
        ) from None
    if dtype.kind in "iuf" and dtype.itemsize == 8:
        narrow = dtype.name.replace("64", "32")
        raise bad_type(
            f"kernels have no {dtype.name}: no TPU computes with 64-bit elements",
            f"use {narrow}",
        )
    if dtype.kind == "c" or dtype.kind in "OSUMm":
        raise bad_type(f"kernels have no elements of {dtype}", "pass real and imaginary parts")
    _row(dtype)
    return dtype


@lru_cache(maxsize=1024)
def promoted(one: DType, other: DType) -> DType:
    """The type that holds both, as JAX has it: integers become the float beside them."""
    if one == other:
        return one
    kinds = kind_of(one), kind_of(other)
    if kinds[0] == "b" or kinds[1] == "b":
        return other if kinds[0] == "b" else one
    if kinds[0] == "f" and kinds[1] == "f":
        widths = bits_of(one), bits_of(other)
        if widths[0] != widths[1]:
            return one if widths[0] > widths[1] else other
        if widths[0] == 16:
            return F32
        raise bad_type(
            f"{one.name} and {other.name} have no common type", "cast one of them with astype"
        )
    if "f" in kinds:
        return one if kinds[0] == "f" else other
    return as_dtype(np.promote_types(one, other))


def weak(value: bool | float, beside: DType) -> DType:
    """The type that a Python number takes beside elements of a type."""
    kind = kind_of(beside)
    if isinstance(value, bool | np.bool_):
        return beside if kind == "b" else promoted(BOOL, beside)
    if isinstance(value, int | np.integer):
        return I32 if kind == "b" else beside
    return beside if kind == "f" else F32
