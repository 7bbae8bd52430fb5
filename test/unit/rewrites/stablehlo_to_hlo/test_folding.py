"""Ops of constants: folded where XLA's importer folds them, and to the same numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from mlirhlo.formats.hlo_text import PrintOptions, print_module
from mlirhlo.formats.stablehlo import parse_module
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

UNARY = (
    "abs", "cbrt", "ceil", "cosine", "count_leading_zeros", "exponential", "exponential_minus_one",
    "floor", "log", "log_plus_one", "logistic", "negate", "not", "popcnt", "round_nearest_afz",
    "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh",
)  # fmt: skip
BINARY = (
    "add", "and", "atan2", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder",
    "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor",
)  # fmt: skip
CONSTANTS = {
    "f32": (
        "0.0, -0.0, 1.5, -2.5, 0x7F800000, 0xFF800000, 0x7FC00000, 3.0e38, 1.0e-40, 0.5",
        "-0.0, 0.0, 3.0, 1.5, 2.0, 0.0, 1.0, 3.0e38, 1.0e-40, 0x7FC00000",
    ),
    "i8": ("0, 1, -1, -128, 127, 7, -7, 64, 3, -5", "1, -1, 1, -1, 1, 2, 2, 2, -2, 3"),
    "ui8": ("0, 1, 255, 128, 127, 7, 249, 64, 3, 5", "1, 255, 1, 255, 1, 2, 2, 2, 2, 3"),
    "i1": ("true, false, true, false", "true, true, false, false"),
}
SINGLE = ("0.0", "-0.0", "-1.0", "0x7F800000", "0xFF800000", "0x7FC00000", "1.0e-40", "100.0")


def program(op: str, element: str, *constants: str, to: str = "", properties: str = "") -> str:
    size = constants[0].count(",") + 1
    given, result = f"tensor<{size}x{element}>", f"tensor<{size}x{to or element}>"
    made = "\n".join(
        f"%c{i} = stablehlo.constant dense<[{text}]> : {given}" for i, text in enumerate(constants)
    )
    operands = ", ".join(f"%c{i}" for i in range(len(constants)))
    kinds = ", ".join([given] * len(constants))
    call = f'%0 = "stablehlo.{op}"({operands}) {properties} : ({kinds}) -> {result}'
    return f"func.func @main() -> {result} {{\n{made}\n{call}\nreturn %0 : {result}\n}}"


def programs() -> Iterator[str]:
    for element, both in CONSTANTS.items():
        for op in UNARY:
            yield program(op, element, both[0])
        for op in BINARY:
            if (op, element) != ("add", "i1"):  # XLA folds true + true to false, against the rules
                yield program(op, element, *both)
        for word in ("EQ", "NE", "LT", "LE", "GT", "GE"):
            direction = f"<{{comparison_direction = #stablehlo<comparison_direction {word}>}}>"
            yield program("compare", element, *both, to="i1", properties=direction)
        for to in ("f16", "bf16", "f64", "i32", "i8", "ui8", "i1", "ui16", "f8E4M3FN"):
            yield program("convert", element, both[0], to=to)
    for op in UNARY:
        for value in SINGLE:
            yield program(op, "f32", f"{value}, 1.0")


@pytest.mark.oracle
@pytest.mark.slow
def test_folds_as_the_importer_does() -> None:
    from jaxlib import _hlo, _jax

    options = _hlo.HloPrintOptions()
    options.print_metadata = False
    compared, wrong = 0, list[str]()
    for text in programs():
        try:
            computation = _jax.mlir.mlir_module_to_xla_computation(text, False, False)
        except Exception:  # noqa: BLE001  an element type that the op does not take
            continue
        proto = computation.as_serialized_hlo_module_proto()
        theirs = _hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options)
        ours = print_module(convert_to_hlo(parse_module(text)), PrintOptions())
        ours = re.sub(r", metadata=\{[^}]*\}", "", ours)
        compared += 1
        if ours.strip() != theirs.strip():
            wrong.append(f"{theirs}\n{ours}")
    assert compared > 250
    assert not wrong, f"{len(wrong)} of {compared}:\n" + "\n".join(wrong[:3])
