"""Quotients by what stays in a row, and of integers, come out as the division instruction's, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.lowering.kernel_support import agrees, loops_of

import mlirhlo
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.lowering import target
from mlirhlo.lowering.cpu.compiler import lower

ROWS, ROW = 32, 260
SHARES = f"""add {{
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}}
ENTRY e {{
  x = f32[{ROWS},{ROW}] parameter(0)
  y = f32[{ROWS},{ROW}] parameter(1)
  zero = f32[] constant(-0)
  r = f32[{ROWS}] reduce(y, zero), dimensions={{1}}, to_apply=add
  b = f32[{ROWS},{ROW}] broadcast(r), dimensions={{0}}
  ROOT d = f32[{ROWS},{ROW}] divide(x, b)
}}"""
"""x divided by the sums of y's rows."""


def dividends(kind: str, rng: np.random.Generator, divisors: np.ndarray) -> np.ndarray:
    """Of a kind that the short way, or the test for it, could get wrong."""
    size = ROWS, ROW
    if kind == "bits":
        return rng.integers(0, 1 << 32, size, np.uint32).view(np.float32)
    found = (rng.standard_normal(size) * np.exp2(rng.integers(-70, 70, size))).astype(np.float32)
    if kind == "zeros":
        found[:, ::3], found[: ROWS // 2, 1::3] = 0, -0.0
    elif kind == "half way":  # quotients next to the middle between two floats
        middle = 1 + rng.integers(0, 1 << 23, size) * 2.0**-23 + 2.0**-24
        with np.errstate(over="ignore"):
            found = (middle * divisors[:, None].astype(np.float64)).astype(np.float32)
    return found


def test_the_short_way_is_taken() -> None:
    with target.using(target.AVX512):
        text = lower(mlirhlo.parse(SHARES).op).text
    assert "@llvm.vector.reduce.or" in text


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kind", ["normal", "bits", "zeros", "half way"])
def test_quotients(kind: str) -> None:
    executable = mlirhlo.compile(mlirhlo.parse(SHARES))
    rng = np.random.default_rng(0)
    for number in range(12):
        divisors = (rng.standard_normal(ROWS) * np.exp2(rng.integers(-45, 45, ROWS))).astype("f4")
        if number % 3 == 0:  # mantissas of ones, which reciprocals are wrong for first
            divisors = (divisors.view(np.uint32) | 0x7FFFFF).view(np.float32)
        divisors[:8] = [0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 1, -3]
        y = np.full((ROWS, ROW), -0.0, np.float32)
        y[:, 0] = divisors
        x = dividends(kind, rng, divisors)
        with np.errstate(all="ignore"):
            expected = x / divisors[:, None]
        found = np.asarray(executable(x, y))
        same = found.view(np.uint32) == expected.view(np.uint32)
        assert np.all(same | (np.isnan(found) & np.isnan(expected)))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "type_", ["s2", "u4", "s4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]
)
def test_integers(type_: str) -> None:
    """Around multiples of the divisor, where a quotient that is rounded wrongly would be another integer."""
    bits, count = int(type_[1:]), 3000
    low, high = (
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type_[0] == "s" else (0, (1 << bits) - 1)
    )
    rng = np.random.default_rng(0)

    def drawn() -> list[int]:
        wide = rng.integers(
            low, high, count, dtype=np.uint64 if low == 0 else np.int64, endpoint=True
        )
        return [int(x) >> int(rng.integers(0, bits)) for x in wide]

    divisors = [low, low + 1, high, high - 1, 0, 1, 2, 3, -1 if low else 1, *drawn()]
    dividends = [
        x // (d or 1) * (d or 1) for x, d in zip([low, *drawn()] * 2, divisors, strict=False)
    ]
    moved = [min(max(x + int(rng.integers(-1, 2)), low), high) for x in dividends]
    dtype: Any = mlirhlo.parse(
        f"ENTRY e {{ ROOT p = {type_}[] parameter(0) }}"
    ).hlo.entry.root.shape
    x, y = (np.array(v, object).astype(dtype.element_type.dtype) for v in (moved, divisors))
    shape = f"{type_}[{len(x)}]"
    for opcode in ("divide", "remainder"):
        agrees(f"{shape} {opcode}({shape} x, {shape} y)", [x, y])


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("divisor", "is_exact"), [("8", True), ("0.0625", True), ("10", False)])
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_by_powers_of_two_they_are_products(type_: str, divisor: str, is_exact: bool) -> None:
    text = f"""ENTRY e {{
  x = {type_}[4096] parameter(0)
  y = {type_}[] constant({divisor})
  b = {type_}[4096] broadcast(y), dimensions={{}}
  ROOT d = {type_}[4096] divide(x, b)
}}"""
    module = mlirhlo.parse(text)
    assert ("arith.divf" in str(loops_of(module))) is not is_exact
    dtype = PRIMITIVE_TYPES[type_].dtype
    bits = np.random.default_rng(0).integers(0, 256, 4096 * dtype.itemsize, np.uint8)
    agrees(text, [bits.view(dtype)], tolerance=0)
