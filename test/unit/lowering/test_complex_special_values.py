"""Complex functions at zeros, infinities and NaN: C99's Annex G, in the interpreter and in machine code alike."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pytest

import mlirhlo
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module

PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.25, np.inf, -np.inf, np.nan)
POINTS = np.array([complex(a, b) for a in PARTS for b in PARTS])
C99: Mapping[str, Callable[[complex], complex]] = {
    "abs": abs,
    "acos": cmath.acos,
    "acosh": cmath.acosh,
    "asin": cmath.asin,
    "asinh": cmath.asinh,
    "atan": cmath.atan,
    "atanh": cmath.atanh,
    "cosh": cmath.cosh,
    "cosine": cmath.cos,
    "exponential": cmath.exp,
    "log": cmath.log,
    "sine": cmath.sin,
    "sinh": cmath.sinh,
    "sqrt": cmath.sqrt,
    "tan": cmath.tan,
    "tanh": cmath.tanh,
}
"""Functions whose values at special points the C standard lists; `cmath` has its tables."""
OTHERS = ("exponential-minus-one", "log-plus-one", "logistic", "negate", "rsqrt", "sign", "cbrt")
BINARY = ("add", "atan2", "divide", "multiply", "power", "subtract")
TYPES = ("c64", "c128")


def module_text(type_: str, opcodes: tuple[str, ...], count: int, size: int) -> str:
    """All opcodes on the same operands."""
    real = PRIMITIVE_TYPES[type_].real.name
    names = ", ".join(f"p{k}" for k in range(count))
    lines = [f"p{k} = {type_}[{size}] parameter({k})" for k in range(count)]
    shapes = [f"{real if o == 'abs' else type_}[{size}]" for o in opcodes]
    lines += [f"r{k} = {shapes[k]} {o}({names})" for k, o in enumerate(opcodes)]
    results = ", ".join(f"r{k}" for k in range(len(opcodes)))
    lines.append(f"ROOT t = ({', '.join(shapes)}) tuple({results})")
    return "HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


@cache
def results(type_: str, platform: str, binary: bool) -> Mapping[str, np.ndarray]:
    """By opcode, on all points or all pairs of them."""
    points = POINTS.astype(PRIMITIVE_TYPES[type_].dtype)
    operands = [points]
    if binary:
        operands = [np.ascontiguousarray(g.reshape(-1)) for g in np.meshgrid(points, points)]
    opcodes = BINARY if binary else (*C99, *OTHERS)
    text = module_text(type_, opcodes, len(operands), operands[0].size)
    if platform == "interpreter":
        found = run_module(parse_module(text), operands)
    else:
        found = mlirhlo.compile(mlirhlo.parse(text))(*operands)
    return dict(zip(opcodes, map(np.asarray, found), strict=True))


def is_same(a: float, b: float, signs: bool = True) -> bool:
    """Whether two parts are of one kind and near; `signs`: those of zeros and infinities count."""
    if np.isnan(a) or np.isnan(b):
        return bool(np.isnan(a) and np.isnan(b))
    if np.isinf(a) or np.isinf(b):
        return a == b or (not signs and abs(a) == abs(b))
    if a == b == 0:
        return not signs or np.signbit(a) == np.signbit(b)
    return bool(abs(a - b) <= 1e-5 * max(abs(a), abs(b), 1e-3))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("opcode", C99)
@pytest.mark.parametrize("type_", TYPES)
def test_tables_of_the_standard(type_: str, opcode: str) -> None:
    for point, got in zip(POINTS, results(type_, "interpreter", False)[opcode], strict=True):
        try:
            want = complex(C99[opcode](complex(point)))
        except (ValueError, OverflowError):
            continue  # what raises a flag raises an error there
        got = complex(got)
        # The standard leaves signs open where NaN, or infinity at an infinite angle, comes in.
        known = not cmath.isnan(point) and np.isfinite([point.real, point.imag]).any()
        if opcode == "acosh" and point.real == 0 and np.isnan(point.imag):
            want = complex(np.nan, np.pi / 2)  # as the standard was corrected
        assert is_same(got.real, want.real, known), (point, got, want)
        assert is_same(got.imag, want.imag, known), (point, got, want)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("binary", [False, True], ids=["unary", "binary"])
@pytest.mark.parametrize("type_", TYPES)
def test_machine_code_gives_what_the_interpreter_gives(type_: str, binary: bool) -> None:
    mine, machine = (results(type_, p, binary) for p in ("interpreter", "cpu"))
    pairs = [(a, b) for b in POINTS for a in POINTS] if binary else [(a,) for a in POINTS]
    for opcode, values in mine.items():
        for point, one, other in zip(pairs, values, machine[opcode], strict=True):
            a, b = complex(one), complex(other)
            scale = max((abs(v) for v in (a.real, a.imag) if np.isfinite(v)), default=0)
            for x, y in ((a.real, b.real), (a.imag, b.imag)):
                tiny = np.isfinite([x, y]).all() and x != y and abs(x - y) <= 1e-5 * scale
                assert tiny or is_same(x, y), (opcode, point, a, b)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_powers_that_are_known(platform: str, type_: str) -> None:
    found = results(type_, platform, True)["power"]
    for (y, x), got in zip(((b, a) for b in POINTS for a in POINTS), found, strict=True):
        want = None
        if y == 0 or x == 1:
            want = 1
        elif x.imag == 0 and y.imag == 0 and x.real == np.inf and not np.isnan(y.real):
            want = np.inf if y.real > 0 else 0
        elif x == 0 and y.imag == 0 and y.real > 0:
            want = 0
        if want is not None:
            assert (got.real, got.imag) == (want, 0), (x, y, got)


@pytest.mark.one_case_in(2)
@pytest.mark.oracle
@pytest.mark.parametrize("opcode", ["add", "multiply", "power", "subtract"])
def test_pairs_as_in_xla(opcode: str) -> None:
    from xla_execution import XLA, Refusal

    points = POINTS.astype(np.complex64)
    operands = [np.ascontiguousarray(g.reshape(-1)) for g in np.meshgrid(points, points)]
    found = XLA.run(module_text("c64", (opcode,), 2, operands[0].size), operands)
    assert not isinstance(found, Refusal), found
    for x, y, one, other in zip(
        *operands, results("c64", "interpreter", True)[opcode], found[0], strict=True
    ):
        a, b = complex(one), complex(other)
        scale = max((abs(v) for v in (a.real, a.imag) if np.isfinite(v)), default=0)
        for p, q in ((a.real, b.real), (a.imag, b.imag)):
            near = np.isfinite([p, q]).all() and abs(p - q) <= 1e-4 * scale
            assert near or is_same(p, q), (x, y, a, b)


def test_sizes_of_all_exponents() -> None:
    """abs of c64 is what f64 rounds to, nearly always, subnormal numbers included; vectors and a rest."""
    count = 40_009
    module = mlirhlo.parse(
        f"HloModule m\nENTRY e {{ x = c64[{count}] parameter(0)\n ROOT r = f32[{count}] abs(x) }}"
    )
    compiled, random = mlirhlo.compile(module, cached=False), np.random.default_rng(6)
    with np.errstate(all="ignore"):
        for low, high in ((-20, 20), (-149, -100), (-149, 128), (100, 128)):
            parts = random.standard_normal((2, count)) * 2.0 ** random.integers(
                low, high, (2, count)
            )
            points = (parts[0] + 1j * parts[1]).astype("c8")
            exact = np.abs(points.astype("c16"))
            expected, actual = exact.astype("f4"), compiled(points)
            whole = np.isfinite(expected)
            np.testing.assert_array_equal(actual[~whole], expected[~whole])
            off = np.abs(actual[whole].astype("f8") - exact[whole]) / np.spacing(expected[whole])
            # Rounded twice where the result is subnormal.
            normal = expected[whole] >= 2.0**-126
            assert np.all(off <= np.where(normal, 0.501, 0.76))
            assert np.mean((actual != expected)[whole][normal]) < 1e-4
