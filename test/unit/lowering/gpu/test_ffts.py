"""Fourier transforms on a GPU: results, and that no number is read before it is written."""

from __future__ import annotations

import numpy as np
import pytest
from lapack_calls import random_arguments

import mlirhlo

pytest.importorskip("llvmlite")

LENGTHS = ((1,), (3,), (8,), (12,), (19,), (66,), (3, 1, 5))
"""Powers of two, odd ones, one with a large prime factor, one of three dimensions."""


def _transform(kind: str, lengths: tuple[int, ...]) -> str:
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    types = {"RFFT": ("f32", "c64"), "IRFFT": ("c64", "f32")}.get(kind, ("c64", "c64"))
    sizes = {"RFFT": (lengths, half), "IRFFT": (half, lengths)}.get(kind, (lengths, lengths))
    operand, result = (f"{t}[2,{','.join(map(str, s))}]" for t, s in zip(types, sizes, strict=True))
    of = ",".join(map(str, lengths))
    return f"{result} fft({operand} x), fft_type={kind}, fft_length={{{of}}}"


@pytest.mark.one_case_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
def test_transforms_read_what_they_wrote(kind: str) -> None:
    for lengths in LENGTHS if kind in ("FFT", "RFFT") else LENGTHS[::3]:
        module = mlirhlo.parse(_transform(kind, lengths))
        (x,) = random_arguments(module, np.random.default_rng(0))
        compiled = mlirhlo.compile(module, "gpu")
        np.testing.assert_allclose(compiled(x), module(x), atol=1e-5, err_msg=f"{kind} {lengths}")
        assert not compiled.findings, f"{kind} {lengths}"  # type: ignore[attr-defined]


def test_the_transform_of_one_number() -> None:
    """The shortest real transform, whose line is less than a vector of the CPU."""
    compiled = mlirhlo.compile(mlirhlo.parse(_transform("RFFT", (1,))), "gpu")
    assert np.asarray(compiled(np.float32([[3], [4]]))).ravel().tolist() == [3, 4]
    assert not compiled.findings  # type: ignore[attr-defined]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "text", ["c64[1,1030] fft(c64[1,1030] x), fft_type=FFT, fft_length={1030}"]
)
def test_long_lines_are_many_short_ones(text: str) -> None:
    module = mlirhlo.parse(text)
    (x,) = random_arguments(module, np.random.default_rng(0))
    compiled = mlirhlo.compile(module, "gpu")
    np.testing.assert_allclose(compiled(x), module(x), 1e-5, 1e-5)
    assert not compiled.findings  # type: ignore[attr-defined]
    assert max(k.grid[0] * k.block[0] for k in compiled.figures) >= 1030  # type: ignore[attr-defined]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("length", [100003, 1 << 18])
def test_every_length_has_code(length: int) -> None:
    """Of lines along two dimensions."""
    text = f"c64[{length},3] fft(c64[{length},3] x), fft_type=FFT, fft_length={{{length},3}}"
    mlirhlo.compile(mlirhlo.parse(text), "gpu")
