"""Every elementwise function on every type it takes: special values and random ones, as numpy has them."""

# A traced function is written out even where it is one call.
# ruff: noqa: PLW0108
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import SEED

import mlirhlo
import mlirhlo.numpy as hnp
from mlirhlo.analysis.verifier import verify_module

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
BITS = ("bool", *INTEGERS)
NUMERIC = REAL + COMPLEX
ANY = ("bool", *NUMERIC)

UNARY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log",
         "log1p", "log2", "log10", "sin", "sinh", "sqrt", "tan", "tanh", "reciprocal"),
        FLOATS + COMPLEX,
    ),
    **dict.fromkeys(("abs", "conj", "negative", "positive", "sign", "square", "real", "imag"), NUMERIC),
    **dict.fromkeys(("ceil", "floor", "trunc"), REAL),
    "round": NUMERIC,
    "signbit": FLOATS,
    "bitwise_invert": BITS,
    **dict.fromkeys(("isfinite", "isinf", "isnan", "logical_not"), ANY),
}  # fmt: skip
BINARY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "subtract", "multiply"), NUMERIC),
    "divide": FLOATS + COMPLEX,
    "pow": NUMERIC,
    **dict.fromkeys(("floor_divide", "remainder", "maximum", "minimum"), REAL),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), REAL),
    **dict.fromkeys(("equal", "not_equal", "logical_and", "logical_or", "logical_xor"), ANY),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter"), FLOATS),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), BITS),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), INTEGERS),
}
# numpy spells one of them otherwise, and gives no type of its own to `real`.
EXPECTED: dict[str, Any] = {"round": np.rint}


OPEN_ZEROS = ("maximum", "minimum", "nextafter")
"""The standard leaves the sign of a zero open, and numpy is of two minds."""


def values_of(dtype: str) -> Any:
    """Special values of a type, then random ones."""
    kind = np.dtype(dtype)
    rng = np.random.default_rng(SEED)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind)
        special = [0, 1, 2, 3, 7, info.max, info.min, info.max // 2]
        return np.array([*special, *map(int, rng.integers(0, 50, 6))], object).astype(kind)
    if kind.kind == "f":
        info = np.finfo(kind)
        special = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, info.max]
        special += [-info.max, info.smallest_normal, info.eps, 3, -3, np.pi / 2, 1e-3, 10.0]
        return np.array([*special, *rng.normal(size=8)]).astype(kind)
    return (rng.normal(size=12) + 1j * rng.normal(size=12)).astype(kind)


