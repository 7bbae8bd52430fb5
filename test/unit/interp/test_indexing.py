"""Places outside of arrays: gather clamps, scatter leaves out, slices move inside."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import adder, one

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_gather_clamps() -> None:
    line = (
        "f32[3,3] gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,3}"
    )
    got = one(line, ["f32[4,3]", "s32[3]"], X, [-5, 2, 9])
    assert got.tolist() == X[[0, 2, 3]].tolist()


def test_scatter_leaves_out_whole_windows() -> None:
    line = (
        "f32[4] scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f"
    )
    got = one(line, ["f32[4]", "s32[3,1]", "f32[3,2]"], [0, 0, 0, 0], [[-1], [3], [1]],
              [[1, 1], [2, 2], [4, 8]], computations=adder("f32"))  # fmt: skip
    assert got.tolist() == [0, 4, 8, 0]


@pytest.mark.parametrize("index", ["s32", "u32", "s64", "u64"])
def test_huge_indices(index: str) -> None:
    line = (
        "f32[1] scatter(p0, p1, p2), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f"
    )
    high = np.iinfo(index.replace("s", "int").replace("u", "uint")).max
    places = np.array([[high], [0]], dtype=np.uint64 if index == "u64" else np.int64)
    got = one(line, ["f32[1]", f"{index}[2,1]", "f32[2]"], [1], places, [5, 7],
              computations=adder("f32"))  # fmt: skip
    assert got.tolist() == [8]


def test_updates_of_one_place_combine_in_order() -> None:
    line = (
        "s32[2] scatter(p0, p1, p2), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f"
    )
    body = (
        "f {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  t = s32[] constant(10)\n"
        "  m = s32[] multiply(a, t)\n  ROOT r = s32[] add(m, b)\n}\n"
    )
    got = one(line, ["s32[2]", "s32[4,1]", "s32[4]"], [0, 5], [[0], [1], [0], [0]], [1, 2, 3, 4],
              computations=body)  # fmt: skip
    assert got.tolist() == [134, 52]


def test_dynamic_slices_move_inside() -> None:
    line = "f32[2,2] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,2}"
    got = one(line, ["f32[4,3]", "s32[]", "s32[]"], X, 3, -4)
    assert got.tolist() == X[2:, :2].tolist()


def test_values_given_are_not_written_to() -> None:
    x = X.copy()
    line = "f32[4,3] dynamic-update-slice(p0, p1, p2, p3)"
    got = one(line, ["f32[4,3]", "f32[1,1]", "s32[]", "s32[]"], x, [[99]], 0, 0)
    assert got[0, 0] == 99
    assert x.tolist() == X.tolist()
