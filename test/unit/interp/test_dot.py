"""Products that XLA:CPU does not run: ragged, scaled, by algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import one

RNG = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_ragged_rows() -> None:
    lhs, rhs, sizes = normal(7, 4), normal(3, 4, 5), [2, 1, 3]
    got = one(
        "f32[7,5] ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
        "lhs_ragged_dims={0}, rhs_group_dims={0}",
        ["f32[7,4]", "f32[3,4,5]", "s32[3]"], lhs, rhs, sizes,
    )  # fmt: skip
    groups = np.repeat([0, 1, 2], sizes)
    want = [lhs[i] @ rhs[g] for i, g in enumerate(groups)] + [np.zeros(5)]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_ragged_rows_with_sizes_of_each_batch() -> None:
    lhs, rhs, sizes = (
        normal(2, 6, 4),
        normal(3, 2, 4, 5),
        np.array([[2, 1, 3], [1, 5, 0]], np.int32),
    )
    got = one(
        "f32[2,6,5] ragged-dot(p0, p1, p2), lhs_batch_dims={0}, rhs_batch_dims={1}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={0}",
        ["f32[2,6,4]", "f32[3,2,4,5]", "s32[2,3]"], lhs, rhs, sizes,
    )  # fmt: skip
    for batch in range(2):
        groups = np.repeat([0, 1, 2], sizes[batch])
        want = [lhs[batch, i] @ rhs[g, batch] for i, g in enumerate(groups)]
        np.testing.assert_allclose(got[batch], want, rtol=1e-5, atol=1e-6)


def test_ragged_contracting_adds_a_group_dimension() -> None:
    lhs, rhs = normal(6, 4), normal(6, 5)
    got = one(
        "f32[3,4,5] ragged-dot(p0, p1, p2), lhs_contracting_dims={0}, rhs_contracting_dims={0}, "
        "lhs_ragged_dims={0}",
        ["f32[6,4]", "f32[6,5]", "s32[3]"], lhs, rhs, [2, 0, 3],
    )  # fmt: skip
    want = [lhs[0:2].T @ rhs[0:2], np.zeros((4, 5)), lhs[2:5].T @ rhs[2:5]]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_scales_stand_for_blocks() -> None:
    lhs, rhs = normal(2, 8), normal(8, 3)
    left, right = normal(2, 2), normal(4, 3)
    got = one(
        "f32[2,3] scaled-dot(p0, p1, p2, p3), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ["f32[2,8]", "f32[2,2]", "f32[8,3]", "f32[4,3]"], lhs, left, rhs, right,
    )  # fmt: skip
    want = (lhs * np.repeat(left, 4, axis=1)) @ (rhs * np.repeat(right, 2, axis=0))
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize(
    ("algorithm", "want"),
    [("dot_f32_f32_f32", 1.0009766), ("dot_bf16_bf16_f32", 1.0), ("dot_tf32_tf32_f32", 1.0009766)],
)
def test_algorithms_round_operands(algorithm: str, want: float) -> None:
    got = one(
        "f32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}, "
        f"algorithm={algorithm}", ["f32[1]", "f32[1]"], [1.0009766], [1.0],
    )  # fmt: skip
    assert got == np.float32(want)


def test_large_integer_products_wrap() -> None:
    x = np.full((1, 3), 2**31 - 1, np.int32)
    got = one("s32[1,1] dot(p0, p0), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
              ["s32[1,3]"], x)  # fmt: skip
    assert got[0, 0] == 3
