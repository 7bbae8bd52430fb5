"""Every element-wise opcode × element type on special and random values, against XLA:CPU.

MLIRHLO_SEED and MLIRHLO_DIFFERENTIAL (a factor) make other and longer runs of the same tests.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from xla_execution import (
    SEED,
    SIZE,
    Refusal,
    differences,
    program,
    random_values,
    run_all,
    special_values,
    type_of,
)

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.table import ELEMENTWISE_ROWS
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module

pytestmark = pytest.mark.oracle
pytest.importorskip("jaxlib")

TYPES = [
    row.name
    for row in PRIMITIVE_TYPES.values()
    # jaxlib reads s1, u1 as pred and does not know f6.
    if row.is_array and row.bits != 1 and not row.name.startswith("f6")
] + ["pred"]
QUICK = ("f32", "bf16", "s32", "pred")
"""The others are marked slow."""
EACH_TYPE = [t if t in QUICK else pytest.param(t, marks=pytest.mark.slow) for t in TYPES]
UNARY = [
    row.name
    for row in ELEMENTWISE_ROWS
    if row.arity == 1 and row.name not in ("convert", "copy", "reduce-precision") and not row.newer
]
BINARY = [
    row.name
    for row in ELEMENTWISE_ROWS
    if row.arity == 2 and row.name not in ("compare", "complex", "stochastic-convert")
]
APPROXIMATE = frozenset(
    row.name for row in ELEMENTWISE_ROWS if row.transcendental and row.name != "sqrt"
)
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def known_difference(opcode: str, type_: PrimitiveType, values: list[np.ndarray]) -> np.ndarray:
    """Places where XLA:CPU is wrong or its result is its own affair."""
    first = values[0]
    nothing = np.zeros(first.shape, np.bool_)
    if opcode == "power" and type_.is_integer:
        # XLA looks at six bits of the exponent.
        exponent = values[1].astype(np.int64 if type_.bits < 64 else values[1].dtype)
        return (exponent < 0) | (exponent > 63) if type_.is_signed else exponent > 63
    if opcode == "popcnt" and type_.is_signed and type_.bits < 8:
        return first.astype(np.int8) < 0  # sign-extended bits are counted
    if type_.name == "f4e2m1fn":
        return ~nothing if opcode in ("sqrt", "divide", "remainder", "power", "log") else nothing
    if type_.name == "f8e8m0fnu":
        # Its least number is a denormal f32, which XLA:CPU takes for zero.
        return np.any([v.astype(np.float32) < 2.0**-126 for v in values], axis=0)
    if type_.is_complex:
        return _known_complex(opcode, values)
    return nothing


def _known_complex(opcode: str, values: list[np.ndarray]) -> np.ndarray:
    x = values[0].astype(np.complex128)
    if opcode in ("sqrt", "rsqrt"):
        return (x.real < 0) & (x.imag == 0) & np.signbit(x.imag)  # the wrong side of the cut
    if opcode == "atan2":  # beside a cut a rounding error decides the side
        y, z = (v.astype(np.complex128) for v in values)
        with np.errstate(all="ignore"):
            ratio = y / z
        on_cut = (np.abs(ratio.imag) < 1e-4 * np.abs(ratio.real)) | ~np.isfinite(ratio)
        return on_cut | (np.abs(ratio.real) < 1e-4 * np.abs(ratio.imag)) | (np.abs(y * z) == 0)
    if opcode == "power":  # parts overflow on the way
        return (np.abs(x) == 0) | (np.abs(values[1].astype(np.complex128)) > 100)
    return np.zeros(x.shape, np.bool_)


def ulps(opcode: str, type_: PrimitiveType) -> float:
    """How far XLA's own approximations may be from the rounded true value."""
    if type_.is_complex:
        return {"power": 3e4, "atan2": 3e4, "divide": 8.0, "multiply": 4.0}.get(opcode, 256.0)
    if type_.name == "f8e3m4" and opcode == "sqrt":
        return 1.0  # XLA rounds twice, by way of f16
    if opcode not in APPROXIMATE or not type_.is_float:
        return 0.0
    return 2.0 if type_.bits < 32 else 6.0


def check(cases: list[tuple[str, str]], type_: PrimitiveType, values: list[np.ndarray]) -> None:
    """Cases are (opcode, instruction); every one is run here and there."""
    shape = f"[{values[0].size}]"
    parameters = [type_.name + shape] * len(values)
    wanted = run_all([line for _, line in cases], parameters, values)
    problems: list[str] = []
    for (opcode, line), want in zip(cases, wanted, strict=True):
        try:
            got = run_module(parse_module(program([line], parameters)), values, check=True)[0]
        except HloError as problem:
            if not isinstance(want, Refusal):
                problems.append(f"{line}: refused here: {problem}")
            continue
        if isinstance(want, Refusal):
            continue
        result = type_of(line.split("[")[0])
        # XLA rounds every step of a logistic in f16 to f16.
        floor = 2.0**-16 if opcode == "logistic" else 0.0
        wrong = differences(got, want, result, ulps(opcode, type_), floor)
        known = known_difference(opcode, type_, values)
        if result.name == "f8e8m0fnu":
            known |= got.astype(np.float32) < 2.0**-126
        wrong = wrong[~known[wrong]]
        if wrong.size:
            at = wrong[0]
            given = ", ".join(str(v[at]) for v in values)
            problems.append(
                f"{line}: {wrong.size} differ, first ({given}): {got[at]} here, {want[at]} in XLA"
            )
    assert not problems, f"seed {SEED}:\n" + "\n".join(problems)


