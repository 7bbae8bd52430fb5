"""Floating-point instructions of the PTX simulator against fractions that are rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ptx_kernels import apply

COUNT = 160
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
RANDOM = np.random.default_rng(1)
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
MODES = ("rn", "rz", "rm", "rp")


def values(kind: str) -> np.ndarray[Any, Any]:
    """Numbers of moderate size, any bits, and the special ones."""
    dtype = np.dtype(DTYPES[kind])
    with np.errstate(all="ignore"):
        return _values(dtype)


def _values(dtype: Any) -> np.ndarray[Any, Any]:
    any_bits = RANDOM.integers(0, 2**63, COUNT).astype(f"u{dtype.itemsize}").view(dtype)
    usual = (RANDOM.normal(size=COUNT) * 2.0 ** RANDOM.integers(-12, 12, COUNT)).astype(dtype)
    result = np.where(RANDOM.random(COUNT) < 0.6, usual, any_bits)
    result[:8] = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2.5]).astype(dtype)
    result[8:11] = np.array([1, 2, 3], f"u{dtype.itemsize}").view(dtype)
    return RANDOM.permutation(result)


def rounded(exact: Fraction, kind: str, mode: str) -> float:
    """A fraction in a format."""
    exponent_bits, mantissa_bits = FORMATS[kind]
    bias = (1 << exponent_bits - 1) - 1
    if not exact:
        return 0.0
    size, negative = abs(exact), exact < 0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** (max(exponent, 1 - bias) - mantissa_bits)
    whole, rest = divmod(size, unit)
    rest /= unit
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1),
        "rz": False,
        "rm": negative and rest > 0,
        "rp": not negative and rest > 0,
    }[mode]
    result = (whole + up) * unit
    if result > (2 - Fraction(1, 2**mantissa_bits)) * Fraction(2) ** bias:
        finite = mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and negative)
        result = (2 - Fraction(1, 2**mantissa_bits)) * Fraction(2) ** bias if finite else math.inf
    return -float(result) if negative else float(result)


def check(
    text: str,
    kind: str,
    mode: str,
    exact: Callable[..., Any],
    *operands: np.ndarray[Any, Any],
    of: str = "",
) -> None:
    """Compares an instruction with exact arithmetic where operands are finite, with numpy's elsewhere."""
    source = of or kind
    bits = [one.view(f"u{one.dtype.itemsize}") for one in operands]
    found = (
        apply(text, kind, *((source, one) for one in bits)).view(DTYPES[kind]).astype(np.float64)
    )
    wide = [one.astype(np.float64) for one in operands]
    for lane, value in enumerate(found.tolist()):
        arguments = [float(one[lane]) for one in wide]
        if all(map(math.isfinite, arguments)):
            fraction = exact(*map(Fraction, arguments))
            expected = rounded(fraction, kind, mode) if isinstance(fraction, Fraction) else None
        else:
            with np.errstate(all="ignore"):
                expected = float(exact(*map(np.float64, arguments)))
        if expected is not None:
            same = value == expected or (math.isnan(value) and math.isnan(expected))
            assert same, (text, arguments, value, expected)


