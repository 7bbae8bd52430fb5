"""Long transforms by short ones: every kind, lengths that divide, that do not, and several dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo

LENGTHS = ((7,), (30,), (16,), (1, 34), (11, 6), (3, 7, 8))
"""A prime, one with divisors, a power of two, twice a prime; several dimensions, some of them short."""
TYPES = {"RFFT": ("f64", "c128"), "IRFFT": ("c128", "f64")}


def transform(kind: str, lengths: tuple[int, ...], batch: str = "2,", layout: str = "") -> str:
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    types = TYPES.get(kind, ("c128", "c128"))
    sizes = {"RFFT": (lengths, half), "IRFFT": (half, lengths)}.get(kind, (lengths, lengths))
    source, target = (
        f"{t}[{batch}{','.join(map(str, s))}]{layout}" for t, s in zip(types, sizes, strict=True)
    )
    of = ",".join(map(str, lengths))
    return f"{target} fft({source} x), fft_type={kind}, fft_length={{{of}}}"


def numbers(module: mlirhlo.Module) -> Any:
    shape: Any = module.hlo.entry.parameters[0].shape
    random = np.random.default_rng(3)
    x = random.normal(size=shape.dimensions)
    if shape.element_type.is_complex:
        x = x + 1j * random.normal(size=shape.dimensions)
    return x.astype(shape.element_type.dtype)


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_results(kind: str, lengths: tuple[int, ...]) -> None:
    module = mlirhlo.parse(transform(kind, lengths))
    x = numbers(module)
    expanded = mlirhlo.parse(transform(kind, lengths)).opt("fft-expander{longest=4}")
    assert "to_apply=%fft" in str(expanded)
    np.testing.assert_allclose(expanded(x), module(x), 1e-12, 1e-12)


@pytest.mark.parametrize(
    "text", [transform("FFT", (30,), "", "{0}"), transform("FFT", (30,), layout="{0,1}")]
)
def test_layouts(text: str) -> None:
    module = mlirhlo.parse(text)
    x = numbers(module)
    expanded = mlirhlo.parse(text).opt("fft-expander{longest=4}")
    np.testing.assert_allclose(expanded(x), module(x), 1e-12, 1e-12)


def test_what_stays() -> None:
    for text in (transform("FFT", (4,)), transform("FFT", (8,), "0,")):
        assert "to_apply" not in str(mlirhlo.parse(text).opt("fft-expander{longest=4}"))
