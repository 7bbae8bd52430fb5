"""Folds: variadic, long, in narrow types; scans."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from interp_support import adder, one, run


def test_narrow_sums_are_kept_in_f32() -> None:
    # One bf16 after the other would stop at 256; XLA:CPU gives 4096.
    ones = np.ones(4096, ml_dtypes.bfloat16)
    got = one("bf16[] reduce(p0, p1), dimensions={0}, to_apply=f", ["bf16[4096]", "bf16[]"], ones,
              np.zeros((), ones.dtype), computations=adder("bf16"))  # fmt: skip
    assert float(got) == 4096


def test_signs_of_zero_survive_extrema() -> None:
    for opcode, sign in (("maximum", False), ("minimum", True)):
        got = one("f32[] reduce(p0, p1), dimensions={0}, to_apply=f", ["f32[2]", "f32[]"],
                  [-0.0, 0.0], -np.inf if opcode == "maximum" else np.inf,
                  computations=adder("f32", opcode))  # fmt: skip
        assert np.signbit(got) == sign


ARGMAX = """HloModule m
f {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GT
  eq = pred[] compare(a, b), direction=EQ
  lt = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, lt)
  first = pred[] or(gt, tie)
  v = f32[] select(first, a, b)
  k = s32[] select(first, i, j)
  ROOT r = (f32[], s32[]) tuple(v, k)
}
ENTRY e {
  x = f32[SIZE,3] parameter(0)
  i = s32[SIZE,3] iota(), iota_dimension=0
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[3], s32[3]) reduce(x, i, low, zero), dimensions={0}, to_apply=f
}
"""


@pytest.mark.parametrize("size", [1, 7, 512, 513, 5001])
def test_variadic(size: int) -> None:
    x = np.random.default_rng(size).integers(0, 50, (size, 3)).astype(np.float32)
    values, places = run(ARGMAX.replace("SIZE", str(size)), x)
    assert values.tolist() == x.max(axis=0).tolist()
    assert places.tolist() == x.argmax(axis=0).tolist()


def test_long_folds_keep_the_order_of_operands() -> None:
    # 2x2 matrix products do not commute; the reducer multiplies them.
    text = """HloModule m
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] copy(b)
}
ENTRY e {
  x = s32[3000] iota(), iota_dimension=0
  z = s32[] constant(-1)
  ROOT r = s32[] reduce(x, z), dimensions={0}, to_apply=f
}
"""
    assert run(text)[0] == 2999


@pytest.mark.parametrize(("reverse", "want"), [("", [1, 3, 6]), ("is_reverse=true, ", [6, 5, 3])])
def test_scan(reverse: str, want: list[float]) -> None:
    text = f"""HloModule m
f {{
  x = f32[] parameter(0)
  c = f32[] parameter(1)
  s = f32[] add(x, c)
  ROOT r = (f32[], f32[]) tuple(s, s)
}}
ENTRY e {{
  p0 = f32[3] parameter(0)
  p1 = f32[] parameter(1)
  ROOT r = (f32[3], f32[]) scan(p0, p1), dimensions={{0}}, num_carries=1, {reverse}to_apply=f
}}
"""
    stacked, carry = run(text, [1, 2, 3], 0)
    assert stacked.tolist() == want
    assert carry == 6
