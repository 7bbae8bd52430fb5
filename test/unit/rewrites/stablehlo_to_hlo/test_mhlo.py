"""Ops of mhlo that front ends mix into StableHLO: read, printed, converted, run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mlirhlo.formats.stablehlo import parse_module, print_module
from mlirhlo.interp.engine import Interpreter
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

X = np.array([0.5, -0.25, 0.75, 0.0], np.float32)


def program(body: str, results: str) -> str:
    return f"module {{\n  func.func @main(%arg0: tensor<4xf32>) -> {results} {{\n    {body}\n  }}\n}}\n"


def run(text: str) -> Any:
    return Interpreter(convert_to_hlo(parse_module(text))).run([X])


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("copy", lambda x: x),
        ("erf", math.erf),
        ("acos", math.acos),
        ("asin", math.asin),
        ("asinh", math.asinh),
        ("atanh", math.atanh),
        ("cosh", math.cosh),
        ("sinh", math.sinh),
    ],
)
def test_functions(op: str, function: Any) -> None:
    body = f"%0 = mhlo.{op} %arg0 : tensor<4xf32>\n    return %0 : tensor<4xf32>"
    text = program(body, "tensor<4xf32>")
    assert print_module(parse_module(text)) == text
    want = np.array([function(float(x)) for x in X], np.float32)
    np.testing.assert_allclose(run(text), want, 1e-6, 1e-7)


@pytest.mark.parametrize("largest", ["true", "false"])
def test_topk(largest: str) -> None:
    results = "(tensor<2xf32>, tensor<2xi32>)"
    text = program(
        f"%values, %indices = mhlo.topk(%arg0, k = 2, largest = {largest}) : tensor<4xf32> -> {results}\n"
        "    return %values, %indices : tensor<2xf32>, tensor<2xi32>",
        results,
    )
    values, indices = run(text)
    order = np.argsort(-X if largest == "true" else X, kind="stable")[:2]
    assert indices.tolist() == order.tolist()
    assert values.tolist() == X[order].tolist()


def test_copy_is_a_copy() -> None:
    text = program(
        '%0 = "mhlo.copy"(%arg0) <{cross_program_prefetch_index = 0 : i32}> :'
        " (tensor<4xf32>) -> tensor<4xf32>\n    return %0 : tensor<4xf32>",
        "tensor<4xf32>",
    )
    module = parse_module(text)
    assert print_module(parse_module(print_module(module))) == print_module(module)
    opcodes = [op.name for op in convert_to_hlo(module).walk()]
    assert opcodes.count("hlo.copy") == 1
