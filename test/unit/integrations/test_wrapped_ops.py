"""Custom calls that stand for ops become what XLA's importer makes of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mlirhlo.integrations.ir import module_of

pytestmark = pytest.mark.oracle

UNARY = (
    "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n"
    "  %0 = stablehlo.custom_call @mhlo.{name}(%a) {{{attributes}}}"
    " : (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}}"
)
TOP = (
    "func.func @main(%a: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>) {{\n"
    "  %0:2 = stablehlo.custom_call @mhlo.topk(%a) {{mhlo.attributes = {attributes}}}"
    " : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)\n"
    "  return %0#0, %0#1 : tensor<2xf32>, tensor<2xi32>\n}}"
)
RAGGED = (
    "func.func @main(%a: tensor<6x4xf32>, %b: tensor<3x4x5xf32>, %c: tensor<3xi32>)"
    " -> tensor<6x5xf32> {{\n  %0 = stablehlo.custom_call @chlo.ragged_dot(%a, %b, %c)"
    " {{mhlo.attributes = {{{precision}ragged_dot_dimension_numbers = [{lists}]}}}}"
    " : (tensor<6x4xf32>, tensor<3x4x5xf32>, tensor<3xi32>) -> tensor<6x5xf32>\n"
    "  return %0 : tensor<6x5xf32>\n}}"
)
NONE, ZERO, ONE = "dense<> : tensor<0xi64>", "dense<0> : tensor<1xi64>", "dense<1> : tensor<1xi64>"
LISTS = ", ".join((NONE, NONE, ONE, ONE, ZERO, ZERO))
PRECISE = 'precision_config = ["DEFAULT", "HIGHEST"], '
WHOLE = "mhlo.attributes = {}, mhlo.version = 1 : i64"
CASES = [
    *(UNARY.format(name=n, attributes=WHOLE) for n in ("erf", "tan", "tanh")),
    UNARY.format(name="erf", attributes="mhlo.version = 1 : i64"),
    TOP.format(attributes="{k = 2 : i64, largest = true}"),
    TOP.format(attributes="{k = 2 : i64, largest = false}"),
    TOP.format(attributes="{k = 2 : i64}"),
    RAGGED.format(precision=PRECISE, lists=LISTS),
    RAGGED.format(precision="", lists=LISTS),
]


def opcodes(text: str) -> list[str]:
    return sorted(re.findall(r" = [^=]*?[\]})] ([a-z][a-z0-9-]*)\(", text))


@pytest.mark.parametrize("text", CASES, ids=range(len(CASES)))
def test_as_xla_imports_it(text: str) -> None:
    jax = pytest.importorskip("jaxlib._jax")
    theirs = jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
    expected = opcodes(theirs.as_hlo_text())
    assert expected
    assert opcodes(module_of(text).as_text()) == expected


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh"])
def test_functions_are_expanded(name: str) -> None:
    module = module_of(UNARY.format(name=name, attributes=WHOLE))
    assert "custom-call" not in opcodes(module.as_text())
    x = np.array([0.25, 0.5, 0.75, 0.9], np.float32) + (name == "acosh")
    np.testing.assert_allclose(
        module(x), getattr(np, f"arc{name[1:]}" if name[0] == "a" else name)(x), 1e-5
    )


def test_ragged_dot() -> None:
    module = module_of(RAGGED.format(precision=PRECISE, lists=LISTS))
    assert (
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
        "rhs_group_dims={0}, operand_precision={default,highest}"
    ) in module.as_text()
    rng = np.random.default_rng(0)
    rows, groups = rng.normal(size=(6, 4)).astype("f4"), rng.normal(size=(3, 4, 5)).astype("f4")
    found = module(rows, groups, np.array([2, 1, 3], "i4"))
    expected = [row @ groups[group] for row, group in zip(rows, (0, 0, 1, 2, 2, 2), strict=True)]
    np.testing.assert_allclose(found, np.stack(expected), 1e-5)


@pytest.mark.parametrize(
    ("precision", "lists"),
    [("", NONE), ("", LISTS.replace(ONE, "1")), (PRECISE.replace("HIGHEST", "MOST"), LISTS)],
)
def test_what_is_no_ragged_dot_stays_a_call(precision: str, lists: str) -> None:
    text = module_of(RAGGED.format(precision=precision, lists=lists)).as_text()
    assert 'custom_call_target="chlo.ragged_dot"' in text
