"""Element-wise meanings where XLA has surprises, and where XLA:CPU cannot be asked."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from interp_support import one

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.interp.ops.elementwise import ELEMENTWISE
from mlirhlo.interp.ops.elementwise_math import erf


@pytest.mark.parametrize(
    ("opcode", "x", "y", "want"),
    [
        ("divide", 7, 0, -1),
        ("divide", -7, 2, -3),
        ("divide", -(2**31), -1, -(2**31)),
        ("remainder", 7, 0, 7),
        ("remainder", -7, 2, -1),
        ("remainder", -(2**31), -1, 0),
        ("shift-left", 1, 32, 0),
        ("shift-left", 1, -1, 0),
        ("shift-right-arithmetic", -8, 40, -1),
        ("shift-right-logical", -8, 32, 0),
        ("shift-right-logical", -8, 1, 2**31 - 4),
        ("power", 3, -1, 0),
        ("power", -1, -3, -1),
        ("power", 2, 31, -(2**31)),
        ("power", 2, 64, 0),
        ("add", 2**31 - 1, 1, -(2**31)),
        ("mulhi", 2**30, 8, 2),
        ("mulhi", -1, 1, -1),
    ],
)
def test_s32(opcode: str, x: int, y: int, want: int) -> None:
    assert one(f"s32[] {opcode}(p0, p1)", ["s32[]", "s32[]"], x, y) == want


@pytest.mark.parametrize("name", ["s1", "u1", "s2", "u2", "s4", "u4"])
def test_sub_byte_integers_wrap(name: str) -> None:
    type_ = PRIMITIVE_TYPES[name]
    low = -(1 << (type_.bits - 1)) if type_.is_signed else 0
    values = list(range(low, low + (1 << type_.bits)))
    x, y = (g.reshape(-1) for g in np.meshgrid(values, values))

    def wrapped(v: np.ndarray) -> list[int]:
        return [int((int(i) - low) % (1 << type_.bits) + low) for i in v]

    given = [v.astype(type_.dtype) for v in (x, y)]
    shape = f"{name}[{x.size}]"
    for opcode, want in (("add", x + y), ("subtract", x - y), ("multiply", x * y)):
        got = one(f"{shape} {opcode}(p0, p1)", [shape, shape], *given)
        assert got.astype(int).tolist() == wrapped(want), opcode
    got = one(f"{shape} not(p0)", [shape], given[0])
    assert got.astype(int).tolist() == wrapped(~x)
    got = one(f"{shape} popcnt(p0)", [shape], given[0])
    mask = (1 << type_.bits) - 1
    assert got.astype(int).tolist() == wrapped(np.array([(int(v) & mask).bit_count() for v in x]))


@pytest.mark.parametrize("name", ["f6e2m3fn", "f6e3m2fn", "f4e2m1fn"])
def test_floats_without_infinity_saturate(name: str) -> None:
    highest = float(ml_dtypes.finfo(PRIMITIVE_TYPES[name].dtype).max)
    got = one(f"{name}[3] convert(p0)", ["f32[3]"], [1e9, -1e9, 0.5])
    assert got.astype(float).tolist() == [highest, -highest, 0.5]
    got = one(f"{name}[1] add(p0, p0)", [f"{name}[1]"], np.array([highest], got.dtype))
    assert float(got[0]) == highest


def test_maximum_and_minimum_know_nan_and_the_sign_of_zero() -> None:
    x, y = [0.0, -0.0, math.nan, 1.0], [-0.0, 0.0, 1.0, math.nan]
    high = one("f32[4] maximum(p0, p1)", ["f32[4]", "f32[4]"], x, y)
    low = one("f32[4] minimum(p0, p1)", ["f32[4]", "f32[4]"], x, y)
    assert np.signbit(high[:2]).tolist() == [False, False]
    assert np.signbit(low[:2]).tolist() == [True, True]
    assert np.isnan(high[2:]).all()
    assert np.isnan(low[2:]).all()


@pytest.mark.parametrize(
    ("x", "want"),
    [(0.49999997, 0.0), (0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (8388609.0, 8388609.0)],
)
def test_round_away(x: float, want: float) -> None:
    assert one("f32[] round-nearest-afz(p0)", ["f32[]"], x) == want


@pytest.mark.parametrize(
    ("target", "x", "want"),
    [
        ("s8", 1e9, 127),
        ("s8", -1e9, -128),
        ("s32", math.nan, 0),
        ("s64", 1e30, 2**63 - 1),
        ("u64", 1e30, 2**64 - 1),
        ("u8", -3.0, 0),
        ("s32", -1.9, -1),
        ("s4", 100.0, 7),
        ("pred", 0.5, True),
        ("pred", math.nan, True),
        ("pred", -0.0, False),
    ],
)
def test_convert_saturates(target: str, x: float, want: int) -> None:
    assert int(one(f"{target}[] convert(p0)", ["f32[]"], x)) == want


def test_denormals_count() -> None:
    tiny = np.float32(1e-40)
    assert one("f32[] add(p0, p0)", ["f32[]"], tiny) == np.float32(tiny * 2)


def test_total_order_compares_signs_of_zero_and_nan() -> None:
    values = [-math.nan, -math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan]
    line = "pred[7] compare(p0, p1), direction=LT, type=TOTALORDER"
    assert one(line, ["f32[7]", "f32[7]"], values[:-1], values[1:]).all()


def test_select_takes_a_scalar_predicate() -> None:
    line = "f32[2] select(p0, p1, p2)"
    shapes = ["pred[]", "f32[2]", "f32[2]"]
    assert one(line, shapes, True, [1, 2], [3, 4]).tolist() == [1, 2]
    assert one(line, shapes, False, [1, 2], [3, 4]).tolist() == [3, 4]


def test_reduce_precision_flushes_and_overflows() -> None:
    line = "f32[4] reduce-precision(p0), exponent_bits=5, mantissa_bits=10"
    got = one(line, ["f32[4]"], [1e6, 1e-6, 1.0009766, math.nan])
    assert got[:2].tolist() == [math.inf, 0.0]
    assert got[2] == np.float32(1.0009766)
    assert np.isnan(got[3])


def test_stochastic_convert_rounds_by_the_odds() -> None:
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**32, 20000, dtype=np.uint32)
    x = np.full(20000, 1 + 2**-9, np.float32)  # a quarter of the way to the next bf16
    got = one("bf16[20000] stochastic-convert(p0, p1)", ["f32[20000]", "u32[20000]"], x, bits)
    values, counts = np.unique(got.astype(np.float32), return_counts=True)
    assert values.tolist() == [1.0, 1 + 2**-7]
    assert abs(counts[1] / 20000 - 0.25) < 0.02


@pytest.mark.parametrize("bits", [32, 64])
def test_stochastic_convert_counts_every_random_bit(bits: int) -> None:
    half = 2 ** (bits - 1)
    got = one(
        "s8[5] stochastic-convert(p0, p1)",
        [f"f{bits}[5]", f"u{bits}[5]"],
        np.array([-1.5, -1.5, 1.5, math.inf, math.nan], f"f{bits // 8}"),
        np.array([half - 1, half, half - 1, 0, 0], f"u{bits // 8}"),
    )
    assert got.tolist() == [-2, -1, 2, 127, 0]


def test_erf_is_as_exact_as_the_c_library() -> None:
    x = np.concatenate([np.linspace(-7, 7, 4001), [1e-300, 1e300, 0.0, -0.0]])
    want = np.array([math.erf(v) for v in x])
    assert np.all(np.abs(erf(x) - want) <= 4 * np.finfo(float).eps * np.abs(want))
    assert np.isnan(erf(np.array([math.nan])))[0]


def test_complex_division_recovers_infinities() -> None:
    got = one("c64[2] divide(p0, p1)", ["c64[2]", "c64[2]"], [1 + 1j, complex(math.inf, 1)], [0, 1])
    assert np.isinf(got).all()


@pytest.mark.parametrize(("opcode", "name"), [("erf", "s32"), ("and", "f32"), ("popcnt", "f32")])
def test_types_an_op_does_not_take(opcode: str, name: str) -> None:
    arity = 2 if opcode == "and" else 1
    operands = ", ".join(f"p{i}" for i in range(arity))
    with pytest.raises(HloError, match="HLO0307"):
        one(f"{name}[2] {opcode}({operands})", [f"{name}[2]"] * arity, *[[1, 2]] * arity)


@pytest.mark.parametrize("name", [n for n, r in PRIMITIVE_TYPES.items() if r.is_array])
def test_every_function_keeps_the_type(name: str) -> None:
    from mlirhlo.interp.ops.elementwise import function

    type_ = PRIMITIVE_TYPES[name]
    value: Any = np.ones(3, np.float32 if type_.is_float else np.int8).astype(type_.dtype)
    for opcode in ELEMENTWISE:
        try:
            apply = function(opcode, type_)
        except HloError:
            continue
        arity = (
            2 if opcode in ("add", "and", "atan2", "divide", "maximum", "minimum", "mulhi") else 0
        )
        with np.errstate(all="ignore"):
            try:
                result = np.asarray(apply(value) if not arity else apply(value, value))
            except TypeError:
                result = np.asarray(apply(value, value))
        want = type_.real if opcode in ("abs", "real", "imag") else type_
        assert result.dtype == (np.bool_ if opcode == "is-finite" else want.dtype), opcode