def over(a: Any, b: Any) -> Any:
    """`a / b`; None for a fraction over zero."""
    return None if isinstance(b, Fraction) and not b else a / b


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_rounding_modes(kind: str, mode: str) -> None:
    a, b, c = values(kind), values(kind), values(kind)
    with np.errstate(all="ignore"):
        cancelling = (-a.astype(np.float64) * b).astype(DTYPES[kind])
    name = f"{mode}.{kind}"
    check(f"add.{name} %d, %a, %b;", kind, mode, lambda x, y: x + y, a, b)
    check(f"sub.{name} %d, %a, %b;", kind, mode, lambda x, y: x - y, a, b)
    check(f"mul.{name} %d, %a, %b;", kind, mode, lambda x, y: x * y, a, b)
    check(f"fma.{name} %d, %a, %b, %c;", kind, mode, lambda x, y, z: x * y + z, a, b, c)
    check(f"fma.{name} %d, %a, %b, %c;", kind, mode, lambda x, y, z: x * y + z, a, b, cancelling)
    check(f"div.{name} %d, %a, %b;", kind, mode, over, a, b)
    check(f"rcp.{name} %d, %a;", kind, mode, lambda x: over(type(x)(1), x), a)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_square_roots(kind: str, mode: str) -> None:
    def root(x: Any) -> Any:
        if not isinstance(x, Fraction) or x < 0:
            return None if isinstance(x, Fraction) else np.sqrt(x)
        whole = Fraction(math.isqrt((x.numerator << 2400) // x.denominator), 1 << 1200)
        return whole if whole * whole == x else whole + Fraction(1, 1 << 1201)

    check(f"sqrt.{mode}.{kind} %d, %a;", kind, mode, root, values(kind))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_halves(kind: str) -> None:
    a, b, c = values(kind), values(kind), values(kind)
    check(f"add.rn.{kind} %d, %a, %b;", kind, "rn", lambda x, y: x + y, a, b)
    check(f"mul.rn.{kind} %d, %a, %b;", kind, "rn", lambda x, y: x * y, a, b)
    check(f"fma.rn.{kind} %d, %a, %b, %c;", kind, "rn", lambda x, y, z: x * y + z, a, b, c)
    pairs = [
        np.stack((one, other), axis=1).view(np.uint32)[:, 0] for one, other in ((a, b), (b, c))
    ]
    found = apply(
        f"add.rn.{kind}x2 %d, %a, %b;", f"{kind}x2", *((f"{kind}x2", one) for one in pairs)
    )
    with np.errstate(all="ignore"):
        expected = (np.stack((a, b), axis=1).astype(np.float32) + np.stack((b, c), axis=1)).astype(
            DTYPES[kind]
        )
    np.testing.assert_array_equal(
        found.view(DTYPES[kind]).reshape(-1, 2).astype(np.float32), expected.astype(np.float32)
    )


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("mode", MODES)
def test_conversions_between_floats(mode: str) -> None:
    small = RANDOM.normal(size=COUNT) * 2.0 ** RANDOM.integers(-26, 18, COUNT)
    for to, source in (
        ("f32", "f64"),
        ("f16", "f32"),
        ("f16", "f64"),
        *([("bf16", "f32")] if mode in ("rn", "rz") else []),
    ):
        for given in (values(source), small.astype(DTYPES[source])):
            check(f"cvt.{mode}.{to}.{source} %d, %a;", to, mode, lambda x: x, given, of=source)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
def test_conversions_of_integers(kind: str) -> None:
    bits = int(kind[1:])
    given = (
        RANDOM.integers(0, 2**64 - 1, COUNT, dtype=np.uint64)
        >> RANDOM.integers(64 - bits, 64, COUNT).astype(np.uint64)
    ).astype(f"u{bits // 8}")
    numbers = given.view(f"i{bits // 8}") if kind[0] == "s" else given
    for to in ("f32", "f64", "f16"):
        for mode in MODES:
            found = apply(f"cvt.{mode}.{to}.{kind} %d, %a;", to, (kind, given)).view(DTYPES[to])
            expected = [rounded(Fraction(int(one)), to, mode) for one in numbers]
            np.testing.assert_array_equal(found.astype(np.float64), expected)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("source", ["f32", "f64", "f16", "bf16"])
def test_conversions_to_integers(source: str) -> None:
    given = values(source)
    bits = given.view(f"u{given.dtype.itemsize}")
    for to in ("s32", "u32", "s64", "u64", "s16"):
        info = np.iinfo(f"{'i' if to[0] == 's' else 'u'}{int(to[1:]) // 8}")
        for mode, function in (
            ("rni", round),
            ("rzi", math.trunc),
            ("rmi", math.floor),
            ("rpi", math.ceil),
        ):
            found = apply(f"cvt.{mode}.{to}.{source} %d, %a;", to, (source, bits)).view(info.dtype)
            for one, value in zip(given.astype(np.float64).tolist(), found.tolist(), strict=True):
                whole = 0 if math.isnan(one) else function(one) if math.isfinite(one) else one
                assert value == max(info.min, min(info.max, whole)), (mode, to, one)


def test_small_formats() -> None:
    a, b = (
        (RANDOM.normal(size=COUNT) * 2.0 ** RANDOM.integers(-12, 10, COUNT)).astype(np.float32)
        for _ in range(2)
    )
    operands = (("f32", a.view(np.uint32)), ("f32", b.view(np.uint32)))
    for name, dtype in (("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2)):
        most = float(ml_dtypes.finfo(dtype).max)
        high, low = (
            np.clip(one, -most, most).astype(dtype).view(np.uint8).astype(np.uint16)
            for one in (a, b)
        )
        found = apply(f"cvt.rn.satfinite.{name}x2.f32 %d, %a, %b;", "u16", *operands)
        np.testing.assert_array_equal(found, low | high << 8)
        back = (
            apply(f"cvt.rn.f16x2.{name}x2 %d, %a;", "u32", ("u16", found))
            .view(np.float16)
            .reshape(-1, 2)
        )
        np.testing.assert_array_equal(
            back[:, 0], low.astype(np.uint8).view(dtype).astype(np.float16)
        )
    found = apply("cvt.rna.tf32.f32 %d, %a;", "u32", operands[0])
    np.testing.assert_array_equal(
        found, (a.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    )


def test_minimum_and_comparisons() -> None:
    a, b = values("f32"), values("f32")
    operands = (("f32", a.view(np.uint32)), ("f32", b.view(np.uint32)))
    for name, loses, wins in (("min", np.fmin, np.minimum), ("max", np.fmax, np.maximum)):
        found = apply(f"{name}.f32 %d, %a, %b;", "f32", *operands).view(np.float32)
        np.testing.assert_array_equal(found, loses(a, b))
        found = apply(f"{name}.NaN.f32 %d, %a, %b;", "f32", *operands).view(np.float32)
        np.testing.assert_array_equal(found, wins(a, b))
    unordered = np.isnan(a) | np.isnan(b)
    for name, function in {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "ge": np.greater_equal,
    }.items():
        for suffix, expected in (
            ("", function(a, b) & ~unordered),
            ("u", function(a, b) | unordered),
        ):
            found = apply(
                f"setp.{name}{suffix}.f32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", "u32", *operands
            )
            np.testing.assert_array_equal(found.astype(bool), expected)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", ["ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "rcp", "sqrt"])
def test_approximate_functions(name: str) -> None:
    functions: dict[str, Any] = {
        "ex2": np.exp2,
        "lg2": np.log2,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "rcp": lambda x: 1 / x,
    }
    a = values("f32")
    found = apply(f"{name}.approx.f32 %d, %a;", "f32", ("f32", a.view(np.uint32))).view(np.float32)
    with np.errstate(all="ignore"):
        function = functions.get(name) or getattr(np, name)
        expected = function(a.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=2.0**-22)


def test_rsqrt_of_f64_is_coarse_only_where_it_flushes() -> None:
    a = np.linspace(0.1, 9.0, 32)
    operand = ("f64", a.view(np.uint64))
    found = apply("rsqrt.approx.f64 %d, %a;", "f64", operand).view(np.float64)
    np.testing.assert_allclose(found, 1 / np.sqrt(a), rtol=1e-15)
    found = apply("rsqrt.approx.ftz.f64 %d, %a;", "f64", operand).view(np.uint64)
    assert not (found & np.uint64(0xFFFFFFFF)).any()


def test_flushing_and_saturation() -> None:
    a = np.array([1e-39, -1e-39, 1e-30, 3.0, -1.0, np.nan], np.float32)
    tiny = ("f32", a.view(np.uint32))
    one = ("f32", np.ones(len(a), np.float32).view(np.uint32))
    found = apply("mul.ftz.f32 %d, %a, %b;", "f32", tiny, one).view(np.float32)
    np.testing.assert_array_equal(found, np.array([0, 0, 1e-30, 3, -1, np.nan], np.float32))
    assert np.signbit(found[1])
    found = apply("mul.sat.f32 %d, %a, %b;", "f32", tiny, one).view(np.float32)
    np.testing.assert_array_equal(found, np.array([1e-39, 0, 1e-30, 1, 0, 0], np.float32))
    found = apply("add.f32 %d, %a, %b;", "u32", ("f32", a.view(np.uint32)), one)
    assert found[-1] == 0x7FFFFFFF


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("form", ["full", "approx"])
def test_approximate_quotients(form: str) -> None:
    """Within two units in the last place of the quotient, and not always the nearest number, as on a card."""
    a, b = values("f32"), values("f32")
    usual = (np.abs(b) >= 2.0**-126) & (np.abs(b) <= 2.0**126)
    if form == "approx":  # of other divisors it says nothing, or gives 0
        b = np.where(usual | (b == 0) | ~np.isfinite(b), b, np.float32(3))
    bits = (("f32", one.view(np.uint32)) for one in (a, b))
    found = apply(f"div.{form}.f32 %d, %a, %b;", "f32", *bits).view(np.float32)
    with np.errstate(all="ignore"):
        nearest = (a.astype(np.float64) / b).astype(np.float32)
        units = np.abs(found.astype(np.float64) - nearest) / np.spacing(np.abs(nearest))
    same = (found == nearest) | (np.isnan(found) & np.isnan(nearest))
    assert ((units <= 2) | same).all()
    assert not same.all()
