"""Arrays in npz files: the corpus' own convention, in and out."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support import DATA

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.shapes import parse_shape
from mlirhlo.formats.arrays import read_npz, write_npz


def stored(tmp_path: Path, **arrays: object) -> str:
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return str(path)


def first(path: str, shape: str) -> np.ndarray:
    return read_npz(path).leaves("in", [parse_shape(shape)], None)[0]


@pytest.mark.parametrize(
    ("shape", "array"),
    [
        ("f32[2]", np.array([1, 2], np.float32)),
        ("pred[2]", np.array([True, False])),
        ("s64[]", np.array(3)),
        ("c64[1]", np.array([1j], np.complex64)),
        ("bf16[2]", np.array([1, 2], ml_dtypes.bfloat16)),
        ("f8e5m2[2,1]", np.array([[1], [2]], ml_dtypes.float8_e5m2)),
        ("s4[3]", np.array([-8, 0, 7], ml_dtypes.int4)),
        ("u2[2]", np.array([3, 0], ml_dtypes.uint2)),
        ("f32[0,3]", np.zeros((0, 3), np.float32)),
    ],
)
def test_round_trip(shape: str, array: np.ndarray, tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    write_npz(path, "in", [[array]], parse_shape(shape))
    again = first(path, shape)
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()
    assert read_npz(path).meta["in"][0]["shape"] == list(array.shape)
    # As numpy itself writes them.
    again = first(stored(tmp_path, in0=array), shape)
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


def test_bit_patterns(tmp_path: Path) -> None:
    assert first(stored(tmp_path, in0=np.array([0x3F80], np.uint16)), "bf16[1]")[0] == 1.0
    assert first(stored(tmp_path, in0=np.array([0x38], np.uint8)), "f8e4m3fn[1]")[0] == 1.0


def test_partitions(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    shape = parse_shape("(f32[1], s32[])")
    write_npz(
        path, "out", [[np.zeros(1, np.float32), np.array(p, np.int32)] for p in (0, 1)], shape
    )
    archive = read_npz(path)
    assert archive.partitions == 2
    assert sorted(archive.arrays) == ["out0.p0", "out0.p1", "out1.p0", "out1.p1"]
    assert archive.leaves("out", [shape], 1)[1] == 1
    assert not archive.fits("out", [shape], None)


def test_positional_arrays_of_savez(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, np.ones(2, np.float32))
    assert first(str(path), "f32[2]").sum() == 2


@pytest.mark.parametrize(
    ("shape", "arrays", "message"),
    [
        ("f32[2]", {"in0": np.zeros(2)}, "in0 is float64[2], but f32[2] is wanted"),
        ("f32[2]", {"in0": np.zeros(3, np.float32)}, "the sizes differ"),
        ("f32[2]", {"x": np.zeros(2)}, "no array 'in0'"),
        ("f32[1]", {"in0": np.zeros(1, np.float32), "in1": 1}, "it holds in1, but only 1"),
        ("bf16[1]", {"in0": np.zeros(1, np.float16)}, "store bf16 as uint16 bit patterns"),
        ("s4[1]", {"in0": np.zeros(1, np.int32)}, "store s4 as int8 values"),
    ],
)
def test_what_does_not_fit(
    shape: str, arrays: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(HloError) as caught:
        first(stored(tmp_path, **arrays), shape)
    assert caught.value.code == "HLO0506"
    assert message in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"not a zip", b"PK\x03\x04" + bytes(30)])
def test_damaged_file(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(data)
    with pytest.raises(HloError, match="not an npz file"):
        read_npz(str(path))


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, in0=np.array([object()], dtype=object))
    with pytest.raises(HloError, match="HLO0506"):
        read_npz(path)


def test_dynamic_dimensions_may_be_short(tmp_path: Path) -> None:
    path = stored(tmp_path, in0=np.zeros(2, np.float32))
    assert first(path, "f32[<=5]").shape == (2,)
    with pytest.raises(HloError):
        first(path, "f32[<=1]")


def test_archives_of_the_test_data() -> None:
    archive = read_npz(str(next((DATA / "programs").glob("ew_s4_u4/*.npz"))))
    assert archive.partitions == 1
    assert "in" in archive.meta
