"""Arrays with bounded dynamic dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import run

from mlirhlo.diagnostics import HloError
from mlirhlo.interp.registry import DynamicArray

HEAD = """HloModule m
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY e {
  x = f32[4,3] parameter(0)
  n = s32[] parameter(1)
  d = f32[<=4,3] set-dimension-size(x, n), dimensions={0}
  z = f32[] constant(0)
"""
X = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS = "k = s32[] constant({})\n  o = f32[<=4,3] set-dimension-size(x, k), dimensions={{0}}\n  "
"""As many rows of `x`."""


@pytest.mark.parametrize(
    ("tail", "want"),
    [
        ("ROOT r = f32[<=4,3] negate(d)", -X[:2]),
        ("ROOT r = f32[3] reduce(d, z), dimensions={0}, to_apply=f", X[:2].sum(axis=0)),
        ("ROOT r = f32[<=4] reduce(d, z), dimensions={1}, to_apply=f", X[:2].sum(axis=1)),
        ("ROOT r = s32[] get-dimension-size(d), dimensions={0}", np.array(2)),
        ("ROOT r = f32[3,<=4] transpose(d), dimensions={1,0}", X[:2].T),
        ("ROOT r = f32[<=8,3] concatenate(d, d), dimensions={0}", np.concatenate([X[:2]] * 2)),
        ("ROOT r = f32[<=12] reshape(d)", X[:2].reshape(-1)),
        ("ROOT r = f32[<=4,3,1] reshape(d)", X[:2, :, None]),
        ("ROOT r = f32[2,<=4,3] broadcast(d), dimensions={1,2}", np.stack([X[:2]] * 2)),
        ("ROOT r = f32[<=4,3] reverse(d), dimensions={0}", X[:2][::-1]),
        (
            "ROOT r = f32[3,3] dot(d, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            X[:2].T @ X[:2],
        ),
        ("ROOT r = f32[<=6,3] pad(d, z), padding=1_1x0_0", np.pad(X[:2], ((1, 1), (0, 0)))),
        (
            (
                "i = s32[] constant(1)\n  ROOT r = f32[<=4] gather(d, i), offset_dims={0}, "
                "collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=0, slice_sizes={4,1}"
            ),
            X[:2, 1],
        ),
        (
            "ROOT r = f32[3,3] dot(d, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            X[:2].T @ X[:2],
        ),
        (
            (
                "a = f32[3,1,4] reshape(x)\n  b = f32[1,<=4,3] reshape(d)\n"
                "  ROOT r = f32[3,1,3] convolution(a, b), window={size=1}, dim_labels=b0f_0io->b0f"
            ),
            X.reshape(3, 4)[:, None, :2] @ X[:2],
        ),
        (ROWS.format(1) + "ROOT r = f32[<=4,3] add(d, o)", X[:2] + X[:1]),
        (ROWS.format(3) + "ROOT r = f32[<=4,3] add(o, d)", X[:2] * 2),
        (ROWS.format(0) + "ROOT r = f32[<=4,3] add(o, d)", X[:0]),
        ("ROOT r = f32[<=4,3] add(d, x)", X[:2] * 2),
        (
            (
                "c = f32[1,3] constant({{7, 8, 9}})\n  i = s32[] constant(2)\n  j = s32[] constant(0)\n"
                "  p = f32[<=4,3] dynamic-update-slice(d, c, i, j)\n  three = s32[] constant(3)\n"
                "  ROOT r = f32[<=4,3] set-dimension-size(p, three), dimensions={0}"
            ),
            np.concatenate([X[:2], [[7, 8, 9]]]),
        ),
    ],
)
def test_only_elements_in_use_count(tail: str, want: np.ndarray) -> None:
    (got,) = run(f"{HEAD}  {tail}\n}}\n", X, 2)
    assert got.shape == want.shape
    assert got.tolist() == want.tolist()


def test_dynamic_reshape_takes_sizes() -> None:
    text = HEAD + ("  a = s32[] constant(3)\n  ROOT r = f32[<=4,<=3] dynamic-reshape(d, a, n)\n}\n")
    (got,) = run(text, X, 2)
    assert got.tolist() == X[:2].reshape(3, 2).tolist()
    with pytest.raises(HloError, match="HLO0306"):
        run(text.replace("constant(3)", "constant(4)"), X, 2)


def test_parameters_may_be_smaller_than_their_bounds() -> None:
    text = "HloModule m\nENTRY e {\n  x = f32[<=4] parameter(0)\n  ROOT r = f32[<=4] negate(x)\n}\n"
    assert run(text, [1, 2])[0].tolist() == [-1, -2]
    given = DynamicArray(np.array([1, 2, 9, 9], np.float32), (2,))
    assert run(text, given)[0].tolist() == [-1, -2]
    with pytest.raises(HloError, match="HLO0303"):
        run(text, [1, 2, 3, 4, 5])


def test_sizes_beyond_the_bound_are_refused() -> None:
    with pytest.raises(HloError, match="HLO0306"):
        run(HEAD + "  ROOT r = f32[<=4,3] negate(d)\n}\n", X, 5)
