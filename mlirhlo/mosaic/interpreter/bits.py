"""Bits of elements: rows packed into wider elements, and the other way round.

Elements of a 32-bit word stand over one another in the second-minor dimension: the lowest bits are
the first row. Four-bit elements are one byte each in numpy, but four bits of a word here.
"""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.interpreter.numbers import as_unsigned, is_float, width_of

if TYPE_CHECKING:
    from mlirhlo.mosaic.interpreter.registry import Array


def to_bits(array: Array) -> Array:
    """The elements' bits as unsigned numbers of at least a byte."""
    dtype = array.dtype
    if is_float(dtype):
        bits = np.ascontiguousarray(array).view(f"u{dtype.itemsize}")
        width = width_of(dtype)
        return np.asarray(bits & bits.dtype.type((1 << width) - 1) if width < 8 else bits)
    return np.asarray(as_unsigned(array))


def from_bits(bits: Array, dtype: np.dtype[Any]) -> Array:
    """Elements with those (low) bits."""
    width = width_of(dtype)
    if dtype.kind == "b":
        return np.asarray(bits & 1 != 0)
    narrow = bits.astype(f"u{dtype.itemsize}")
    if width < 8 and not is_float(dtype):
        low = (narrow & np.uint8((1 << width) - 1)).astype(np.int16)
        if not dtype.name.startswith("uint"):
            low = np.where(low >= 1 << (width - 1), low - (1 << width), low)
        return low.astype(np.int8).astype(dtype)
    return narrow.view(dtype)


def rows_as(array: Array, dtype: np.dtype[Any]) -> Array:
    """`8x128xf32` as `16x128xbf16`: second-minor size times width stays what it is."""
    old, new = width_of(array.dtype), width_of(dtype)
    if old == new:
        return from_bits(to_bits(array), dtype)
    *lead, rows, lanes = array.shape
    bits = to_bits(array).astype(np.uint64)
    if old > new:
        count = old // new
        shifts = (np.arange(count) * new).astype(np.uint64)[:, None]
        parts = (bits[..., :, None, :] >> shifts) & np.uint64((1 << new) - 1)
        return from_bits(parts.reshape(*lead, rows * count, lanes), dtype)
    count = new // old
    shifts = (np.arange(count) * old).astype(np.uint64)[:, None]
    parts = bits.reshape(*lead, rows // count, count, lanes) << shifts
    return from_bits(np.bitwise_or.reduce(parts, axis=-2), dtype)
