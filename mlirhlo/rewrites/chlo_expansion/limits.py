"""Numbers that depend on the element type."""

from __future__ import annotations

from typing import Any, cast

from mlirhlo.rewrites.chlo_expansion.emitter import Value


def finfo(x: Value) -> Any:
    """The limits of the (real) element type of `x`."""
    import ml_dtypes

    return cast(Any, ml_dtypes.finfo)(x.element_type.dtype)


def largest(x: Value) -> float:
    """The largest finite number of the element type of `x`."""
    return float(finfo(x).max)


def smallest(x: Value) -> float:
    """The smallest positive normal number of the element type of `x`."""
    return float(finfo(x).smallest_normal)


def narrow(x: Value, number: float) -> float:
    """`number` as the element type of `x` has it."""
    return float(x.element_type.dtype.type(number))


def scaled(x: Value, number: float, factor: float) -> float:
    """A product rounded once in the element type of `x`, as a folded multiplication rounds it."""
    type_ = x.element_type.dtype.type
    return float(type_(number) * type_(factor))
