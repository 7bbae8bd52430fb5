"""Complex numbers, narrow floats, changes of type and of bits, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.lowering.test_loop_kernels import draw, run

import mlirhlo

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]

NARROW = [
    *("f8e5m2", "f8e5m2fnuz", "f8e4m3", "f8e4m3fn", "f8e4m3b11fnuz", "f8e4m3fnuz"),
    *("f8e3m4", "f8e8m0fnu", "f4e2m1fn", "f6e3m2fn", "f6e2m3fn"),
]


def both(text: str, *arguments: Array) -> tuple[Array, Array]:
    """Results of the machine code and of the interpreter."""
    module = mlirhlo.parse(text)
    with np.errstate(all="ignore"):
        expected = np.asarray(module(*arguments), order="C")
    return run(module, list(arguments), expected), expected


def assert_same(actual: Array, expected: Array, what: str) -> None:
    """The same numbers and signs of zeros; NaN is NaN, whatever its bits."""
    if actual.tobytes() == expected.tobytes():
        return
    if actual.dtype.kind == "b":
        # The interpreter may keep other bytes than 0 and 1.
        assert np.array_equal(actual.view(np.uint8) != 0, expected.view(np.uint8) != 0), what
        return
    assert actual.dtype.kind not in "iu", (what, actual, expected)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    different = ~((a == e) & (np.signbit(a) == np.signbit(e)) | np.isnan(a) & np.isnan(e))
    first = int(np.argmax(different))
    assert not different.any(), (what, first, actual.flat[first], expected.flat[first])


def codes(name: str) -> Array:
    """Every number of a narrow type."""
    shape = mlirhlo.parse(f"ENTRY e {{ ROOT p = {name}[2] parameter(0) }}").hlo.entry.root.shape
    element: Any = shape.element_type  # type: ignore[union-attr]
    return np.arange(1 << element.bits, dtype=np.uint8).view(element.dtype)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("name", NARROW)
def test_f32_rounds_to_narrow_floats(name: str) -> None:
    """Every upper half of an f32 with the lower halves that decide how it rounds."""
    upper = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    bits = np.concatenate([upper | np.uint32(low) for low in (0, 1, 0x7FFF, 0x8000, 0xFFFF)])
    x = bits.view(np.float32)
    actual, expected = both(f"{name}[{x.size}] convert(f32[{x.size}] p)", x)
    differ = np.flatnonzero(actual.view(np.uint8) != expected.view(np.uint8))
    assert not differ.size, (x[differ[0]], actual[differ[0]], expected[differ[0]])


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_become_other_types(name: str) -> None:
    x = codes(name)
    for other in ("f32", "f16", "f64", "s8", "u8", "s32", "pred", "f8e4m3fn", "f8e5m2", "bf16"):
        if (name, other) == ("f8e8m0fnu", "bf16"):
            continue  # its least number is subnormal there, which the processor rounds to zero
        actual, expected = both(f"{other}[{x.size}] convert({name}[{x.size}] p)", x)
        assert_same(actual, expected, f"{name} {other}")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("name", NARROW)
def test_other_types_become_narrow_floats(name: str) -> None:
    rng = np.random.default_rng(3)
    halves = np.arange(1 << 16, dtype=np.uint16)
    bf16 = mlirhlo.parse("bf16[] negate(bf16[] x)").hlo.entry.root.shape.element_type.dtype  # type: ignore[union-attr]
    sources: dict[str, Array] = {
        "f16": halves.view(np.float16),
        "bf16": halves.view(bf16),
        "s8": np.arange(256, dtype=np.uint8).view(np.int8),
        "s32": rng.integers(-600, 600, 500).astype(np.int32),
        "f64": rng.normal(size=2000) * 10.0 ** rng.integers(-3, 4, 2000),
        "pred": np.array([True, False] * 9),
    }
    for source, x in sources.items():
        actual, expected = both(f"{name}[{x.size}] convert({source}[{x.size}] p)", x)
        assert_same(actual, expected, f"{source} {name}")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("name", NARROW)
def test_arithmetic_of_narrow_floats(name: str) -> None:
    """Every pair of numbers."""
    values = codes(name)
    x, y = np.repeat(values, values.size), np.tile(values, values.size)
    shape = f"{name}[{x.size}]"
    for opcode in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder"):
        actual, expected = both(f"{shape} {opcode}({shape} p, {shape} q)", x, y)
        assert_same(actual, expected, f"{name} {opcode}")
    for order in ("direction=LT", "direction=GE, type=TOTALORDER"):
        text = f"pred[{x.size}] compare({shape} p, {shape} q), {order}"
        if name != "f8e8m0fnu" or "TOTAL" not in order:
            actual, expected = both(text, x, y)
            numbers = ~(np.isnan(x.astype("f4")) | np.isnan(y.astype("f4")))
            assert np.array_equal(actual[numbers], expected[numbers]), (name, order)
    for opcode in ("negate", "abs", "floor", "sqrt"):
        actual, expected = both(f"{shape} {opcode}({shape} p)", x)
        assert_same(actual, expected, f"{name} {opcode}")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "instruction",
    [
        "u8[5,7,4] bitcast-convert(f32[5,7] x)",
        "f32[5,7] bitcast-convert(u8[5,7,4] x)",
        "f64[33] bitcast-convert(s32[33,2] x)",
        "s16[33,4] bitcast-convert(f64[33] x)",
        "bf16[33,2] bitcast-convert(f32[33] x)",
        "u4[33,2] bitcast-convert(u8[33] x)",
        "u8[33] bitcast-convert(u4[33,2] x)",
        "u32[33] bitcast-convert(s4[33,8] x)",
        "s8[33] bitcast-convert(f8e5m2[33] x)",
        "u8[4] bitcast-convert(f32[] x)",
        "s64[] bitcast-convert(f32[2] x)",
        "pred[33] bitcast-convert(s8[33] x)",
        "u32[67] bitcast(f32[67] x)",
        *(
            f"{t}[67] reduce-precision({t}[67] x), exponent_bits={e}, mantissa_bits={m}"
            for t in ("f32", "f64", "bf16", "f16")
            for e, m in ((8, 7), (5, 10), (5, 2), (11, 52), (8, 23), (4, 3))
        ),
        *(f"{t}[67] mulhi({t}[67] x, {t}[67] y)" for t in ("s32", "u32", "s64", "u64", "s8")),
    ],
)
def test_bits_are_the_interpreters(instruction: str) -> None:
    module = mlirhlo.parse(instruction)
    module.verify()
    rng = np.random.default_rng(len(instruction))
    arguments = [draw(rng, str(p.shape).split("{")[0]) for p in module.hlo.entry.parameters]
    actual, expected = both(instruction, *arguments)
    assert_same(actual, expected, instruction)


COMPLEX: dict[str, tuple[float, float]] = {
    "add": (0, 0),
    "subtract": (0, 0),
    "negate": (0, 0),
    "multiply": (2, 2),
    "divide": (0.1, 2),
    "abs": (0.1, 2),
    "sign": (0.1, 3),
    "sqrt": (0.1, 3),
    "rsqrt": (0.1, 4),
    "exponential": (0.1, 4),
    "exponential-minus-one": (0.1, 5),
    "log": (0.1, 4),
    "log-plus-one": (0.1, 4),
    "logistic": (0.1, 6),
    "tanh": (0.1, 6),
    "tan": (0.1, 6),
    "sine": (0.1, 5),
    "cosine": (0.1, 5),
    "cbrt": (0.1, 5),
    "asin": (0.1, 6),
    "acos": (0.1, 6),
    "atan": (0.1, 6),
    "asinh": (0.1, 6),
    "acosh": (0.1, 6),
    "atanh": (0.1, 6),
    "power": (1, 300),
}
"""Relative distance from the interpreter, in epsilons of c64 and c128."""


def complex_numbers(dtype: Any, seed: int) -> Array:
    """Of all sizes and on the axes."""
    rng = np.random.default_rng(seed)
    count = 1500
    axes = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0])
    grid = np.array(np.meshgrid(axes, axes)).reshape(2, -1)
    result = np.empty(grid.shape[1] + 3 * count, dtype)
    sizes = 10.0 ** rng.uniform(-9, 1, count)
    result.real = np.concatenate(
        [grid[0], rng.normal(size=count) * 4, sizes, 1 + rng.normal(size=count) * 1e-3]
    )
    result.imag = np.concatenate(
        [grid[1], rng.normal(size=count) * 4, rng.normal(size=count) * sizes[::-1], sizes * 1e-2]
    )
    return result


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("element", "dtype"), [("c64", np.complex64), ("c128", np.complex128)])
@pytest.mark.parametrize("opcode", COMPLEX)
def test_complex_functions(opcode: str, element: str, dtype: Any) -> None:
    x = complex_numbers(dtype, 1)
    arguments = [x]
    if opcode in ("add", "subtract", "multiply", "divide", "power"):
        arguments.append(complex_numbers(dtype, 2)[::-1].copy())
    result = {"c64": "f32", "c128": "f64"}[element] if opcode == "abs" else element
    operands = ", ".join(f"{element}[{x.size}] p{i}" for i in range(len(arguments)))
    actual, expected = both(f"{result}[{x.size}] {opcode}({operands})", *arguments)
    numbers = np.isfinite(expected)
    a, e = actual[numbers].astype(complex), expected[numbers].astype(complex)
    size = np.maximum(np.abs(e), np.finfo(dtype).tiny)
    off = np.abs(a - e) / size / np.finfo(dtype).eps
    worst = int(np.argmax(off))
    where = [v[numbers][worst] for v in arguments]
    assert off[worst] <= COMPLEX[opcode][dtype is np.complex128], (
        opcode,
        where,
        a[worst],
        e[worst],
    )
    for part in ("real", "imag"):
        p, q = getattr(actual, part)[~numbers], getattr(expected, part)[~numbers]
        assert np.array_equal(np.isnan(p), np.isnan(q)), (opcode, part)
        assert np.array_equal(np.isinf(p), np.isinf(q)), (opcode, part)


def test_complex_products_and_quotients_of_infinities() -> None:
    ends = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan])
    grid = np.array(np.meshgrid(ends, ends, ends, ends)).reshape(4, -1)
    x = np.empty(grid.shape[1], np.complex64)
    y = x.copy()
    x.real, x.imag, y.real, y.imag = grid
    for opcode in ("divide", "maximum", "minimum"):
        actual, expected = both(f"c64[{x.size}] {opcode}(c64[{x.size}] p, c64[{x.size}] q)", x, y)
        assert np.array_equal(actual.real, expected.real, equal_nan=True), opcode
        assert np.array_equal(actual.imag, expected.imag, equal_nan=True), opcode
