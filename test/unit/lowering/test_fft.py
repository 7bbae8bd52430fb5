"""Fourier transforms as machine code: loops for lengths with small prime factors, NumPy's for others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lapack_calls import random_arguments
from unit.lowering.kernel_support import Array, needs

import mlirhlo
from mlirhlo.lowering import routines, target
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.runtime import threads

pytest.importorskip("llvmlite")
if routines.address(f"{routines.FFT}complex") is None:
    pytest.skip("NumPy was built without the libraries", allow_module_level=True)

PRIME = "c64[2,1009] fft(c64[2,1009] x), fft_type=FFT, fft_length={1009}"
TRANSFORMS = (
    "c64[3,8] fft(c64[3,8] x), fft_type=FFT, fft_length={8}",
    "c64[3,12,10] fft(c64[3,12,10] x), fft_type=IFFT, fft_length={12,10}",
    "c128[2,5,7,9] fft(c128[2,5,7,9] x), fft_type=FFT, fft_length={5,7,9}",
    "c64[4,6,9] fft(f32[4,6,16] x), fft_type=RFFT, fft_length={6,16}",
    "c64[4,9]{0,1} fft(f32[4,17]{0,1} x), fft_type=RFFT, fft_length={17}",
    "c64[4,8]{0,1} fft(f32[4,15]{0,1} x), fft_type=RFFT, fft_length={15}",
    "f32[4,6,17] fft(c64[4,6,9] x), fft_type=IRFFT, fft_length={6,17}",
    "f32[4,6,15] fft(c64[4,6,8] x), fft_type=IRFFT, fft_length={6,15}",
    "f64[4,5,6,2] fft(c128[4,5,6,2] x), fft_type=IRFFT, fft_length={5,6,2}",
    "c64[20,6,3] fft(f32[20,6,4] x), fft_type=RFFT, fft_length={6,4}",
    "c64[2,26,11] fft(c64[2,26,11] x), fft_type=FFT, fft_length={26,11}",
    PRIME,
    "c64[1] fft(c64[1] x), fft_type=FFT, fft_length={1}",
    "c64[0,8] fft(c64[0,8] x), fft_type=FFT, fft_length={8}",
)


def agrees(text: str) -> None:
    """With the interpreter in f64, whose own numbers are not exact either, rounded once."""
    module = mlirhlo.parse(text)
    wide = mlirhlo.parse(text.replace("c64", "c128").replace("f32", "f64"))
    executable = mlirhlo.compile(module)
    (x,) = random_arguments(module, np.random.default_rng(0))
    wanted: Array = np.asarray(wide(x.astype(np.result_type(x, np.float64))))
    got = np.asarray(executable(x))
    assert got.dtype == np.asarray(module(x)).dtype
    within = 1e-15 * max(np.abs(wanted).max(initial=0), 1)
    rounding = 0.5 * np.finfo(got.dtype).eps if got.dtype != wanted.dtype else 0
    for part in (np.real, np.imag):
        np.testing.assert_allclose(
            part(got), part(wanted), rtol=rounding, atol=within, err_msg=text
        )
    assert not executable.callbacks


def test_transforms() -> None:
    for text in TRANSFORMS:
        agrees(text)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["FFT", "IFFT", "RFFT", "IRFFT"]),
    st.lists(st.integers(1, 80), min_size=1, max_size=2),
    st.integers(1, 18),
    st.sampled_from([("c64", "f32"), ("c128", "f64")]),
)
def test_any_lengths(kind: str, lengths: list[int], batch: int, types: tuple[str, str]) -> None:
    complex_, real = types
    sizes = ",".join(map(str, [batch, *lengths]))
    half = ",".join(map(str, [batch, *lengths[:-1], lengths[-1] // 2 + 1]))
    whole = f"{complex_}[{sizes}]"
    operand = {"RFFT": f"{real}[{sizes}]", "IRFFT": f"{complex_}[{half}]"}.get(kind, whole)
    result = {"RFFT": f"{complex_}[{half}]", "IRFFT": f"{real}[{sizes}]"}.get(kind, whole)
    of = ",".join(map(str, lengths))
    agrees(f"{result} fft({operand} x), fft_type={kind}, fft_length={{{of}}}")


@pytest.mark.parametrize("processor", [target.GENERIC, target.AVX2])
def test_narrower_vectors(processor: target.Target) -> None:
    needs(processor)
    with target.using(processor):
        for text in TRANSFORMS[:8]:
            agrees(text)


def test_what_was_done_does_not_depend_on_the_order_of_threads() -> None:
    text = "c64[40,12,56] fft(c64[40,12,56] x), fft_type=FFT, fft_length={12,56}"
    module = mlirhlo.parse(text)
    (x,) = random_arguments(module, np.random.default_rng(0))
    executable = mlirhlo.compile(module)
    results: list[Array] = []
    for count in (1, 4):
        threads.set_thread_count(count)
        results.append(np.asarray(executable(x)))
    threads.set_thread_count(0)
    np.testing.assert_array_equal(*results)


def test_every_access_is_inside_of_its_buffer() -> None:
    for text in TRANSFORMS[:10]:
        module = mlirhlo.parse(text)
        (x,) = random_arguments(module, np.random.default_rng(0))
        mlirhlo.compile(module, debug=True)(x)


def test_which_transforms_have_loops() -> None:
    """The others call NumPy's."""
    cases = ((8, True), (13 * 11 * 7, True), (17, False), (2 * 17, False), (1 << 20, False))
    for length, wanted in cases:
        text = f"c64[{length}] fft(c64[{length}] x), fft_type=FFT, fft_length={{{length}}}"
        loops = str(lower(mlirhlo.parse(text).op).loops)
        assert (routines.FFT not in loops) == wanted, length
