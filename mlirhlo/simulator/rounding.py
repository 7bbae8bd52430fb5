"""Correctly rounded floating-point operations in all modes, by error-free transformations.

`rn` of single precision is numpy's own; other modes know the sign of the residual (exact result minus rounded
result) and step to the neighbour. Products and sums of single precision are exact in two doubles. Doubles far
from the ends of their range use two-product and two-sum; the few others are computed with fractions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from math import inf, isfinite, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlirhlo.simulator.lanes import Array

F64 = NDArray[np.float64]
_SPLITTER = 134217729.0  # 2**27 + 1
_SMALL, _LARGE = 2.0**-900, 2.0**900


def two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    """The rounded sum, and what rounding lost."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: F64, b: F64) -> tuple[F64, F64]:
    """The rounded product, and what rounding lost (far from overflow and underflow)."""
    product = a * b
    x, y = a * _SPLITTER, b * _SPLITTER
    a_high, b_high = x - (x - a), y - (y - b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def step(result: Array, residual: Array, mode: str) -> Array:
    """The result in a directed mode, from the nearest one and a value with the sign of the residual."""
    kind = result.dtype.type
    up, down = residual > 0, residual < 0
    match mode:
        case "rz":
            return np.where(
                (down & (result > 0)) | (up & (result < 0)), np.nextafter(result, kind(0)), result
            )
        case "rm":
            return np.where(down, np.nextafter(result, kind(-inf)), result)
        case "rp":
            return np.where(up, np.nextafter(result, kind(inf)), result)
        case _:
            return result


def _narrowed(high: F64, low: F64, mode: str) -> Array:
    """`high + low` as single precision."""
    result = high.astype(np.float32)
    left = high - result.astype(np.float64)
    left = np.where(np.isnan(left), np.where(np.isinf(high), 0.0, -high), left)
    return step(result, np.where(left == 0, low, left), mode)


def to_odd(total: F64, error: F64) -> F64:
    """A sum with its error, rounded to odd: rounding it again to fewer bits is rounding the exact sum."""
    bits = total.view(np.int64)
    even = (bits & 1) == 0
    towards = np.where((error > 0) == (total > 0), 1, -1)
    move = even & (error != 0) & np.isfinite(total) & np.isfinite(error) & (total != 0)
    return np.where(move, bits + towards, bits).view(np.float64)


def _exact_zero_sign(result: Array, a: Array, b: Array, mode: str) -> Array:
    """In `rm` the sum of two opposite numbers is -0."""
    if mode != "rm":
        return result
    opposite = (result == 0) & (np.signbit(a) != np.signbit(b))
    return np.where(opposite, result.dtype.type(-0.0), result)


def add(a: Array, b: Array, mode: str) -> Array:
    """`a + b`."""
    if mode == "rn":
        return a + b
    total, error = two_sum(a.astype(np.float64), b.astype(np.float64))
    error = np.where(np.isfinite(total), error, 0.0)
    if a.dtype == np.float32:
        return _exact_zero_sign(_narrowed(total, error, mode), a, b, mode)
    both = np.isfinite(a) & np.isfinite(b)
    error = np.where(np.isinf(total) & both, -total, error)
    return _exact_zero_sign(step(total, error, mode), a, b, mode)


def subtract(a: Array, b: Array, mode: str) -> Array:
    """`a - b`."""
    return a - b if mode == "rn" else add(a, -b, mode)


def reciprocal(a: Array, mode: str) -> Array:
    """`1 / a`."""
    return divide(np.ones_like(a), a, mode)


def multiply(a: Array, b: Array, mode: str) -> Array:
    """`a * b`."""
    if mode == "rn":
        return a * b
    if a.dtype == np.float32:
        return _narrowed(a.astype(np.float64) * b.astype(np.float64), np.zeros(len(a)), mode)
    product, error = two_product(a, b)
    result = step(product, error, mode)
    return _repaired(result, (a, b), mode, operator.mul)


def fma(a: Array, b: Array, c: Array, mode: str) -> Array:
    """`a * b + c`, rounded once."""
    if a.dtype == np.float32:
        product = a.astype(np.float64) * b.astype(np.float64)
        if mode == "rn":
            return _fma_nearest(product, c)
        total, error = two_sum(product, c.astype(np.float64))
        error = np.where(np.isfinite(total), error, 0.0)
        return _exact_zero_sign(_narrowed(total, error, mode), product, c, mode)
    high, low = two_product(a, b)
    t, t_low = two_sum(c, low)
    v, v_low = two_sum(high, t)
    rest = to_odd(*two_sum(t_low, v_low))
    result = v + rest
    if mode != "rn":
        result, left = two_sum(v, rest)
        result = _exact_zero_sign(step(result, left, mode), high, c, mode)
    result = np.where(np.isnan(result), a * b + c, result)
    return _repaired(result, (a, b, c), mode, _product_and_sum)


def _fma_nearest(product: F64, c: Array) -> Array:
    total = product + c
    result = total.astype(np.float32)
    # Rounding twice is wrong only halfway between two singles; below the normal numbers halfway lies elsewhere.
    doubtful = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    doubtful |= np.abs(total) < 2.0**-125
    if doubtful.any():
        some, error = two_sum(product[doubtful], c[doubtful].astype(np.float64))
        result[doubtful] = to_odd(some, error).astype(np.float32)
    return result


def divide(a: Array, b: Array, mode: str) -> Array:
    """`a / b`."""
    quotient = a / b
    if mode == "rn":
        return quotient
    if a.dtype == np.float32:
        left = a.astype(np.float64) - quotient.astype(np.float64) * b.astype(np.float64)
        overflow = np.isinf(quotient) & np.isfinite(a) & (b != 0)
        left = np.where(overflow, -quotient, left * np.sign(b))
        return step(quotient, np.where(np.isinf(b) | np.isinf(a), 0.0, left), mode)
    product, error = two_product(quotient, b)
    result = step(quotient, ((a - product) - error) * np.sign(b), mode)
    return _repaired(result, (a, b), mode, _quotient)


def square_root(a: Array, mode: str) -> Array:
    """The square root."""
    root = np.sqrt(a)
    if mode == "rn":
        return root
    if a.dtype == np.float32:
        left = a.astype(np.float64) - root.astype(np.float64) ** 2
        return step(root, np.where(np.isfinite(a), left, 0.0), mode)
    scale = np.where(a < 2.0**-500, 2.0**600, np.where(a > 2.0**500, 2.0**-600, 1.0))
    product, error = two_product(root * np.sqrt(scale), root * np.sqrt(scale))
    left = np.where(np.isfinite(a) & (a > 0), (a * scale - product) - error, 0.0)
    return step(root, left, mode)


def _product_and_sum(x: Any, y: Any, z: Any) -> Any:
    return x * y + z


def _quotient(x: Any, y: Any) -> Any:
    return x / y if y else None


def _repaired(
    result: F64, operands: tuple[F64, ...], mode: str, function: Callable[..., Any]
) -> F64:
    """Computes with fractions where intermediate results are near the ends of the range."""
    doubtful = np.zeros(len(result), np.bool_)
    finite = np.ones(len(result), np.bool_)
    for one in operands:
        size = np.abs(one)
        doubtful |= (size != 0) & ((size < _SMALL) | (size > _LARGE))
        finite &= np.isfinite(one)
    size = np.abs(result)
    doubtful |= ((size < _SMALL) & (size != 0)) | (size > _LARGE)
    if len(operands) > 1:
        product = np.abs(operands[0] * operands[1])
        doubtful |= (product < _SMALL) & (operands[0] != 0) & (operands[1] != 0)
        doubtful |= product > _LARGE
    for lane in np.flatnonzero(doubtful & finite).tolist():
        values = [Fraction(float(one[lane])) for one in operands]
        exact = function(*values)
        if exact is None or not exact:
            continue
        result[lane] = nearest(exact, mode)
    special = doubtful & ~finite
    if special.any():
        plain = (
            function(*(np.where(special, one, 1.0) for one in operands))
            if len(operands) != 2
            else None
        )
        if plain is not None:
            result = np.where(special, plain, result)
    return result


def nearest(exact: Fraction, mode: str) -> float:
    """A fraction as a double."""
    try:
        value = float(exact)
    except OverflowError:
        value = inf if exact > 0 else -inf
    if mode == "rn" or (isfinite(value) and Fraction(value) == exact):
        return value
    above = value == inf or (isfinite(value) and Fraction(value) > exact)
    if above and (mode == "rm" or (mode == "rz" and exact > 0)):
        return nextafter(value, -inf)
    if not above and (mode == "rp" or (mode == "rz" and exact < 0)):
        return nextafter(value, inf)
    return value


def narrow(values: F64, mode: str) -> Array:
    """Doubles as single precision."""
    return (
        _narrowed(values, np.zeros(len(values)), mode)
        if mode != "rn"
        else values.astype(np.float32)
    )
