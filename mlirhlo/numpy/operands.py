"""What a function is given, as arrays of one type: scalars, numpy arrays, promotion, broadcasting."""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy.array import Array
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.errors import HloTypeError, HloValueError, problem

_SCALARS = (bool, int, float, complex)

CATEGORIES: dict[str, str] = {
    "any": "biufc",
    "numeric": "iufc",
    "real": "iuf",
    "bits": "biu",
    "integer": "iu",
    "float": "iufc",
    "real float": "iuf",
}
"""Kinds of types that functions of a category take. Those of floats take integers as floats."""


def is_scalar(given: Any) -> bool:
    """Whether it is a Python scalar; numpy's scalars are arrays of rank 0."""
    return isinstance(given, _SCALARS) and not isinstance(given, np.generic)


def is_operand(given: Any) -> bool:
    """Whether operators take it."""
    return isinstance(given, (Array, np.ndarray, np.generic, *_SCALARS))


def as_array(given: Any, what: str, dtype: DType | None = None) -> Array:
    """An array of what a function was given; scalars get `dtype` or their default.

    Raises HLO0625 for lists and other objects, and for a scalar that `dtype` cannot hold.
    """
    if isinstance(given, Array):
        return given
    if is_scalar(given):
        return Array.concrete(scalar_data(given, dtype or default_of(given), what))
    if isinstance(given, (np.ndarray, np.generic)):
        data: Any = np.asarray(cast(Any, given))
        dt.primitive(data.dtype)
        return Array.concrete(data.copy())
    raise problem(
        HloTypeError,
        "HLO0625",
        f"{what}: takes arrays and Python scalars, not {type(given).__name__}",
        help="mlirhlo.numpy.asarray(…) makes an array of lists and other objects",
    )


def operand(given: Any, what: str) -> Any:
    """A Python scalar as it is, everything else as an array. Raises HLO0625."""
    return given if is_scalar(given) else as_array(given, what)


def default_of(scalar: Any) -> DType:
    """The type of a Python scalar without an array beside it."""
    if isinstance(scalar, bool):
        return dt.bool
    if isinstance(scalar, int):
        return dt.uint64 if scalar > 2**63 - 1 else dt.int64
    return dt.float64 if isinstance(scalar, float) else dt.complex128


def scalar_data(scalar: Any, dtype: DType, what: str) -> np.ndarray[Any, Any]:
    """A Python scalar as data of rank 0. Raises HLO0625 when the type cannot hold it."""
    try:
        if isinstance(scalar, int) and dt.kind_of(dtype) in "fc":
            scalar = float(scalar)
        return np.array(scalar, dtype=dtype)
    except (OverflowError, TypeError, ValueError):
        raise problem(
            HloValueError, "HLO0625", f"{what}: {scalar!r} does not fit {dtype}"
        ) from None


@functools.lru_cache(maxsize=1 << 14)
def _broadcast(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def broadcast_shapes(what: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape. Raises HLO0626 when there is none."""
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        return shapes[0]
    found = _broadcast(shapes)
    if found is None:
        text = " and ".join(str(list(shape)) for shape in shapes)
        raise problem(
            HloValueError,
            "HLO0626",
            f"{what}: shapes {text} do not broadcast",
            help="sizes have to be equal or 1, counted from the last dimension",
        )
    return found


def token(given: Any) -> Any:
    """What stands for an operand in promotion: its dtype, or the type of a Python scalar."""
    if isinstance(given, Array):
        return given.weak or given.dtype
    if is_scalar(given):
        return bool if isinstance(given, bool) else type(given)
    return given.dtype


def common_dtype(what: str, category: str, given: tuple[Any, ...]) -> DType:
    """The type in which a function of a category works on operands. Raises HLO0625."""
    tokens = tuple(token(one) for one in given)
    try:
        if all(isinstance(one, type) for one in tokens):
            # Only Python scalars: their defaults promote.
            dtype = dt.promote(tuple(dt.as_dtype(one) for one in tokens))
        else:
            dtype = dt.promote(tokens)
    except TypeError:
        names = " and ".join(getattr(one, "__name__", str(one)) for one in tokens)
        raise problem(
            HloTypeError,
            "HLO0625",
            f"{what}: no type is common to {names}",
            help="convert one of them: mlirhlo.numpy.astype(x, dtype)",
        ) from None
    return checked(what, category, dtype)


def checked(what: str, category: str, dtype: DType) -> DType:
    """The type a function of a category works in for an operand's type. Raises HLO0625."""
    kind = dt.kind_of(dtype)
    if kind not in CATEGORIES[category]:
        names = {
            "b": "bool",
            "i": "integers",
            "u": "integers",
            "f": "floats",
            "c": "complex numbers",
        }
        takes = ", ".join(dict.fromkeys(names[k] for k in CATEGORIES[category]))
        raise problem(
            HloTypeError,
            "HLO0625",
            f"{what}: takes {takes}, not {dtype}",
            help="convert it: mlirhlo.numpy.astype(x, dtype)" if kind in "bf" else None,
        )
    return dt.floating(dtype) if category.endswith("float") else dtype


def weak_of(given: tuple[Any, ...]) -> type | None:
    """The Python type a result promotes as: the widest, where every operand was a scalar."""
    kinds = [
        (g.weak if isinstance(g, Array) else token(g) if is_scalar(g) else None) for g in given
    ]
    if any(kind is None for kind in kinds):
        return None
    return max(cast("list[type]", kinds), key=_SCALARS.index)


def with_weak(result: Array, weak: type | None) -> Array:
    """The result, marked as what promotes like a Python scalar; concrete ones never do."""
    if weak is None or result.data is not None or result.trace is None:
        return result
    kind = {bool: "b", int: "iu", float: "f", complex: "c"}[weak]
    if dt.kind_of(result.dtype) not in kind:
        return result
    return Array.traced(result.trace, result.value, result.dtype, result.shape, weak)


def shape_of(given: Any, what: str) -> tuple[int, ...]:
    """A shape from an integer or integers. Raises HLO0620 and HLO0626."""
    parts: Sequence[Any] = given if isinstance(given, (tuple, list)) else (given,)
    try:
        shape = tuple(int(part.__index__()) for part in parts)
    except AttributeError:
        raise problem(HloTypeError, "HLO0626", f"{what}: {given!r} is no shape") from None
    if any(size < 0 for size in shape):
        raise problem(HloValueError, "HLO0626", f"{what}: a size is negative in {given!r}")
    return shape
