"""How the checks of StableHLO tests compare two arrays.

Source: the `check` dialect of StableHLO's reference interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

TOLERANCE = 1e-4
"""Of `expect_almost_eq`: absolute below 1, relative above."""
MOST_ULPS = 3
"""Of `expect_close`."""


_SHOWN = 3
"""Elements that a failed check lists."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a check allows."""

    least_ulps: int = 0
    most_ulps: int = MOST_ULPS
    tolerance: float = TOLERANCE


def disagreement(
    check: str, actual: Array, expected: Array, bounds: Bounds = Bounds()
) -> str | None:
    """What is wrong with two arrays that `check` (`expect_close`, …) compares; None for nothing."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return (
            f"{check}: {actual.dtype}{list(actual.shape)} against"
            f" {expected.dtype}{list(expected.shape)}"
        )
    if check == "expect_close":
        far = ulps(actual, expected)
        good = (far >= bounds.least_ulps) & (far <= bounds.most_ulps)
        bound = (
            f", {int(far.max(initial=0))} units in the last place apart, {bounds.most_ulps} allowed"
        )
    elif "almost" in check:
        good = almost_equal(actual, expected, bounds.tolerance)
        bound = f", {bounds.tolerance} allowed"
    else:
        good, bound = equal(actual, expected), ""
    if good.all():
        return None
    wrong = np.argwhere(~np.atleast_1d(good))
    shown: list[str] = []
    for index in wrong[:_SHOWN]:
        at = tuple(int(i) for i in index) if actual.ndim else ()
        shown.append(f"{list(at) if at else ''} {actual[at]!s}, expected {expected[at]!s}".strip())
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    count = f"{len(wrong)} of {actual.size} elements differ"
    return f"{check}: {count}{bound}: {'; '.join(shown)}{more}"


def equal(actual: Array, expected: Array) -> Array:
    """Where two arrays are equal: bit by bit, but NaNs of all bits are one."""
    if actual.dtype.kind == "c":
        first, second = (equal(x, y) for x, y in _parts(actual, expected))
        return np.logical_and(first, second)
    if not _is_float(actual):
        return np.asarray(actual == expected)
    return np.asarray((_bits(actual) == _bits(expected)) | _both_nan(actual, expected))


def almost_equal(actual: Array, expected: Array, tolerance: float = TOLERANCE) -> Array:
    """Where two arrays are apart by the tolerance at most; integers must be equal."""
    if actual.dtype.kind == "c":
        first, second = (almost_equal(x, y, tolerance) for x, y in _parts(actual, expected))
        return np.logical_and(first, second)
    if not _is_float(actual):
        return equal(actual, expected)
    x, y = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(x - y) <= tolerance * np.maximum(1.0, np.abs(y))
    return np.asarray((near & np.isfinite(y)) | (x == y) | _both_nan(actual, expected))


def ulps(actual: Array, expected: Array) -> Array:
    """Steps from float to float that lead from one array to the other; 0 where they are equal.

    NaN against a number is as far as the type reaches; of complex numbers the worse part counts.
    """
    if actual.dtype.kind == "c":
        first, second = (ulps(x, y) for x, y in _parts(actual, expected))
        return np.maximum(first, second)
    if not _is_float(actual):
        return np.where(actual == expected, np.uint64(0), _FARTHEST)
    low, high = _ordered(actual), _ordered(expected)
    # Differences wrap in 64 bits, and are right again as numbers without a sign.
    far = np.where(low > high, low - high, high - low).astype(np.uint64)
    one_nan = np.isnan(actual.astype(np.float64)) ^ np.isnan(expected.astype(np.float64))
    far = np.where(one_nan, _FARTHEST, far)
    return np.where(_both_nan(actual, expected), np.uint64(0), far)


_FARTHEST = np.uint64(2**63)


def _parts(actual: Any, expected: Any) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Real and imaginary parts of two complex arrays."""
    return (actual.real, expected.real), (actual.imag, expected.imag)


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or "float" in array.dtype.name


def _bits(array: Array) -> Array:
    flat = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return cast(Array, flat.reshape(array.shape))


def _both_nan(x: Array, y: Array) -> Array:
    return np.asarray(np.isnan(x.astype(np.float64)) & np.isnan(y.astype(np.float64)))


def _ordered(array: Array) -> Array:
    """Integers in the order of the floats, neighbours next to each other, both zeros 0."""
    width = 8 * array.dtype.itemsize
    # Shifted to the top of 64 bits, the sign is that of the integer.
    bits = (_bits(array).astype(np.uint64) << np.uint64(64 - width)).view(np.int64)
    size = (bits & np.int64(2**63 - 1)) >> np.int64(64 - width)
    return np.where(bits < 0, -size, size)
