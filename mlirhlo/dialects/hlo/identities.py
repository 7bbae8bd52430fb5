"""The numbers that an opcode of two operands leaves its other operand with, in every element type."""

from __future__ import annotations

from typing import Any

from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.dialects.hlo.table import Extreme, Opcode


def identity_element(row: Opcode, type_: PrimitiveType) -> complex | None:
    """The `e` with `f(e, x) == x` for every x, as bool, int, float or complex; None where there is none.

    Of a sum of floats it is -0.0, since 0.0 + -0.0 is 0.0; an extreme of floats has the infinity or, where the type
    has none, the greatest number, so that NaN wins over it.
    """
    if row.identity is None:
        return None
    if row.identity is Extreme.ZERO and type_.is_complex:
        return complex(-0.0, -0.0)
    if row.identity is Extreme.ZERO and type_.is_float:
        return -0.0 if type_.has_zero else None
    return number(row.identity, type_)


def number(which: Extreme, type_: PrimitiveType) -> complex | None:
    """A distinguished number of a type, as bool, int, float or complex; None where the type has it not."""
    if type_.kind is Kind.PRED:
        return which not in (Extreme.ZERO, Extreme.LEAST)
    match which:
        case Extreme.ZERO:
            return 0 if type_.has_zero else None
        case Extreme.ONE:
            return 1
        case Extreme.ALL_ONES if type_.is_integer:
            return -1 if type_.is_signed else (1 << type_.bits) - 1
        case Extreme.LEAST | Extreme.GREATEST if type_.is_integer:
            least = -(1 << (type_.bits - 1)) if type_.is_signed else 0
            return least if which is Extreme.LEAST else least + (1 << type_.bits) - 1
        case Extreme.LEAST | Extreme.GREATEST if type_.is_float:
            return _extreme_of_floats(which, type_)
        case _:
            return None


def _extreme_of_floats(which: Extreme, type_: PrimitiveType) -> float:
    if type_.has_infinity:
        return float("-inf") if which is Extreme.LEAST else float("inf")
    import ml_dtypes

    about: Any = ml_dtypes
    info = about.finfo(type_.dtype)
    return float(info.min if which is Extreme.LEAST else info.max)
