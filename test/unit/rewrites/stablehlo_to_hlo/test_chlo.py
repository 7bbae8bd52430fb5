"""CHLO expansions: the arithmetic that XLA writes, op by op, and the values it computes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mlirhlo
from mlirhlo.formats.hlo_text import print_module
from mlirhlo.formats.stablehlo import parse_module
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

REAL = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cosh", "digamma",
    "erf", "erf_inv", "erfc", "is_inf", "is_neg_inf", "is_pos_inf", "lgamma", "next_after",
    "polygamma", "sinh", "square", "tan", "zeta",
]  # fmt: skip
COMPLEX = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "square", "tan",
]  # fmt: skip
BINARY = {"next_after", "polygamma", "zeta"}
CASES = [(f"chlo.{op}", t) for op in REAL for t in ("f32", "f64", "bf16", "f16")]
CASES += [(f"chlo.{op}", t) for op in COMPLEX for t in ("complex<f32>", "complex<f64>")]
CASES += [
    (f"stablehlo.{op}", t)
    for op in ("exponential", "log", "log_plus_one", "sqrt")
    for t in ("complex<f32>", "complex<f64>")
]


def program(op: str, type_: str, size: int = 4) -> str:
    given = f"tensor<{size}x{type_}>"
    wanted = f"tensor<{size}xi1>" if "is_" in op else given
    count = 2 if op.removeprefix("chlo.") in BINARY else 1
    names = ["%a", "%b"][:count]
    arguments = ", ".join(f"{n}: {given}" for n in names)
    types = ", ".join([given] * count)
    line = f'%r = "{op}"({", ".join(names)}) : ({types}) -> {wanted}'
    return f"func.func public @main({arguments}) -> {wanted} {{\n{line}\nreturn %r : {wanted}\n}}"


Row = tuple[str, str, str, tuple[str, ...]]


def rows(text: str) -> tuple[dict[str, Row], str]:
    """Instructions by name (opcode, shape, value of a constant, operands), and the root's name."""
    found: dict[str, Row] = {}
    root = ""
    for line in text.splitlines():
        match = re.match(r"\s+(ROOT )?%([\w.\-]+) = (\S+) ([\w\-]+)\((.*)\)", line)
        if match is None:
            continue
        operands = tuple(re.findall(r"%([\w.\-]+)", match[5]))
        value = match[5] if match[4] in ("constant", "parameter") else ""
        found[match[2]] = (match[4], match[3], value, operands)
        root = match[2] if match[1] else root
    return found, root


def same(ours: str, theirs: str) -> bool:
    """Whether two computations are one graph, whatever the names and the order."""
    (a, first), (b, second) = rows(ours), rows(theirs)
    assert first
    seen: set[tuple[str, str]] = set()
    pending = [(first, second)]
    while pending:
        pair = pending.pop()
        if pair in seen:
            continue
        seen.add(pair)
        x, y = a[pair[0]], b[pair[1]]
        if x[:3] != y[:3] or len(x[3]) != len(y[3]):
            return False
        pending += zip(x[3], y[3], strict=True)
    return len(seen) >= len(rows(theirs)[0])


@pytest.mark.oracle
@pytest.mark.parametrize(("op", "type_"), CASES)
def test_as_xla_expands(op: str, type_: str) -> None:
    from jaxlib import _hlo, _jax

    text = program(op, type_)
    proto = _jax.mlir.mlir_module_to_xla_computation(
        text, False, False
    ).as_serialized_hlo_module_proto()
    theirs = _hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string()
    assert same(print_module(convert_to_hlo(parse_module(text))), theirs)


VALUES = np.array([-2.5, -1.0, -0.3, 0.0, 0.2, 0.7, 1.0, 1.5, 3.0, 8.5], np.float64)

CLOSED = {
    "chlo.acosh": np.arccosh,
    "chlo.asinh": np.arcsinh,
    "chlo.atan": np.arctan,
    "chlo.cosh": np.cosh,
    "chlo.sinh": np.sinh,
    "chlo.square": np.square,
}


@pytest.mark.parametrize("op", CLOSED)
def test_values(op: str) -> None:
    got = mlirhlo.parse(program(op, "f64", VALUES.size))(VALUES)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(got, CLOSED[op](VALUES), rtol=4e-15, atol=1e-15)


def test_special_values() -> None:
    gamma = mlirhlo.parse(program("chlo.lgamma", "f64", 4))
    np.testing.assert_allclose(
        gamma(np.array([0.5, 4.0, 171.0, -0.5])),
        [0.5723649429247001, 1.791759469228055, 706.5730622457874, 1.2655121234846454],
        rtol=1e-13,
    )
    psi = mlirhlo.parse(program("chlo.digamma", "f64", 3))
    found = psi(np.array([1.0, 0.5, -1.0]))
    np.testing.assert_allclose(found[:2], [-0.5772156649015329, -1.9635100260214235], rtol=1e-13)
    assert np.isnan(found[2])
    zeta = mlirhlo.parse(program("chlo.zeta", "f64", 3))
    found = zeta(np.array([2.0, 4.0, 1.0]), np.array([1.0, 1.0, 1.0]))
    np.testing.assert_allclose(found[:2], [np.pi**2 / 6, np.pi**4 / 90], rtol=1e-14)
    assert np.isinf(found[2])


def test_complex_values() -> None:
    points = np.array([0.5 + 2j, -3 - 1e-3j, 1e150 + 1e150j, 2 - 0j], np.complex128)
    for op, function in (("acos", np.arccos), ("asinh", np.arcsinh), ("atanh", np.arctanh)):
        got = mlirhlo.parse(program(f"chlo.{op}", "complex<f64>", 4))(points)
        np.testing.assert_allclose(got, function(points), rtol=1e-13)