def same(got: Any, want: Any, dtype: str, what: str) -> None:
    """Equal types and shapes, and values up to a few roundings; signs of zeros exactly."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, what
    assert got.dtype == want.dtype, what
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want, what)
        return
    eps = float(np.finfo(want.dtype).eps)
    np.testing.assert_allclose(got, want, rtol=16 * eps, atol=4 * eps, err_msg=what)
    if want.dtype.kind == "f" and what.split()[0] not in OPEN_ZEROS:
        zeros = (want == 0) & (got == 0)
        np.testing.assert_array_equal(np.signbit(got)[zeros], np.signbit(want)[zeros], what)


def both(name: str, *arguments: Any) -> list[Any]:
    """The result outside of jit and inside of it."""
    function = getattr(hnp, name)
    jitted = mlirhlo.jit(lambda *args: function(*args), platform="interpreter")
    assert not verify_module(jitted.lower(*arguments).op)
    return [function(*map(hnp.asarray, arguments)), jitted(*arguments)]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, ds in UNARY.items() for d in ds])
def test_unary(name: str, dtype: str) -> None:
    x = values_of(dtype)
    with np.errstate(all="ignore"):
        want = EXPECTED.get(name, getattr(np, name))(x)
        if name == "round" and np.dtype(dtype).kind in "iu":
            want = x
    for got in both(name, x):
        same(got, want, dtype, f"{name} {dtype}")


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, ds in BINARY.items() for d in ds])
def test_binary(name: str, dtype: str) -> None:
    x = values_of(dtype)
    a, b = np.broadcast_arrays(x[:, None], x[None, :])
    if name in ("floor_divide", "remainder") and np.dtype(dtype).kind in "iu":
        b = np.where(b == 0, np.ones_like(b), b)  # the standard leaves division by 0 open
        b = np.where((b == -1) if np.dtype(dtype).kind == "i" else False, 1, b).astype(x.dtype)
    if "shift" in name:
        b = (b % (8 * x.dtype.itemsize)).astype(x.dtype)
        b = np.where(b < 0, 0, b).astype(x.dtype)
    if name == "pow" and np.dtype(dtype).kind in "iu":
        b = (np.where(b < 0, 0, b) % 9).astype(x.dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(a, b)
        if name == "floor_divide" and np.dtype(dtype).kind == "f":
            # Where an operand is infinite the standard asks for floor(x1 / x2).
            odd = np.isinf(a) | np.isinf(b) | (b == 0)
            want = np.where(odd, np.floor(a / b), want)
            # 0 / x: numpy drops the sign there too.
            want = np.where(a == 0, np.floor(a / b), want)
    for got in both(name, np.ascontiguousarray(a), np.ascontiguousarray(b)):
        same(got, want, dtype, f"{name} {dtype}")


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("dtype", REAL)
def test_clip(dtype: str) -> None:
    x = values_of(dtype)
    for low, high in ((1, 5), (None, 3), (2, None), (np.asarray(1, dtype), 100)):
        want = np.clip(x, low, high)
        got = hnp.clip(hnp.asarray(x), low, high)
        same(got, want, dtype, "clip")
    assert hnp.clip(hnp.asarray(np.array([0, 200], "uint8")), -5, 1000).tolist() == [0, 200]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", ["add", "multiply", "less", "equal", "where"])
def test_promotion_is_numpys(name: str) -> None:
    """All pairs of types, mixed kinds included, and Python scalars on either side."""
    for left in NUMERIC:
        for right in (*NUMERIC, 2, 2.0):
            if name == "less" and "complex" in f"{left}{right}":
                continue
            a = np.ones(3, left)
            b = np.ones(1, right) if isinstance(right, str) else right
            if name == "where":
                want, got = np.where([True], a, b), hnp.where(hnp.asarray([True]), a, b)
            else:
                want, got = getattr(np, name)(a, b), getattr(hnp, name)(a, b)
            assert got.dtype == want.dtype, (left, right)


def test_operators_are_the_functions() -> None:
    a, b = hnp.asarray([7, -7, 3]), hnp.asarray([2, 2, 2])
    checks = {
        "+": a + b, "-": a - b, "*": a * b, "/": a / b, "//": a // b, "%": a % b, "**": a**b,
        "<<": a << b, ">>": a >> b, "&": a & b, "|": a | b, "^": a ^ b, "<": a < b, "==": a == b,
    }  # fmt: skip
    for sign, got in checks.items():
        want = eval(f"a {sign} b", {}, {"a": np.asarray(a), "b": np.asarray(b)})
        np.testing.assert_array_equal(np.asarray(got), want, sign)
    assert (2 - a).tolist() == [-5, 9, -1]
    assert (np.asarray([1, 2, 3]) - a).tolist() == [-6, 9, 0]
    assert isinstance(np.asarray([1, 2, 3]) * a, hnp.Array)
    assert (~hnp.asarray([True, False])).tolist() == [False, True]
    assert a.__eq__("x") is NotImplemented


COMPLEX_PLACES = [
    complex(x, y)
    for x in (-1e200, -1e10, -2.0, -1.0, -0.5, -1e-10, -0.0, 0.0, 1e-10, 0.5, 1.0, 2.0, 30.0, 1e200)
    for y in (-1e200, -1e10, -1.0, -1e-8, -0.0, 0.0, 1e-8, 0.3, 1.0, 5.0, 1e10)
]
"""On branch cuts and on both sides of them, near the singular points, and far out."""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "name",
    ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log2", "sin",
     "sinh", "sqrt", "square", "tan", "tanh"],
)  # fmt: skip
def test_branches_of_complex_functions(name: str) -> None:
    z = np.array(COMPLEX_PLACES)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(z)
        for got in map(np.asarray, both(name, z)):
            whole = abs(got - want) <= 1e-13 * abs(want)
            parts = [
                np.isclose(a, b, rtol=1e-13, atol=0, equal_nan=True)
                for a, b in ((got.real, want.real), (got.imag, want.imag))
            ]
            right = whole | (parts[0] & parts[1])
            assert right.all(), list(zip(z[~right], got[~right], want[~right], strict=True))[:5]
            turned = (np.sign(got.imag) != np.sign(want.imag)) & (abs(want.imag) > 1e-12)
            assert not turned.any()


def same_parts(got: Any, want: Any, rtol: float = 1e-13) -> Any:
    """Where both parts agree, signs of zeros and infinities included; any NaN is as good as another."""

    def same(a: Any, b: Any) -> Any:
        is_close = np.isclose(a, b, rtol=rtol, atol=0) & (np.signbit(a) == np.signbit(b))
        return (np.isnan(a) & np.isnan(b)) | is_close

    return same(got.real, want.real) & same(got.imag, want.imag)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "name",
    ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "sqrt", "tan",
     "tanh"],
)  # fmt: skip
@pytest.mark.parametrize("dtype", COMPLEX)
def test_special_parts_of_complex_numbers(name: str, dtype: str) -> None:
    parts = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
    z = np.array([complex(a, b) for a in parts for b in parts], dtype)
    # The standard leaves these signs open, and C libraries differ.
    is_open = {
        "sinh": np.isinf(z.real) & ~np.isfinite(z.imag),
        "cosh": (z.real == 0) & ~np.isfinite(z.imag),
        "sin": np.isinf(z.imag) & ~np.isfinite(z.real),
        "cos": (z.imag == 0) & ~np.isfinite(z.real),
    }.get(name, np.zeros(z.shape, bool))
    with np.errstate(all="ignore"):
        want = getattr(np, name)(z.astype("complex128"))
    for got in map(np.asarray, both(name, z)):
        right = same_parts(got, want, 1e-6 if dtype == "complex64" else 1e-13) | is_open
        assert right.all(), list(zip(z[~right], got[~right], want[~right], strict=True))
        for one, other in ((got.real, want.real), (got.imag, want.imag)):
            np.testing.assert_array_equal(abs(one[is_open]), abs(other[is_open]))


def test_complex_expm1_of_infinities() -> None:
    """numpy has NaN there; the values are the standard's."""
    inf, nan = np.inf, np.nan
    wants = {
        complex(-0.0, 0): 0j, complex(inf, 0): complex(inf, 0), complex(nan, 0): complex(nan, 0),
        complex(-inf, inf): complex(-1, 0), complex(-inf, nan): complex(-1, 0),
        complex(inf, inf): complex(inf, nan), complex(inf, nan): complex(inf, nan),
        complex(-inf, 2): complex(-1, 0), complex(1, inf): complex(nan, nan),
    }  # fmt: skip
    for got in map(np.asarray, both("expm1", np.array(list(wants)))):
        assert same_parts(got, np.array(list(wants.values()))).all(), got


def test_complex_arc_tangent_at_its_poles() -> None:
    near = np.array([1j, 1e-300 + 1j, -1e-200 - 1j, 1e-30 + 1j, 1e-3 + 1j, 1j * (1 + 1e-15)])
    with np.errstate(all="ignore"):
        want = np.arctan(near)
    for got in map(np.asarray, both("atan", near)):
        assert same_parts(got, want).all(), list(zip(near, got, want, strict=True))
    for got in map(np.asarray, both("atan", near.astype("complex64"))):
        np.testing.assert_allclose(got[3:5], want[3:5], rtol=1e-6)


def test_complex_powers() -> None:
    values = [0j, 1 + 0j, -1 + 0j, 1j, 2 + 3j, -0.0 + 0j, 0.5 + 0j, -2 + 0j]
    powers = [0j, 1 + 0j, 2 + 0j, -1 + 0j, 0.5 + 0j, 1j, 2 + 1j, -2 + 1j, 5 - 5j]
    a, b = np.meshgrid(values, powers)
    with np.errstate(all="ignore"):
        want = np.power(a, b)
    for got in both("pow", a, b):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12, atol=1e-12)
