"""fft against the transform's definition, and against XLA:CPU."""

from __future__ import annotations

import numpy as np
import pytest
from xla_execution import SEED, SIZE, XLA, Refusal

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module


def text_of(kind: str, shape: str, result: str, lengths: str) -> str:
    return (
        f"HloModule m\nENTRY e {{ p = {shape} parameter(0)\n"
        f"ROOT r = {result} fft(p), fft_type={kind}, fft_length={{{lengths}}} }}\n"
    )


def run(kind: str, shape: str, result: str, lengths: str, x: np.ndarray) -> np.ndarray:
    return run_module(parse_module(text_of(kind, shape, result, lengths)), [x], check=True)[0]


def matrix(size: int, sign: int = -1) -> np.ndarray:
    k = np.arange(size)
    return np.exp(sign * 2j * np.pi * np.outer(k, k) / size)


def test_fft_is_the_matrix_of_roots() -> None:
    x = (np.arange(7) + 1j * np.arange(7) ** 2).astype(np.complex128)
    np.testing.assert_allclose(run("FFT", "c128[7]", "c128[7]", "7", x), matrix(7) @ x)
    np.testing.assert_allclose(run("IFFT", "c128[7]", "c128[7]", "7", x), matrix(7, 1) @ x / 7)


def test_real_transforms_invert_each_other() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 6)).astype(np.float32)
    half = run("RFFT", "f32[3,4,6]", "c64[3,4,4]", "4,6", x)
    assert half.dtype == np.complex64
    back = run("IRFFT", "c64[3,4,4]", "f32[3,4,6]", "4,6", half)
    np.testing.assert_allclose(back, x, atol=1e-6)


def test_empty_arrays() -> None:
    got = run("FFT", "c64[0,4]", "c64[0,4]", "4", np.zeros((0, 4), np.complex64))
    assert got.shape == (0, 4)


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(HloError, match="HLO0355"):
        run("FFT", "c64[4]", "c64[4]", "5", np.zeros(4, np.complex64))


@pytest.mark.oracle
def test_fft_agrees_with_xla() -> None:
    pytest.importorskip("jaxlib")
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    for _ in range(24 * SIZE):
        kind = ["FFT", "IFFT", "RFFT", "IRFFT"][int(rng.integers(4))]
        wide = bool(rng.integers(2))
        rank = int(rng.integers(1, 4))
        lengths = [int(rng.integers(1, 9)) for _ in range(rank)]
        batch = [int(rng.integers(1, 4)) for _ in range(int(rng.integers(3)))]
        half = [*lengths[:-1], lengths[-1] // 2 + 1]
        real, compound = ("f64", "c128") if wide else ("f32", "c64")

        def name(type_: str, sizes: list[int], batch: list[int] = batch) -> str:
            return f"{type_}[{','.join(map(str, batch + sizes))}]"

        source, target = {
            "RFFT": (name(real, lengths), name(compound, half)),
            "IRFFT": (name(compound, half), name(real, lengths)),
        }.get(kind, (name(compound, lengths), name(compound, lengths)))
        sizes = batch + (half if kind == "IRFFT" else lengths)
        x = rng.normal(size=sizes)
        if kind != "RFFT":
            x = x + 1j * rng.normal(size=sizes)
        x = x.astype({"f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16"}[source.split("[")[0]])
        text = text_of(kind, source, target, ",".join(map(str, lengths)))
        theirs = XLA.run(text, [x])
        assert not isinstance(theirs, Refusal), (text, theirs)
        ours = run_module(parse_module(text), [x], check=True)[0]
        scale = float(np.abs(theirs[0]).max()) + 1
        np.testing.assert_allclose(
            ours, theirs[0], atol=scale * (1e-12 if wide else 1e-5), rtol=0, err_msg=text
        )
