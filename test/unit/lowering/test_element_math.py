"""Elementary functions as machine code against mpmath, numpy's wider types and the interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.lowering.test_loop_kernels import run

import mlirhlo
from mlirhlo.lowering.target import current

mpmath: Any = pytest.importorskip("mpmath")
pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]

BOUNDS: dict[str, tuple[float, float]] = {
    "exponential": (1.1, 1.1),
    "exponential-minus-one": (2, 2),
    "log": (1, 1),
    "log-plus-one": (1.5, 1.5),
    "tanh": (2.5, 2.5),
    "logistic": (2.5, 2.5),
    "erf": (1.5, 2),
    "sine": (0.6, 1),
    "cosine": (0.6, 1),
    "tan": (0.6, 2.5),
    "asin": (0.6, 2.5),
    "acos": (0.6, 1.5),
    "atan": (0.6, 2),
    "sinh": (0.6, 2),
    "cosh": (0.6, 2),
    "asinh": (0.6, 2.5),
    "acosh": (0.6, 3),
    "atanh": (0.6, 2.5),
    "cbrt": (0.6, 1),
    "power": (0.6, 1.2),
    "atan2": (0.6, 2),
    "remainder": (0, 0),
}
"""Units of the last place that f32 and f64 results may be off, as `element_math` states them."""

_DOMAINS: dict[str, Callable[[Any], bool]] = {
    "log": lambda x: x >= 0,
    "log-plus-one": lambda x: x >= -1,
    "asin": lambda x: abs(x) <= 1,
    "acos": lambda x: abs(x) <= 1,
    "atanh": lambda x: abs(x) <= 1,
    "acosh": lambda x: x >= 1,
}
_EXACT: dict[str, Any] = {
    "exponential": mpmath.exp,
    "exponential-minus-one": mpmath.expm1,
    "log": mpmath.log,
    "log-plus-one": mpmath.log1p,
    "tanh": mpmath.tanh,
    "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
    "erf": mpmath.erf,
    "sine": mpmath.sin,
    "cosine": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "power": mpmath.power,
    "atan2": mpmath.atan2,
    "remainder": lambda x, y: mpmath.sign(x) * mpmath.fmod(abs(x), abs(y)),
}
_EVERYWHERE = ("sine", "cosine", "tan", "log", "cbrt", "atan")
UNARY = [op for op in BOUNDS if op not in ("power", "atan2", "remainder")]


def compute(opcode: str, *operands: Array) -> Array:
    """The result of a kernel of one instruction on f32 or f64 arrays."""
    element = "f32" if operands[0].dtype == np.float32 else "f64"
    shape = f"{element}[{','.join(map(str, operands[0].shape))}]"
    parameters = ", ".join(f"{shape} p{i}" for i in range(len(operands)))
    return run(mlirhlo.parse(f"{shape} {opcode}({parameters})"), list(operands), operands[0])


def bit_patterns(dtype: Any, count: int, seed: int) -> Array:
    """Numbers with random bits: every exponent as likely as the next."""
    word: Any = np.uint32 if dtype == np.float32 else np.uint64
    rng = np.random.default_rng(seed)
    return rng.integers(0, np.iinfo(word).max, count, dtype=word, endpoint=True).view(dtype)


def specials(dtype: Any) -> Array:
    """Zeros, infinities, NaN, the ends of the range."""
    info = np.finfo(dtype)
    sizes = [0.0, 1.0, 0.5, 2.0, np.inf, info.max, info.tiny, info.smallest_subnormal]
    return np.array([*sizes, *[-s for s in sizes], np.nan], dtype)


def draw(dtype: Any, count: int, seed: int) -> Array:
    """Numbers of all sizes, many of them where functions bend."""
    rng = np.random.default_rng(seed)
    parts = [
        specials(dtype),
        bit_patterns(dtype, count, seed),
        rng.normal(size=count),
        rng.normal(size=count) * 40,
        rng.uniform(-1.1, 1.1, count),
        1 + rng.normal(size=count) * 0.01,
        rng.uniform(-750, 750, count),
    ]
    with np.errstate(all="ignore"):
        return np.concatenate([np.asarray(p).astype(dtype) for p in parts])


def assert_near(actual: Array, exact: Array, bound: float, what: str, inputs: Any) -> None:
    """`exact` in a wider type; NaN, infinities and zeros agree, numbers within `bound` ULP."""
    dtype = actual.dtype
    with np.errstate(all="ignore"):
        nearest = exact.astype(dtype)
        info = np.finfo(dtype)
        unit = np.maximum(np.spacing(np.abs(nearest)), info.smallest_subnormal)
        off = np.abs(actual.astype(exact.dtype) - exact) / unit.astype(exact.dtype)
    off = np.where(np.isfinite(nearest) & np.isfinite(actual), off, np.inf)
    both_nan = np.isnan(actual) & np.isnan(nearest)
    same = both_nan | ((actual == nearest) & ~np.isfinite(nearest))
    # Just below the greatest number both it and infinity are near.
    edge = np.isinf(actual) & (np.abs(nearest) == info.max)
    edge |= np.isinf(nearest) & (np.abs(actual) == info.max)
    off = np.where(same | edge, 0, off)
    worst = int(np.argmax(off))
    where = [x[worst] for x in inputs]
    assert off[worst] <= bound, (what, where, actual[worst], nearest[worst], float(off[worst]))
    zeros = (actual == 0) & (nearest == 0)
    assert np.array_equal(np.signbit(actual[zeros]), np.signbit(nearest[zeros])), what


def exact_values(opcode: str, *operands: Array) -> list[Any]:
    """Of mpmath with 40 digits; None where the result is not a number or mpmath has no word on it."""
    domain = _DOMAINS.get(opcode, lambda _: True)
    results: list[Any] = []
    with mpmath.workprec(160):
        for numbers in zip(*[x.tolist() for x in operands], strict=True):
            outside = not all(np.isfinite(numbers)) or 0 in numbers or not domain(numbers[0])
            pole = opcode in ("log", "atanh", "log-plus-one") and abs(numbers[0]) == 1
            # Far out most functions are flat, infinite, or the logarithm of twice the number.
            far = opcode not in _EVERYWHERE and abs(numbers[-1]) > 1e5
            if outside or pole or far:
                results.append(None)
            else:
                results.append(_EXACT[opcode](*map(mpmath.mpf, numbers)))
    return results


def ulps(actual: float, exact: Any, dtype: Any) -> float:
    """How far a number is from an exact one."""
    info: Any = np.finfo(dtype)
    with np.errstate(over="ignore"):
        nearest = dtype(float(exact))
    if abs(exact) >= float(info.max) or np.isinf(nearest):
        return 0.0 if np.isinf(actual) or abs(actual) == info.max else np.inf
    unit = max(np.spacing(abs(nearest)), info.smallest_subnormal)
    return float(abs(mpmath.mpf(float(actual)) - exact) / mpmath.mpf(float(unit)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("opcode", UNARY)
def test_functions_are_as_near_as_they_say(opcode: str, dtype: Any) -> None:
    x = draw(dtype, 60, 7)
    actual = compute(opcode, x)
    bound = BOUNDS[opcode][dtype is np.float64]
    checked = 0
    for number, value, exact in zip(x, actual, exact_values(opcode, x), strict=True):
        if exact is None:
            continue
        checked += 1
        assert ulps(value, exact, dtype) <= bound, (opcode, number, value, exact)
    assert checked > 60


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("opcode", UNARY)
def test_special_arguments_give_what_the_interpreter_gives(opcode: str, dtype: Any) -> None:
    x = specials(dtype)
    element = "f32" if dtype is np.float32 else "f64"
    module = mlirhlo.parse(f"{element}[{x.size}] {opcode}({element}[{x.size}] p)")
    with np.errstate(all="ignore"):
        expected = np.asarray(module(x))
    actual = compute(opcode, x)
    # Of numbers no more than the last places differ; all else is the same, signs of zeros too.
    for number, a, e in zip(x, actual, expected, strict=True):
        same = (np.isnan(a) and np.isnan(e)) or (a == e and np.signbit(a) == np.signbit(e))
        assert same or abs(a - e) <= 4 * np.spacing(abs(e)), (opcode, number, a, e)


_WIDE: dict[str, Any] = {
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "log": np.log,
    "log-plus-one": np.log1p,
    "tanh": np.tanh,
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "power": np.power,
    "atan2": np.arctan2,
    "remainder": np.fmod,
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("opcode", _WIDE)
def test_functions_over_all_exponents(opcode: str, dtype: Any) -> None:
    """Against numpy in the next wider type, hundreds of thousands of numbers each."""
    wide: Any = np.float64 if dtype is np.float32 else np.longdouble
    if np.finfo(wide).nmant <= np.finfo(dtype).nmant:
        pytest.skip("this machine has no wider type")
    operands = [draw(dtype, 60_000, 3)]
    if opcode not in UNARY:
        rng = np.random.default_rng(5)
        pairs = np.array(np.meshgrid(specials(dtype), specials(dtype))).reshape(2, -1)
        near = [rng.uniform(0.5, 2, 60_000), rng.normal(size=60_000) * 200]
        second = operands[0][rng.permutation(operands[0].size)]
        operands = [
            np.concatenate([p, x, n.astype(dtype)])
            for p, x, n in zip(pairs, [operands[0], second], near, strict=True)
        ]
    with np.errstate(all="ignore"):
        exact = _WIDE[opcode](*[x.astype(wide) for x in operands])
    bound = BOUNDS[opcode][dtype is np.float64]
    assert_near(compute(opcode, *operands), np.asarray(exact), bound, opcode, operands)


def test_worst_cases_of_range_reduction() -> None:
    """Arguments next to multiples of π/2, of all sizes; the first is the nearest of all doubles."""
    x = np.array([6381956970095103.0 * 2.0**797, 2.1661931537899235e86, 7.586198935034675e155])
    x = np.concatenate([x, [43870649.65938365, -853966170846.6349, 1e300, 2.0**20 * 3.3], -x])
    for opcode in ("sine", "cosine", "tan"):
        actual = compute(opcode, x)
        with mpmath.workprec(1400):
            for number, value in zip(x.tolist(), actual, strict=True):
                exact = _EXACT[opcode](mpmath.mpf(number))
                assert ulps(value, exact, np.float64) <= 2.5, (opcode, number, value)


def test_remainders_are_exact_where_the_quotient_is_huge() -> None:
    x = np.array([1e308, -1e308, 5e-324, 1e308, 7.5, -7.5, 3.0, 1e22])
    y = np.array([5e-324, 3e-310, 1e308, 0.1, 2.0, 2.0, -np.inf, 1.1])
    assert np.array_equal(compute("remainder", x, y), np.fmod(x, y))
    parts = ([3e38, -3e38, 1e-45, 7.5], [1e-45, 1e-40, 1.0, 2.0])
    narrow = [np.array(part, np.float32) for part in parts]
    assert np.array_equal(compute("remainder", *narrow), np.fmod(*narrow))


@pytest.mark.parametrize("shape", [(), (3,), (5, 3), (2, 19)])
@pytest.mark.parametrize("opcode", ["exponential", "sine", "remainder", "power", "erf"])
def test_scalars_and_tails(opcode: str, shape: tuple[int, ...]) -> None:
    """Loops without vectors, and vectors under a mask, take the branches of wide ones."""
    rng = np.random.default_rng(2)
    operands = [np.asarray(rng.uniform(0.5, 9, shape) * 1e3**k, np.float64) for k in (2, 0)]
    operands = operands[: 2 if opcode in ("power", "remainder") else 1]
    if opcode == "exponential":
        operands[0] = np.asarray(np.log(operands[0]))
    flat = [np.ascontiguousarray(np.broadcast_to(x.reshape(-1, 1), (x.size, 8))) for x in operands]
    whole = compute(opcode, *flat)[:, 0].reshape(shape)
    assert np.array_equal(compute(opcode, *operands), whole)


def test_tanh_by_pieces_is_odd_and_ends_at_one() -> None:
    """Near the edges of all pieces, where neighbouring polynomials meet."""
    if not current().has("avx512f"):
        pytest.skip("numbers are not looked up here")
    pieces = np.arange(0x3F200000, 0x41200000, 1 << 20, dtype=np.uint32).view(np.float32) - 0.625
    near = (pieces.view(np.int32) + np.arange(-64, 64, dtype=np.int32)[:, None]).view(np.float32)
    x = np.concatenate([near.ravel(), np.linspace(0, 12, 1 << 16, dtype=np.float32)])
    x = np.abs(x[np.isfinite(x)])
    y = compute("tanh", x)
    assert np.array_equal(compute("tanh", -x).view(np.uint32), (-y).view(np.uint32))
    assert y.max() == 1
    assert np.all(y[x >= 9.25] == 1)
    assert_near(y, np.tanh(x.astype(np.float64)), 1.5, "tanh", [x])


def test_exp_looks_powers_up_in_all_places() -> None:
    """Halves between two powers, of either sign, and results that are subnormal."""
    steps = np.arange(-104 * 16, 89 * 16, dtype=np.float64)
    middles = ((steps[:, None] + [0.0, 0.4999, 0.5, 0.5001]) * np.log(2) / 16).ravel()
    x = middles.astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert_near(compute("exponential", x), exact, 1.1, "exponential", [x])


def test_what_every_lane_costs() -> None:
    """Ops in the loop of a kernel: the fast functions stay short."""
    from mlirhlo.lowering.cpu.compiler import lower

    for opcode, most in (("exponential", 30), ("tanh", 32), ("log", 45), ("erf", 45)):
        module = mlirhlo.parse(f"f32[64] {opcode}(f32[64] p)")
        loops = str(lower(module.op).loops)
        ops = sum(loops.count(f"= {d}.") for d in ("arith", "math")) - loops.count("constant")
        assert 10 < ops <= most, (opcode, ops)


@pytest.mark.slow
def test_the_coefficients_are_what_the_script_writes() -> None:
    root = Path(mlirhlo.__file__).parents[1]
    script = root / "tools" / "fit_math.py"
    if not script.exists():
        pytest.skip("the script is not here")
    written = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    there: dict[str, Any] = {}
    exec(written.stdout, there)
    from mlirhlo.lowering.hlo_to_loops.math_coefficients import TABLES

    assert there["TABLES"] == TABLES
