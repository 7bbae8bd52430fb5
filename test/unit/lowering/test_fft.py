"""Fourier transforms as machine code: loops, NumPy's for lines across memory that are long or in another order."""

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
LONG = "c128[2,17150] fft(c128[2,17150] x), fft_type=FFT, fft_length={17150}"
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
    "c128[3,19] fft(c128[3,19] x), fft_type=IFFT, fft_length={19}",
    "c64[20,50] fft(f32[20,98] x), fft_type=RFFT, fft_length={98}",
    "f32[20,23] fft(c64[20,12] x), fft_type=IRFFT, fft_length={23}",
    "c128[3,23,29] fft(c128[3,23,29] x), fft_type=IFFT, fft_length={23,29}",
    "c64[21,13] fft(c64[21,13] x), fft_type=IFFT, fft_length={13}",
    "c128[3,11,34] fft(c128[3,11,34] x), fft_type=FFT, fft_length={34}",
    "c64[2,9,47] fft(c64[2,9,47] x), fft_type=FFT, fft_length={9,47}",
    # Large primes, of lines side by side: whole vectors of lines, some left, and dimensions that are not the last.
    "c64[19,437] fft(c64[19,437] x), fft_type=FFT, fft_length={437}",
    "c64[9,219] fft(f32[9,437] x), fft_type=RFFT, fft_length={437}",
    "c128[8,552] fft(f64[8,1102] x), fft_type=RFFT, fft_length={1102}",
    "c64[8,6337] fft(f32[8,12673] x), fft_type=RFFT, fft_length={12673}",
    "c64[10,123] fft(f32[10,244] x), fft_type=RFFT, fft_length={244}",
    "c64[11,19] fft(f32[11,37] x), fft_type=RFFT, fft_length={37}",
    "c128[2,31,58] fft(c128[2,31,58] x), fft_type=IFFT, fft_length={31,58}",
    # Primes whose stages are cyclic convolutions, and real numbers that are one of their own.
    "c64[9,521] fft(c64[9,521] x), fft_type=FFT, fft_length={521}",
    "c128[8,1046] fft(c128[8,1046] x), fft_type=IFFT, fft_length={1046}",
    "c64[17,127] fft(c64[17,127] x), fft_type=IFFT, fft_length={127}",
    "c64[8,335] fft(c64[8,335] x), fft_type=FFT, fft_length={335}",
    "c128[3,101,5] fft(c128[3,101,5] x), fft_type=FFT, fft_length={101,5}",
    "c64[9,261] fft(f32[9,521] x), fft_type=RFFT, fft_length={521}",
    "c64[1,532] fft(f32[1,1063] x), fft_type=RFFT, fft_length={1063}",
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


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("length", [37, 244, 437, 521])
def test_lines_side_by_side_do_not_touch_each_other(length: int) -> None:
    """What is not finite stays in its line."""
    shape = f"c64[9,{length}]"
    module = mlirhlo.parse(f"{shape} fft({shape} x), fft_type=FFT, fft_length={{{length}}}")
    executable = mlirhlo.compile(module)
    (x,) = random_arguments(module, np.random.default_rng(1))
    before = np.array(executable(x))
    x[3, length // 2], x[5, 0] = np.nan, np.inf
    after = executable(x)
    others = [line for line in range(9) if line not in (3, 5)]
    np.testing.assert_array_equal(after[others], before[others])
    assert not np.isfinite(after[[3, 5]]).any()


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


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("processor", [target.GENERIC, target.AVX2])
def test_narrower_vectors(processor: target.Target) -> None:
    needs(processor)
    with target.using(processor):
        for text in (*TRANSFORMS, LONG):
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
    for text in (*TRANSFORMS[:-1], LONG):
        module = mlirhlo.parse(text)
        (x,) = random_arguments(module, np.random.default_rng(0))
        mlirhlo.compile(module, debug=True)(x)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("kind", ["FFT", "IFFT"])
@pytest.mark.parametrize("length", [32768, 3**10, 77 * 401, 20011, 17 * 1024, 48048])
def test_long_lines(kind: str, length: int) -> None:
    """As matrices, with sides that are vectors and sides that are not, and inside of convolutions."""
    agrees(f"c128[2,{length}] fft(c128[2,{length}] x), fft_type={kind}, fft_length={{{length}}}")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("length", [65536, 44100, 30011])
def test_long_real_lines(length: int) -> None:
    half = length // 2 + 1
    there = f"c128[1,{half}] fft(f64[1,{length}] x), fft_type=RFFT, fft_length={{{length}}}"
    agrees(there)
    agrees(f"f64[1,{length}] fft(c128[1,{half}] x), fft_type=IRFFT, fft_length={{{length}}}")


def test_which_transforms_have_loops() -> None:
    """The others call NumPy's."""
    cases = (
        ("c64[17017]", "17017", True),
        ("c64[1048576]", "1048576", True),
        ("c64[65521]", "65521", True),
        ("c64[65537]", "65537", False),
        ("c64[32768,4]", "32768,4", False),
        ("c64[4,8]{0,1}", "8", False),
    )
    for shape, length, wanted in cases:
        text = f"{shape} fft({shape} x), fft_type=FFT, fft_length={{{length}}}"
        loops = str(lower(mlirhlo.parse(text).op).loops)
        assert (routines.FFT not in loops) == wanted, shape
