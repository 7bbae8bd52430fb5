"""What the comparison with XLA:CPU leaves out, held against values known otherwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from interp_support import adder, one

from mlirhlo.diagnostics import HloError


@pytest.mark.parametrize(
    ("opcode", "function"),
    [
        ("exponential", np.exp),
        ("exponential-minus-one", np.expm1),
        ("log-plus-one", lambda x: x - x * x / 2),  # the series; numpy's own adds the 1
        ("sine", np.sin),
        ("tanh", np.tanh),
        ("sqrt", np.sqrt),
    ],
)
def test_complex_numbers_near_zero(
    opcode: str, function: Callable[[np.ndarray], np.ndarray]
) -> None:
    """XLA takes differences of exponentials there, which loses the small part; here nothing is lost."""
    parts = [1e-12, -3e-9, 2e-30]
    x = np.array([complex(a, b) for a in parts for b in parts])
    got = one(f"c128[9] {opcode}(p0)", ["c128[9]"], x)
    want = function(x)
    np.testing.assert_allclose(got.real, want.real, rtol=1e-14)
    np.testing.assert_allclose(got.imag, want.imag, rtol=1e-14)


def test_complex_clamp_has_no_meaning() -> None:
    """Complex numbers have no order."""
    with pytest.raises(HloError, match="HLO0307"):
        one("c64[] clamp(p0, p0, p0)", ["c64[]"], np.complex64(1))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("algorithm", ["rng_three_fry", "rng_philox"])
def test_signed_bits_are_the_unsigned_ones(algorithm: str, bits: int) -> None:
    """Of signed results XLA:CPU makes unsigned arrays."""
    state = np.array([1, 2], np.uint64)
    signed, unsigned = (
        one(
            f"(u64[2], {kind}{bits}[7]) rng-bit-generator(p0), algorithm={algorithm}",
            ["u64[2]"],
            state,
        )
        for kind in "su"
    )
    np.testing.assert_array_equal(signed[0], unsigned[0])
    assert signed[1].dtype == np.dtype(f"i{bits // 8}")
    np.testing.assert_array_equal(signed[1].view(unsigned[1].dtype), unsigned[1])


@pytest.mark.parametrize(("direction", "at"), [("GE", 0), ("LE", 0), ("GT", 3), ("LT", 3)])
def test_select_and_scatter_among_equals(direction: str, at: int) -> None:
    """The selected element stays while `select` holds of it and the next: row by row, the last
    one that won."""
    select = (
        "s {\n  c = f32[] parameter(0)\n  d = f32[] parameter(1)\n"
        f"  ROOT e = pred[] compare(c, d), direction={direction}\n}}\n"
    )
    got = one(
        "f32[2,2] select-and-scatter(p0, p1, p2), window={size=2x2}, select=s, scatter=f",
        ["f32[2,2]", "f32[1,1]", "f32[]"],
        np.ones((2, 2), np.float32),
        np.full((1, 1), 5, np.float32),
        np.float32(0),
        computations=adder("f32") + select,
    )
    want = np.zeros(4, np.float32)
    want[at] = 5
    np.testing.assert_array_equal(got, want.reshape(2, 2))


def test_precision_of_denormal_f16() -> None:
    """They are rounded as their bits stand: 12 units of the last place to a multiple of 64, 0."""
    x = np.array([12, 32, 33, 96, 97], np.uint16).view(np.float16)
    got = one("f16[5] reduce-precision(p0), exponent_bits=10, mantissa_bits=4", ["f16[5]"], x)
    np.testing.assert_array_equal(got.view(np.uint16), [0, 0, 64, 128, 128])
