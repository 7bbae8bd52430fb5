"""Operations on the bits of integers: logic, shifts, counts, high products."""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.interp.numerics import ArrayFunction, lift, unsigned, wrap
from mlirhlo.interp.registry import Array


def bitwise(ufunc: ArrayFunction) -> Callable[[PrimitiveType], ArrayFunction | None]:
    """Bitwise on integers, logical on pred."""

    def make(type_: PrimitiveType) -> ArrayFunction | None:
        if type_.kind is Kind.PRED:
            return ufunc
        return lift(type_, ufunc) if type_.is_integer else None

    return make


def complement(type_: PrimitiveType) -> ArrayFunction | None:
    """~x; logical not on pred."""
    if type_.kind is Kind.PRED:
        return np.logical_not
    return lift(type_, np.invert) if type_.is_integer else None


def _in_width(type_: PrimitiveType, amount: Array) -> tuple[Array, Array]:
    """Whether a shift amount, taken as unsigned, is below the width; and the amount made safe.

    Amounts of sub-byte types are sign-extended in their 8 bits, so a negative one is large too.
    """
    amount = unsigned(amount)
    inside = amount < type_.bits
    return inside, np.where(inside, amount, np.zeros((), amount.dtype))


def shift_left(type_: PrimitiveType) -> ArrayFunction | None:
    """X << y; 0 when y is the width or more."""
    if not type_.is_integer:
        return None

    def shift(x: Array, y: Array) -> Array:
        inside, amount = _in_width(type_, y)
        shifted = np.left_shift(unsigned(x), amount)
        return np.where(inside, shifted, np.zeros((), shifted.dtype)).astype(x.dtype)

    return lift(type_, shift)


def shift_right_logical(type_: PrimitiveType) -> ArrayFunction | None:
    """X >> y with zeros; 0 when y is the width or more."""
    if not type_.is_integer:
        return None
    mask = (1 << type_.bits) - 1

    def shift(x: Array, y: Array) -> Array:
        inside, amount = _in_width(type_, y)
        word = unsigned(x)
        shifted = np.right_shift(word & np.array(mask, word.dtype), amount)
        return np.where(inside, shifted, np.zeros((), shifted.dtype)).astype(x.dtype)

    return lift(type_, shift)


def shift_right_arithmetic(type_: PrimitiveType) -> ArrayFunction | None:
    """X >> y with copies of the top bit; all of them when y is the width or more."""
    if not type_.is_integer:
        return None
    top = 8 - type_.bits if type_.bits < 8 else 0

    def shift(x: Array, y: Array) -> Array:
        inside, amount = _in_width(type_, y)
        word = x.view(f"i{x.dtype.itemsize}")
        if top:
            word = np.right_shift(np.left_shift(word, top), top)
        amount = np.where(inside, amount, np.array(type_.bits - 1, amount.dtype))
        return np.right_shift(word, amount.astype(word.dtype)).astype(x.dtype)

    return lift(type_, shift)


def population_count(type_: PrimitiveType) -> ArrayFunction | None:
    """One bits."""
    if type_.kind is Kind.PRED:
        return lambda x: x
    if not type_.is_integer:
        return None
    mask = (1 << type_.bits) - 1

    def count(x: Array) -> Array:
        word = unsigned(x)
        return np.bitwise_count(word & np.array(mask, word.dtype)).astype(x.dtype)

    return lift(type_, count)


def count_leading_zeros(type_: PrimitiveType) -> ArrayFunction | None:
    """Zero bits above the highest one bit; the width for 0."""
    if not type_.is_integer:
        return None
    mask = (1 << type_.bits) - 1

    def count(x: Array) -> Array:
        word = unsigned(x)
        word = word & np.array(mask, word.dtype)
        step = 1
        while step < type_.bits:
            word = word | np.right_shift(word, np.array(step, word.dtype))
            step *= 2
        return (type_.bits - np.bitwise_count(word).astype(np.int16)).astype(x.dtype)

    return lift(type_, count)


def multiply_high(type_: PrimitiveType) -> ArrayFunction | None:
    """The high half of the double-width product."""
    if not type_.is_integer:
        return None
    if type_.bits < 64:
        wide: np.dtype[Any] = np.dtype(np.int64 if type_.is_signed else np.uint64)

        def narrow(x: Array, y: Array) -> Array:
            product = np.multiply(x.astype(wide), y.astype(wide))
            return wrap(np.right_shift(product, np.array(type_.bits, wide)), x.dtype)

        return lift(type_, narrow)
    return _high_signed if type_.is_signed else _high_unsigned


def _high_unsigned(x: Array, y: Array) -> Array:
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    x1, x0, y1, y0 = x >> half, x & mask, y >> half, y & mask
    middle = x1 * y0 + ((x0 * y0) >> half)
    carry = x0 * y1 + (middle & mask)
    return np.asarray(x1 * y1 + (middle >> half) + (carry >> half))


def _high_signed(x: Array, y: Array) -> Array:
    high = _high_unsigned(x.view(np.uint64), y.view(np.uint64)).view(np.int64)
    return np.asarray(high - np.where(x < 0, y, 0) - np.where(y < 0, x, 0))