@pytest.mark.parametrize("name", EACH_TYPE)
def test_unary(name: str) -> None:
    type_, rng = type_of(name), np.random.default_rng(SEED)
    values = np.concatenate([special_values(type_), random_values(type_, [100 * SIZE], rng)])

    def shape(opcode: str) -> str:
        if opcode == "is-finite":
            return f"pred[{values.size}]"
        real = opcode in ("abs", "real", "imag") and type_.is_complex
        return f"{type_.real.name if real else name}[{values.size}]"

    check([(o, f"{shape(o)} {o}(p0)") for o in UNARY], type_, [values])


@pytest.mark.parametrize("name", EACH_TYPE)
def test_binary_and_compare(name: str) -> None:
    type_, rng = type_of(name), np.random.default_rng(SEED + 1)
    special = special_values(type_)
    first, second = (grid.reshape(-1) for grid in np.meshgrid(special, special))
    extra = [random_values(type_, [100 * SIZE], rng) for _ in range(2)]
    values = [np.concatenate([a, b]) for a, b in zip((first, second), extra, strict=True)]
    size = values[0].size
    cases = [(o, f"{name}[{size}] {o}(p0, p1)") for o in BINARY]
    directions = DIRECTIONS[:2] if type_.is_complex else DIRECTIONS
    cases += [("compare", f"pred[{size}] compare(p0, p1), direction={d}") for d in directions]
    if type_.is_float and type_.bits >= 16:
        cases += [
            ("compare", f"pred[{size}] compare(p0, p1), direction={d}, type=TOTALORDER")
            for d in directions
        ]
    check(cases, type_, values)


@pytest.mark.parametrize("name", EACH_TYPE)
def test_three_operands(name: str) -> None:
    type_, rng = type_of(name), np.random.default_rng(SEED + 2)
    special = special_values(type_)
    picked = [rng.choice(special, 400 * SIZE) for _ in range(3)]
    size = picked[0].size
    cases = [("clamp", f"{name}[{size}] clamp(p0, p1, p2)")] if not type_.is_complex else []
    check(cases, type_, picked)


@pytest.mark.parametrize("name", EACH_TYPE)
def test_convert_to_every_type(name: str) -> None:
    type_, rng = type_of(name), np.random.default_rng(SEED + 3)
    values = np.concatenate([special_values(type_), random_values(type_, [100 * SIZE], rng)])
    if type_.name == "f8e8m0fnu":
        values = values[values.astype(np.float32) >= 2.0**-126]
    targets = [t for t in TYPES if t != name]
    size = values.size
    lines = [f"{t}[{size}] convert(p0)" for t in targets]
    wanted = run_all(lines, [f"{name}[{size}]"], [values])
    problems: list[str] = []
    for target, line, want in zip(targets, lines, wanted, strict=True):
        if isinstance(want, Refusal):
            continue
        module = parse_module(program([line], [f"{name}[{size}]"]))
        got = run_module(module, [values], check=True)[0]
        wrong = differences(got, want, type_of(target))
        if name == "f4e2m1fn" and type_of(target).is_integer:
            wrong = wrong[np.abs(values.astype(np.float32))[wrong] < 6]  # taken for infinity
        if target == "f4e2m1fn" and not type_.is_integer:
            wrong = wrong[~np.isnan(values.astype(np.complex128).real)[wrong]]
        if wrong.size:
            at = wrong[0]
            problems.append(
                f"{line} of {values[at]} ({name}): {got[at]} here, {want[at]} in XLA ({wrong.size})"
            )
    assert not problems, f"seed {SEED}:\n" + "\n".join(problems)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "exponent", "mantissa"),
    list(itertools.product(["f32", "f64", "bf16", "f16"], [2, 5, 8], [0, 2, 7, 10, 23])),
)
def test_reduce_precision(name: str, exponent: int, mantissa: int) -> None:
    type_, rng = type_of(name), np.random.default_rng(SEED + 4)
    values = np.concatenate([special_values(type_), random_values(type_, [50 * SIZE], rng)])
    line = (
        f"{name}[{values.size}] reduce-precision(p0), "
        f"exponent_bits={exponent}, mantissa_bits={mantissa}"
    )
    check([("reduce-precision", line)], type_, [values])
