"""rng-bit-generator as machine code, bit for bit as the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo

pytest.importorskip("llvmlite")


def agree(algorithm: str, result: str, state: list[int]) -> None:
    """Equal states and bits."""
    text = (
        f"HloModule m\nENTRY e {{ s = u64[{len(state)}] parameter(0)\n"
        f" ROOT r = (u64[{len(state)}], {result}) rng-bit-generator(s), algorithm={algorithm} }}\n"
    )
    module = mlirhlo.parse(text)
    executable = mlirhlo.compile(module, cached=False)
    given = np.array(state, np.uint64)
    for actual, expected in zip(executable(given), module(given), strict=True):
        if actual.dtype.name in ("int4", "uint4"):
            np.testing.assert_array_equal(actual, expected)
        else:
            assert actual.tobytes() == np.asarray(expected).tobytes()
    assert not executable.callbacks


SHAPES = (
    *("[]", "[1]", "[2]", "[31]", "[64]", "[100]", "[9000]", "[3,5]", "[4,7]", "[7,4]"),
    *("[3,64]", "[5,33,3]", "[5,4,32]", "[5,4,3]", "[0,4]", "[6,32]{0,1}"),
)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["u32", "u64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_threefry(shape: str, type_: str) -> None:
    agree("rng_three_fry", f"{type_}{shape}", [0x123456789ABCDEF, (1 << 64) - 20])


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["u32", "s64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_philox(shape: str, type_: str) -> None:
    """The counter's low half wraps around on the way."""
    agree("rng_philox", f"{type_}{shape}", [0x123456789ABCDEF, (1 << 64) - 3, 7])


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "bf16", "f64", "u8", "s16", "s4", "u4"])
def test_types(type_: str) -> None:
    agree("rng_default", f"{type_}[77]", [3, 5])
    agree("rng_three_fry", f"{type_}[77]", [3, 5])
