"""Quantized programs: what StableHLO's own pass makes of them gives the same integers as ours.

Products with a scale other than 1 are left out: StableHLO's pass cuts them off towards zero, ours
rounds as the specification says (`test_values`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mlirhlo.formats.stablehlo import parse_module
from mlirhlo.formats.vhlo import serialize_artifact
from mlirhlo.interp.engine import Interpreter
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

pytestmark = pytest.mark.oracle

TENSOR = "!quant.uniform<i8:f32, 0.5:3>"
OTHER = "!quant.uniform<i8:f32, 0.3:-7>"
AXIS = "!quant.uniform<i8:f32:1, {0.5:3,0.25:-4,1.5}>"
AXIS_OTHER = "!quant.uniform<i8:f32:1, {0.3:3,0.2:-4,0.7:1}>"
WEIGHTS = "!quant.uniform<i8:f32, 0.3>"
WIDE = "!quant.uniform<i32:f32, 0.15:5>"
UNSIGNED = "!quant.uniform<u8:f32, 0.5:3>"
PIPELINE = "builtin.module(func.func(stablehlo-legalize-quant-to-math,chlo-legalize-to-stablehlo))"


def program(op: str, given: list[str], result: str, attributes: str = "") -> str:
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(given))
    names = ", ".join(f"%a{i}" for i in range(len(given)))
    return (
        f"func.func @main({arguments}) -> {result} {{\n"
        f"%r = stablehlo.{op} {names}{attributes} : ({', '.join(given)}) -> {result}\n"
        f"return %r : {result}\n}}"
    )


def programs() -> Iterator[str]:
    f32 = "tensor<4x3xf32>"
    for q in (TENSOR, OTHER, AXIS, AXIS_OTHER, WIDE, UNSIGNED):
        t = f"tensor<4x3x{q}>"
        yield program("uniform_quantize", [f32], t)
        yield program("uniform_dequantize", [t], f32)
        for other in (TENSOR, OTHER, AXIS_OTHER, WIDE):
            yield program("uniform_quantize", [t], f"tensor<4x3x{other}>")
    for left, right, result in (
        (TENSOR, TENSOR, TENSOR),
        (TENSOR, OTHER, TENSOR),
        (OTHER, TENSOR, OTHER),
        (TENSOR, OTHER, "!quant.uniform<i8:f32, 0.7:1>"),
        (UNSIGNED, UNSIGNED, UNSIGNED),
    ):
        given = [f"tensor<4x3x{left}>", f"tensor<4x3x{right}>"]
        for op in ("add", "subtract", "multiply", "maximum", "divide", "atan2"):
            yield program(op, given, f"tensor<4x3x{result}>")
    for op in ("abs", "tanh", "negate", "floor", "exponential", "logistic", "sine", "rsqrt"):
        yield program(op, [f"tensor<4x3x{TENSOR}>"], f"tensor<4x3x{OTHER}>")
    numbers = ", contracting_dims = [1] x [0]"
    weights = f"tensor<5x3x{WEIGHTS}>"
    given = [f"tensor<4x5x{TENSOR}>", weights]
    yield program("dot_general", given, f"tensor<4x3x{WIDE}>", numbers)
    yield program("dot_general", ["tensor<4x5xf32>", weights], "tensor<4x3xf32>", numbers)


def theirs(text: str) -> str:
    """`text` after StableHLO's pass. The artifact makes the context load the quant dialect."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir, passmanager
    from jaxlib.mlir.dialects import stablehlo

    stablehlo.register_stablehlo_passes()
    context = mlir.make_ir_context()
    with context, ir.Location.unknown(context):
        artifact = serialize_artifact(parse_module(text))
        module: Any = stablehlo.deserialize_portable_artifact(context, artifact)
        passmanager.PassManager.parse(PIPELINE).run(module.operation)
        return str(module)


@pytest.mark.parametrize("text", list(programs()), ids=lambda t: t.split("\n")[1][5:90])
def test_same_values(text: str) -> None:
    ours = Interpreter(convert_to_hlo(parse_module(text)))
    other = Interpreter(convert_to_hlo(parse_module(theirs(text))))
    rng = np.random.default_rng(7)
    module = convert_to_hlo(parse_module(text))
    arguments: list[Any] = []
    for shape in parameter_shapes(module):
        if np.dtype(shape[1]).kind == "f":
            arguments.append((rng.standard_normal(shape[0]) * 30).astype(shape[1]))
        else:
            raw = rng.integers(-128, 128, shape[0])
            arguments.append(raw.astype(np.int8).astype(shape[1]))
    want, found = other.run(arguments), ours.run(arguments)
    assert np.asarray(found).dtype == np.asarray(want).dtype
    np.testing.assert_array_equal(found, want)


def parameter_shapes(module: Any) -> list[tuple[tuple[int, ...], Any]]:
    from mlirhlo.dialects.hlo.module import HloModule

    entry = HloModule(module).entry
    return [(tuple(p.shape.dimensions), p.shape.element_type.dtype) for p in entry.parameters]
