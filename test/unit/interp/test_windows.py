"""Windows folded by computations of every kind, and batch normalisation next to numpy."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import adder, one, run

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline


def test_padding_takes_no_part() -> None:
    # An initial value that is no identity counts once a window, not once an element of padding.
    line = "f32[4] reduce-window(p0, p1), window={size=2 pad=1_0}, to_apply=f"
    got = one(line, ["f32[4]", "f32[]"], [1, 2, 3, 4], 10, computations=adder("f32"))
    assert got.tolist() == [11, 13, 15, 17]


def test_windows_as_long_as_the_array() -> None:
    size = 100_000
    line = f"f32[{size}] reduce-window(p0, p1), window={{size={size} pad={size - 1}_0}}, to_apply=f"
    x = np.random.default_rng(1).standard_normal(size).astype(np.float32)
    got = one(line, [f"f32[{size}]", "f32[]"], x, 0, computations=adder("f32"))
    np.testing.assert_allclose(got, np.cumsum(x, dtype=np.float64), rtol=1e-5, atol=1e-4)


def test_any_computation() -> None:
    body = adder("f32").replace("add(a, b)", "subtract(a, b)")
    line = "f32[3] reduce-window(p0, p1), window={size=2}, to_apply=f"
    got = one(line, ["f32[4]", "f32[]"], [1, 2, 3, 4], 0, computations=body)
    assert got.tolist() == [-3, -5, -7]


def test_several_operands() -> None:
    text = """HloModule m
f {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  ge = pred[] compare(a, b), direction=GE
  v = f32[] select(ge, a, b)
  k = s32[] select(ge, i, j)
  ROOT r = (f32[], s32[]) tuple(v, k)
}
ENTRY e {
  x = f32[5] parameter(0)
  i = s32[5] iota(), iota_dimension=0
  low = f32[] constant(-inf)
  none = s32[] constant(-1)
  ROOT r = (f32[3], s32[3]) reduce-window(x, i, low, none), window={size=3 stride=2 pad=1_1}, to_apply=f
}
"""
    values, places = run(text, [3, 1, 4, 1, 5])
    assert values.tolist() == [3, 4, 5]
    assert places.tolist() == [0, 2, 4]


def test_select_and_scatter() -> None:
    select = (
        "s {\n  c = f32[] parameter(0)\n  d = f32[] parameter(1)\n"
        "  ROOT g = pred[] compare(c, d), direction=GE\n}\n"
    )
    line = "f32[4] select-and-scatter(p0, p1, p2), window={size=2 stride=2}, select=s, scatter=f"
    got = one(line, ["f32[4]", "f32[2]", "f32[]"], [1, 5, 7, 7], [10, 20], 0.5,
              computations=adder("f32") + select)  # fmt: skip
    assert got.tolist() == [0.5, 10.5, 20.5, 0.5]


def test_batch_norm_is_consistent() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 3, 5)).astype(np.float32) * 3 + 2
    scale, offset = (rng.standard_normal(3).astype(np.float32) for _ in range(2))
    shapes = ["f32[4,3,5]", "f32[3]", "f32[3]"]
    out, mean, variance = one(
        "(f32[4,3,5], f32[3], f32[3]) batch-norm-training(p0, p1, p2), epsilon=0.001, feature_index=1",
        shapes, x, scale, offset,
    )  # fmt: skip
    np.testing.assert_allclose(mean, x.mean(axis=(0, 2)), rtol=1e-5)
    np.testing.assert_allclose(variance, x.var(axis=(0, 2)), rtol=1e-5)
    again = one(
        "f32[4,3,5] batch-norm-inference(p0, p1, p2, p3, p4), epsilon=0.001, feature_index=1",
        [*shapes, "f32[3]", "f32[3]"], x, scale, offset, mean, variance,
    )  # fmt: skip
    np.testing.assert_allclose(out, again, rtol=1e-4, atol=1e-5)
    grad = rng.standard_normal(x.shape).astype(np.float32)
    operand, _, of_offset = one(
        "(f32[4,3,5], f32[3], f32[3]) batch-norm-grad(p0, p1, p2, p3, p4), epsilon=0.001, feature_index=1",
        ["f32[4,3,5]", "f32[3]", "f32[3]", "f32[3]", "f32[4,3,5]"], x, scale, mean, variance, grad,
    )  # fmt: skip
    np.testing.assert_allclose(of_offset, grad.sum(axis=(0, 2)), rtol=1e-4, atol=1e-5)
    # Adding a constant to x changes nothing, so the gradients of a feature add up to zero.
    np.testing.assert_allclose(operand.sum(axis=(0, 2)), np.zeros(3), atol=1e-3)


SHAPES = "x = f64[4,3] parameter(0)\n  a = f64[3] parameter(1)\n  b = f64[3] parameter(2)"


@pytest.mark.parametrize(
    "line",
    [
        "f64[4,3] batch-norm-inference(x, a, b, c, d)",
        "(f64[4,3], f64[3], f64[3]) batch-norm-training(x, a, b)",
        "(f64[4,3], f64[3], f64[3]) batch-norm-grad(x, a, b, c, g)",
    ],
)
def test_batch_norm_of_special_values_is_what_xla_expands_it_to(line: str) -> None:
    draw = np.random.default_rng(5)
    text = (
        f"ENTRY e {{\n  {SHAPES}\n  c = f64[3] parameter(3)\n  d = f64[3] parameter(4)\n"
        f"  g = f64[4,3] parameter(5)\n  ROOT r = {line}, epsilon=0.5, feature_index=1\n}}\n"
    )
    plain, expanded = parse_module(text), parse_module(text)
    run_pipeline(expanded, parse_pipeline("batchnorm_expander"))
    for _ in range(40):
        shapes = [(4, 3), *[(3,)] * 4, (4, 3)]
        # A variance of -epsilon has an infinite reciprocal root; differences from a mean are often 0.
        inputs = [draw.choice([-0.5, 0.0, 0.0, 1.0, 1.0, np.inf], s) for s in shapes]
        before, after = (run_module(m, inputs) for m in (plain, expanded))
        as_list = [r if isinstance(r, (list, tuple)) else (r,) for r in (before, after)]
        for left, right in zip(*as_list, strict=True):
            np.testing.assert_allclose(left, right, atol=1e-9)
