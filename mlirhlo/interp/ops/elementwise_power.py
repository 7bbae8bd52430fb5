"""x ** y for every element type."""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import numpy as np

from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.interp.numerics import ArrayFunction, lift, lift_precise
from mlirhlo.interp.ops import elementwise_complex as complexes
from mlirhlo.interp.registry import Array


def power(type_: PrimitiveType) -> ArrayFunction | None:
    """Floats as C's pow (1**NaN is 1, NaN**0 is 1); integers by squaring, wrapping around."""
    if type_.is_integer:
        return lift(type_, lambda x, y: integer_power(x, y, type_))
    if type_.is_float:
        return lift_precise(type_, np.power)
    return lift_precise(type_, complexes.power) if type_.kind is Kind.COMPLEX else None


def integer_power(x: Array, y: Array, type_: PrimitiveType) -> Array:
    """Wrapping power; of a negative exponent only 1 and -1 have one, other bases give 0."""
    base, exponent = np.broadcast_arrays(x, y)
    result = np.ones(base.shape, dtype=base.dtype)
    left = np.where(exponent < 0, np.zeros((), exponent.dtype), exponent)
    square = base.copy()
    one = np.ones((), left.dtype)
    while np.any(left):
        result = np.where((left & one).astype(np.bool_), result * square, result)
        left = left >> one
        square = square * square
    if type_.is_signed:
        odd = (exponent & one).astype(np.bool_)
        inverse = np.where(base == 1, one, np.where(base == -1, np.where(odd, -one, one), 0 * one))
        result = np.where(exponent < 0, inverse.astype(base.dtype), result)
    return np.asarray(result)
