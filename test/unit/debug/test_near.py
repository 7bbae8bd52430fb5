"""Closeness of results."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mlirhlo.debug.near import Bounds, compare
from mlirhlo.interp.registry import TOKEN, DynamicArray

F = np.float32
NAN, INF = np.nan, np.inf


DEFAULT = Bounds()


def differences(a: object, b: object, bounds: Bounds = DEFAULT) -> list[str]:
    return [str(m) for m in compare(a, b, bounds)]


@pytest.mark.parametrize(
    ("expected", "actual", "close"),
    [
        ([1.0], [1.0005], True),
        ([1000.0], [1000.5], True),
        ([1000.0], [1002.0], False),
        ([0.0], [0.0005], True),
        ([0.0], [0.01], False),
        ([NAN], [NAN], True),
        ([NAN], [0.0], False),
        ([0.0], [NAN], False),
        ([INF], [INF], True),
        ([INF], [-INF], False),
        ([INF], [1e30], False),
        ([1e30], [INF], False),
        ([], [], True),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_floats(expected: list[float], actual: list[float], close: bool, dtype: type) -> None:
    a, b = np.array(expected, dtype), np.array(actual, dtype)
    assert (not differences(a, b)) is close or np.array_equal(a, b)


def test_integers_are_compared_exactly() -> None:
    a = np.array([1, 2, 3])
    assert not differences(a, a.copy())
    assert differences(a, np.array([1, 2, 4])) == [
        "1 of 3 elements differ (33.33 %)\n  [2] 4, expected 3"
    ]
    assert differences(np.array([True]), np.array([False]))
    assert differences(np.array([1], ml_dtypes.int4), np.array([2], ml_dtypes.int4))


def test_complex() -> None:
    a = np.array([1 + 1j, complex(NAN, 0)], np.complex64)
    assert not differences(a, a + np.complex64(1e-5))
    assert differences(a, a + np.complex64(1))


def test_shapes_and_types_must_be_equal() -> None:
    assert differences(np.zeros(2, F), np.zeros(3, F)) == ["float32[3], expected float32[2]"]
    assert differences(np.zeros(2, F), np.zeros(2)) == ["float64[2], expected float32[2]"]


def test_tuples_name_the_element() -> None:
    a = (np.zeros(2, F), (np.zeros(1, F), TOKEN))
    b = (np.zeros(2, F), (np.ones(1, F), TOKEN))
    assert not differences(a, a)
    (message,) = differences(a, b)
    assert message.startswith("{1,0}: 1 of 1 elements differ")
    assert differences(a, (np.zeros(2, F),)) == ["1 elements, 2 expected"]


def test_only_what_is_in_use_of_dynamic_arrays_counts() -> None:
    a = DynamicArray(np.array([1, 2, 9]), (2,))
    b = DynamicArray(np.array([1, 2, 7]), (2,))
    assert not differences(a, b)
    assert differences(a, DynamicArray(b.data, (3,)))


def test_bounds() -> None:
    a, b = np.array([100.0]), np.array([101.0])
    assert differences(a, b)
    assert not differences(a, b, Bounds(absolute=1, relative=0))
    assert not differences(a, b, Bounds(absolute=0, relative=0.01))


def test_worst_elements_come_first() -> None:
    a = np.zeros(100)
    b = np.arange(100.0)
    (message,) = differences(a, b)
    assert "99 of 100 elements differ (99 %)" in message
    assert message.split("\n")[1] == "  [99] 99.0, expected 0.0"
    assert message.endswith("and 94 more")
