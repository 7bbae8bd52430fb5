"""Conversions and comparisons where processors and LLVM have another opinion than HLO."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo

pytest.importorskip("llvmlite")


def agree(text: str, *arguments: np.ndarray) -> None:
    module = mlirhlo.parse(text)
    actual = mlirhlo.compile(module, cached=False)(*arguments)
    np.testing.assert_array_equal(actual, np.asarray(module(*arguments)))


def test_subnormals_become_bf16() -> None:
    """The processor's own instruction makes zeros of them."""
    bits = np.arange(0, 0x00900000, 997, dtype=np.uint32)
    x = np.concatenate([bits, bits | 0x80000000]).astype(np.uint32).view(np.float32)
    agree(f"bf16[{x.size}] convert(f32[{x.size}] x)", x)
    # Among ordinary numbers, NaN and what is rounded to infinity too.
    others = np.arange(0, 1 << 32, 65537 * 3, dtype=np.uint64).astype(np.uint32).view(np.float32)
    mixed = np.concatenate([others, x])[np.random.default_rng(0).permutation(others.size + x.size)]
    module = mlirhlo.parse(f"bf16[{mixed.size}] convert(f32[{mixed.size}] x)")
    actual, wanted = mlirhlo.compile(module, cached=False)(mixed), np.asarray(module(mixed))
    np.testing.assert_array_equal(actual.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize(("exponent", "mantissa"), [(10, 4), (5, 10), (3, 7), (2, 1)])
def test_less_precise_f16(exponent: int, mantissa: int) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    options = f"exponent_bits={exponent}, mantissa_bits={mantissa}"
    agree(f"f16[65536] reduce-precision(f16[65536] x), {options}", x)


@pytest.mark.parametrize("order", ["type=TOTALORDER", "order=TOTAL"])
def test_total_order(order: str) -> None:
    x = np.array([np.nan, 0.0, -0.0, -np.nan, 1.0], np.float32)
    text = f"pred[5] compare(f32[5] x, f32[5] y), direction=GT, {order}"
    agree(text, x, np.roll(x, 1))
    agree(text, x, x)


def test_a_bitcast_crops_the_padding_of_tiles() -> None:
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    text = "f32[8,3]{1,0:T(8,128)} bitcast(f32[8,8]{1,0:T(8,128)} x)"
    agree(text, x)


def test_control_predecessors_are_no_operands() -> None:
    text = """HloModule m
ENTRY e { x = f32[5] parameter(0)
 s = f32[5] sine(x)
 ROOT c = f32[5] add(x, x), control-predecessors={s}
}
"""
    agree(text, np.arange(5, dtype=np.float32))
