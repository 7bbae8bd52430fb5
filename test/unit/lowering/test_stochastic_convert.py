"""Rounding by random bits, as the interpreter does it."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES

pytest.importorskip("llvmlite")

SPECIAL = [
    0.0,
    -0.0,
    0.25,
    -1.5,
    200.7,
    -300.2,
    1e-40,
    3e38,
    -3e38,
    65519.0,
    np.inf,
    -np.inf,
    np.nan,
]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("source", "target"),
    [
        *(
            ("f32", t)
            for t in ("s4", "s8", "u8", "s32", "s64", "bf16", "f16", "f8e4m3fn", "f8e5m2")
        ),
        *(("f64", t) for t in ("s16", "u64", "f32", "bf16")),
        *(("bf16", t) for t in ("s8", "f8e5m2")),
        ("f16", "u16"),
    ],
)
def test_it_is_what_the_interpreter_makes(source: str, target: str) -> None:
    bits = PRIMITIVE_TYPES[source].bits
    rng = np.random.default_rng(bits)
    values = np.concatenate([SPECIAL, rng.standard_normal(40), rng.standard_normal(40) * 300])
    with np.errstate(over="ignore"):
        x = values.astype(PRIMITIVE_TYPES[source].dtype)
    count = len(x)
    random = rng.integers(0, (1 << bits) - 1, count, np.uint64, endpoint=True).astype(
        f"u{bits // 8}"
    )
    random[::5], random[1::5] = 0, np.iinfo(random.dtype).max
    random[3] = random.dtype.type(2 ** (bits - 1) - 1)  # just below the half that -1.5 loses
    module = mlirhlo.parse(
        f"ENTRY e {{ x = {source}[{count}] parameter(0)\n r = u{bits}[{count}] parameter(1)\n"
        f" ROOT c = {target}[{count}] stochastic-convert(x, r) }}"
    )
    executable = mlirhlo.compile(module, cached=False)
    found, expected = executable(x, random), module(x, random)
    assert not executable.callbacks
    np.testing.assert_array_equal(
        np.asarray(found).astype(np.float64), np.asarray(expected).astype(np.float64)
    )
