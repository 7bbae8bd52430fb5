"""Comparing two results as XLA's tools do: element by element, with an absolute and a relative bound.

A floating-point element passes when it is within either bound, or both are NaN, or the same
infinity; all other types must be equal. Source: tools reference, "run_hlo_module".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mlirhlo.interp.registry import DynamicArray, Token, Value

_SHOWN = 5
"""Mismatching elements listed per array."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far apart elements may be."""

    absolute: float = 1e-3
    relative: float = 1e-3


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An array, or a tuple's shape, that differs."""

    index: tuple[int, ...]
    """Where in the result tuple; `()` for a result that is no tuple."""
    message: str

    def __str__(self) -> str:
        where = "{" + ",".join(map(str, self.index)) + "}: " if self.index else ""
        return where + self.message


def compare(
    expected: Value, actual: Value, bounds: Bounds = Bounds(), index: tuple[int, ...] = ()
) -> Iterator[Mismatch]:
    """All arrays in which `actual` is too far from `expected`."""
    if isinstance(expected, tuple) and isinstance(actual, tuple):
        wanted, given = cast("tuple[object, ...]", expected), cast("tuple[object, ...]", actual)
        if len(wanted) != len(given):
            yield Mismatch(index, f"{len(given)} elements, {len(wanted)} expected")
            return
        for i, (one, other) in enumerate(zip(wanted, given, strict=True)):
            yield from compare(one, other, bounds, (*index, i))
        return
    if isinstance(expected, Token) or isinstance(actual, Token):
        if not (isinstance(expected, Token) and isinstance(actual, Token)):
            yield Mismatch(index, "a token on one side only")
        return
    want, got = _array(cast(Any, expected)), _array(cast(Any, actual))
    if want.shape != got.shape or want.dtype != got.dtype:
        yield Mismatch(
            index,
            f"{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}",
        )
        return
    message = _elements(want, got, bounds)
    if message is not None:
        yield Mismatch(index, message)


def _array(value: Value) -> np.ndarray[Any, Any]:
    return value.valid if isinstance(value, DynamicArray) else np.asarray(value)


def _elements(want: np.ndarray[Any, Any], got: np.ndarray[Any, Any], bounds: Bounds) -> str | None:
    if want.size == 0:
        return None
    if not _is_inexact(want.dtype):
        # Bit equality also settles types that numpy cannot compare.
        wrong = cast("np.ndarray[Any, Any]", np.not_equal(want, got))
        return None if not wrong.any() else _describe(want, got, wrong, None, None)
    wide: Any = np.complex128 if want.dtype.kind == "c" else np.float64
    a: np.ndarray[Any, Any] = want.astype(wide)
    b: np.ndarray[Any, Any] = got.astype(wide)
    with np.errstate(all="ignore"):
        distance = np.abs(a - b)
        relative = distance / np.abs(a)
        close = (distance <= bounds.absolute) | (relative <= bounds.relative)
        same = (a == b) | (_is_nan(a) & _is_nan(b))
        fits = cast(Any, np.where(np.isfinite(a) & np.isfinite(b), close | same, same))
    wrong = cast("np.ndarray[Any, Any]", ~fits)
    if not wrong.any():
        return None
    return _describe(want, got, wrong, distance, relative)


def _is_nan(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(np.isnan(values))


def _is_inexact(dtype: np.dtype[Any]) -> bool:
    if dtype.kind in "biu":
        return False
    if dtype.kind in "fc":
        return True
    import ml_dtypes

    try:
        ml_dtypes.finfo(dtype)
    except ValueError:
        return False
    return True


def _describe(
    want: np.ndarray[Any, Any],
    got: np.ndarray[Any, Any],
    wrong: np.ndarray[Any, Any],
    distance: np.ndarray[Any, Any] | None,
    relative: np.ndarray[Any, Any] | None,
) -> str:
    count = int(wrong.sum())
    lines = [f"{count} of {wrong.size} elements differ ({100 * count / wrong.size:.4g} %)"]
    flat = np.flatnonzero(wrong)
    if distance is not None and relative is not None:
        finite = np.where(np.isfinite(distance), distance, np.inf).reshape(-1)
        flat = flat[np.argsort(-finite[flat], kind="stable")]
        lines[0] += (
            f"; largest absolute error {_largest(distance, wrong):.6g},"
            f" relative {_largest(relative, wrong):.6g}"
        )
    for position in flat[:_SHOWN]:
        place = ",".join(str(int(i)) for i in np.unravel_index(int(position), want.shape))
        a, b = want.reshape(-1)[position], got.reshape(-1)[position]
        lines.append(f"  [{place}] {b}, expected {a}")
    if count > _SHOWN:
        lines.append(f"  and {count - _SHOWN} more")
    return "\n".join(lines)


def _largest(values: np.ndarray[Any, Any], wrong: np.ndarray[Any, Any]) -> float:
    chosen = values[wrong]
    return float(np.max(np.where(np.isnan(chosen), np.inf, chosen)))
