"""Bitcasts, mixed types and other moves that XLA:CPU does not show."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import one


def test_bitcast_follows_layouts() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = one("f32[3,2]{1,0} bitcast(p0)", ["f32[2,3]{0,1}"], x)
    assert got.tolist() == x.T.tolist()
    got = one("f32[6] bitcast(p0)", ["f32[2,3]{1,0}"], x)
    assert got.tolist() == x.reshape(-1).tolist()


def test_bitcast_crops_padding_of_tiles() -> None:
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    got = one("f32[4,3]{1,0:T(4,128)} bitcast(p0)", ["f32[4,5]{1,0:T(4,128)}"], x)
    assert got.tolist() == x[:, :3].tolist()
    x = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
    got = one("f32[1,4,3]{0,1,2:T(4,128)} bitcast(p0)", ["f32[5,4,3]{0,1,2:T(4,128)}"], x)
    assert got.tolist() == x[:1].tolist()


def test_bitcast_through_tiles_of_another_shape() -> None:
    x = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)
    got = one("f32[2,8,128]{2,1,0:T(8,128)} bitcast(p0)", ["f32[16,128]{1,0:T(8,128)}"], x)
    assert got.tolist() == x.reshape(2, 8, 128).tolist()


@pytest.mark.parametrize(
    ("source", "target", "values", "want"),
    [
        ("u8[2]", "s8[2]", [200, 3], [-56, 3]),
        ("u8[2]", "u4[2,2]", [0x21, 0x43], [[1, 2], [3, 4]]),
        ("u4[2,2]", "u8[2]", [[1, 2], [3, 4]], [0x21, 0x43]),
        ("u8[1]", "u2[1,4]", [0b11100100], [[0, 1, 2, 3]]),
        ("u16[1]", "u8[1,2]", [0x0201], [[1, 2]]),
        ("f32[1]", "u32[1]", [1.0], [0x3F800000]),
    ],
)
def test_bitcast_convert(source: str, target: str, values: list, want: list) -> None:
    got = one(f"{target} bitcast-convert(p0)", [source], np.array(values))
    assert got.astype(np.int64).tolist() == want


@pytest.mark.parametrize(
    ("line", "shapes", "inputs", "want"),
    [
        ("bf16[2] copy(p0)", ["f32[2]"], [[1.001, 2]], [1, 2]),
        ("bf16[3] pad(p0, p1), padding=0_1", ["f32[2]", "f32[]"], [[1.001, 2], 7], [1, 2, 7]),
        ("bf16[1] slice(p0), slice={[1:2]}", ["f32[2]"], [[1, 2.001]], [2]),
        ("bf16[2] reverse(p0), dimensions={0}", ["f32[2]"], [[1, 2]], [2, 1]),
    ],
)
def test_ops_that_convert_on_the_way(line: str, shapes: list, inputs: list, want: list) -> None:
    got = one(line, shapes, *inputs)
    assert got.dtype.name == "bfloat16"
    assert got.astype(float).tolist() == want


@pytest.mark.parametrize("mode", ["mode={rotate={shifts={1}}}", "mode=rotate, shifts={1}"])
def test_shuffle_rotates(mode: str) -> None:
    got = one(f"f32[4] shuffle(p0), dimensions={{0}}, {mode}", ["f32[4]"], [1, 2, 3, 4])
    assert got.tolist() == [2, 3, 4, 1]


def test_shuffle_rotates_dimensions_by_their_own_shifts() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    line = "f32[2,3] shuffle(p0), dimensions={1,0}, mode=rotate, shifts={2,-1}"
    assert one(line, ["f32[2,3]"], x).tolist() == [[5, 3, 4], [2, 0, 1]]


@pytest.mark.parametrize(
    ("sizes", "rest", "want"),
    [
        ("4", "dimensions={0}, mode=permute, indices=s32[4]{0} {3, 1, 0, 2}", [3, 1, 0, 2]),
        (
            "3,2",
            "dimensions={0}, mode=permute, indices=s8[3,1] {{2}, {0}, {1}}",
            [[4, 5], [0, 1], [2, 3]],
        ),
        (
            "3,2",
            (
                "dimensions={1,0}, mode=permute, "
                "indices=s32[3,2,2] {{{0,2},{1,0}}, {{0,0},{1,2}}, {{0,1},{1,1}}}"
            ),
            [[4, 1], [0, 5], [2, 3]],
        ),
        (
            "2,2,2",
            (
                "dimensions={0,2}, mode=permute, "
                "indices=s32[2,1,2,2] {{{{1,1},{1,0}}}, {{{0,1},{0,0}}}}"
            ),
            [[[5, 4], [7, 6]], [[1, 0], [3, 2]]],
        ),
    ],
)
def test_shuffle_permutes(sizes: str, rest: str, want: list) -> None:
    shape = f"f32[{sizes}]"
    x = np.arange(np.prod(np.shape(want)), dtype=np.float32).reshape(np.shape(want))
    assert one(f"{shape} shuffle(p0), {rest}", [shape], x).tolist() == want


def test_broadcast_in_any_order() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert one("f32[3,2] broadcast(p0), dimensions={1,0}", ["f32[2,3]"], x).tolist() == x.T.tolist()
