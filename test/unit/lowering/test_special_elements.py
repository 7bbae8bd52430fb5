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


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("exponent", "mantissa"), [(10, 4), (5, 10), (3, 7), (2, 1)])
def test_less_precise_f16(exponent: int, mantissa: int) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    options = f"exponent_bits={exponent}, mantissa_bits={mantissa}"
    agree(f"f16[65536] reduce-precision(f16[65536] x), {options}", x)


@pytest.mark.one_case_in(2)
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


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "type_", ["s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]
)
@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
def test_floats_saturate_into_integers(source: str, type_: str) -> None:
    """Around both ends, around zero, and NaN, in whole vectors and in the rest of one."""
    bits = int(type_[1:])
    low, high = (0, (1 << bits) - 1) if type_[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    dtype = np.dtype(f"f{int(source[1:]) // 8}")
    with np.errstate(over="ignore"):
        ends = np.array([low, high, high + 1, 0, 1, -1], np.float64)
        wide = np.concatenate([ends + step for step in (-1, -0.75, -0.5, 0, 0.5, 0.75, 1)])
        x = np.concatenate([wide.astype(dtype), np.nextafter(wide.astype(dtype), dtype.type(0))])
        rest = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e300, -1e300]).astype(dtype)
    x = np.concatenate([x, rest])
    agree(f"{type_}[{x.size}] convert({source}[{x.size}] x)", x)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("type_", "dtype"), [("c64", np.float32), ("c128", np.float64)])
def test_quotients_of_special_complex_numbers(type_: str, dtype: type[np.floating]) -> None:
    """In c128, quotients below the least normal number round another way than in the interpreter."""
    info = np.finfo(dtype)
    some = [0.0, 1.5, np.inf, np.nan]
    if type_ == "c64":
        some += [info.max, info.tiny, info.smallest_subnormal]
    parts = np.array([*some, *(-v for v in some)], dtype)
    a, b, c, d = (v.ravel() for v in np.meshgrid(parts, parts, parts, parts))
    wide = np.result_type(dtype, np.complex64)
    x, y = np.empty(a.size, wide), np.empty(a.size, wide)
    x.real, x.imag, y.real, y.imag = a, b, c, d
    agree(f"{type_}[{a.size}] divide({type_}[{a.size}] x, {type_}[{a.size}] y)", x, y)
    agree(f"{type_}[3] divide({type_}[3] x, {type_}[3] y)", x[:3], y[:3])
