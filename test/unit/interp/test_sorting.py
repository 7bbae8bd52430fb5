"""Sorts by key and by any comparator."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import one, run

LEXICOGRAPHIC = """HloModule m
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  lt = pred[] compare(a, b), direction=LT
  eq = pred[] compare(a, b), direction=EQ
  gt = pred[] compare(c, d), direction=GT
  both = pred[] and(eq, gt)
  ROOT r = pred[] or(lt, both)
}
ENTRY e {
  x = s32[2,SIZE] parameter(0)
  y = f32[2,SIZE] parameter(1)
  i = s32[2,SIZE] iota(), iota_dimension=1
  s = (s32[2,SIZE], f32[2,SIZE], s32[2,SIZE]) sort(x, y, i), dimensions={1}, is_stable=true, to_apply=g
  ROOT r = s32[2,SIZE] get-tuple-element(s), index=2
}
"""
COMPARATOR = LEXICOGRAPHIC.replace("f {", "g {", 1).replace(
    "  lt =", "  k = s32[] parameter(4)\n  l = s32[] parameter(5)\n  lt ="
)


@pytest.mark.parametrize("size", [1, 2, 3, 17, 64, 1000])
def test_any_comparator_is_stable(size: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.integers(0, 5, (2, size)).astype(np.int32)
    y = rng.integers(0, 3, (2, size)).astype(np.float32)
    (order,) = run(COMPARATOR.replace("SIZE", str(size)), x, y)
    want = [sorted(range(size), key=lambda k: (x[r, k], -y[r, k])) for r in range(2)]
    assert order.tolist() == want


def comparator(body: str, name: str = "f32") -> str:
    return f"f {{\n  a = {name}[] parameter(0)\n  b = {name}[] parameter(1)\n  {body}\n}}\n"


def test_key_of_both_sides() -> None:
    body = "x = f32[] abs(a)\n  y = f32[] abs(b)\n  ROOT r = pred[] compare(x, y), direction=GT"
    got = one("f32[4] sort(p0), dimensions={0}, to_apply=f", ["f32[4]"], [1, -3, 3, -2],
              computations=comparator(body))  # fmt: skip
    assert got.tolist() == [-3, 3, -2, 1]


def test_nan_in_a_partial_order_ends() -> None:
    x = [2.0, np.nan, 1.0, np.nan, 0.0]
    body = "ROOT r = pred[] compare(a, b), direction=LT"
    got = one("f32[5] sort(p0), dimensions={0}, to_apply=f", ["f32[5]"], x,
              computations=comparator(body))  # fmt: skip
    assert sorted(map(str, got.tolist())) == sorted(map(str, x))


def test_a_comparator_that_is_no_order_still_permutes() -> None:
    body = "ROOT r = pred[] constant(true)"
    got = one("s32[6] sort(p0), dimensions={0}, to_apply=f", ["s32[6]"], [3, 1, 2, 6, 5, 4],
              computations=comparator(body, "s32"))  # fmt: skip
    assert sorted(got.tolist()) == [1, 2, 3, 4, 5, 6]


def test_topk_takes_the_first_of_equal_ones() -> None:
    values, places = one(
        "(f32[3], s32[3]) topk(p0), k=3, largest=true", ["f32[5]"], [1, 4, 4, np.nan, 2]
    )
    assert np.isnan(values[0])
    assert values[1:].tolist() == [4, 4]
    assert places.tolist() == [3, 1, 2]
