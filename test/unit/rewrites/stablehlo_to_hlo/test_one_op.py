"""Programs of one op, every element type: our conversion and XLA's give the same text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from mlirhlo.formats.hlo_text import PrintOptions, print_module
from mlirhlo.formats.stablehlo import parse_module
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

FLOATS = ("bf16", "f16", "f32", "f64", "f8E4M3FN", "f8E5M2", "f8E4M3", "f8E3M4", "f4E2M1FN")
INTEGERS = ("i2", "i4", "i8", "i16", "i32", "i64", "ui2", "ui4", "ui8", "ui16", "ui32", "ui64")
COMPLEX = ("complex<f32>", "complex<f64>")
TYPES = (*FLOATS, *INTEGERS, *COMPLEX, "i1")
FLOAT_UNARY = [
    "abs", "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor", "log",
    "log_plus_one", "logistic", "negate", "round_nearest_afz", "round_nearest_even",
    "rsqrt", "sign", "sine", "sqrt", "tan", "tanh",
]  # fmt: skip
INTEGER_UNARY = ("count_leading_zeros", "not", "popcnt", "negate", "sign", "abs")
BINARY = ("add", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract")
BITWISE = ("and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical")


def function(arguments: str, result: str, body: str) -> str:
    head = f"func.func public @main({arguments}) -> {result}"
    return f"module @m {{ {head} {{\n{body}\nreturn %r : {result}\n}} }}"


def unary(op: str, type_: str, result: str | None = None) -> str:
    given, wanted = f"tensor<4x{type_}>", f"tensor<4x{result or type_}>"
    return function(f"%a: {given}", wanted, f'%r = "stablehlo.{op}"(%a) : ({given}) -> {wanted}')


def binary(op: str, type_: str) -> str:
    t = f"tensor<4x{type_}>"
    return function(f"%a: {t}, %b: {t}", t, f"%r = stablehlo.{op} %a, %b : {t}")


def constant(type_: str, value: int) -> str:
    if type_ == "i1":
        return "true" if value else "false"
    if type_ in COMPLEX:
        return f"({value}.0,0.0)"
    return f"{value}.0" if type_ in FLOATS else str(value)


def with_constant(op: str, type_: str, value: int, *, left: bool) -> str:
    t = f"tensor<4x{type_}>"
    order = "%c, %a" if left else "%a, %c"
    made = f"%c = stablehlo.constant dense<{constant(type_, value)}> : {t}"
    return function(f"%a: {t}", t, f"{made}\n%r = stablehlo.{op} {order} : {t}")


def programs() -> Iterator[tuple[str, str]]:
    for type_ in FLOATS:
        for op in FLOAT_UNARY:
            yield f"{op} {type_}", unary(op, type_)
        yield f"is_finite {type_}", unary("is_finite", type_, "i1")
    for type_ in (*INTEGERS, "i1"):
        for op in INTEGER_UNARY if type_ != "i1" else ("not",):
            if not (type_.startswith("ui") and op in ("sign", "abs")):
                yield f"{op} {type_}", unary(op, type_)
        for op in BITWISE if type_ != "i1" else BITWISE[:3]:
            yield f"{op} {type_}", binary(op, type_)
            yield f"{op} 0 {type_}", with_constant(op, type_, 0, left=False)
    for type_ in (*FLOATS, *INTEGERS):
        for op in BINARY:
            yield f"{op} {type_}", binary(op, type_)
            for value in (0, 1):
                for left in (False, True):
                    if not (op in ("divide", "remainder") and value == 0 and type_ in INTEGERS):
                        yield (
                            f"{op} {value} {left} {type_}",
                            with_constant(op, type_, value, left=left),
                        )
    for given in TYPES:
        for wanted in TYPES:
            yield f"convert {given} {wanted}", unary("convert", given, wanted)


@pytest.mark.oracle
@pytest.mark.slow
def test_every_op_and_type() -> None:
    from jaxlib import _hlo, _jax

    options = _hlo.HloPrintOptions()
    options.print_metadata = False
    compared, wrong = 0, list[str]()
    for name, program in programs():
        proto = _jax.mlir.mlir_module_to_xla_computation(
            program, False, False
        ).as_serialized_hlo_module_proto()
        theirs = _hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options)
        ours = print_module(convert_to_hlo(parse_module(program)), PrintOptions())
        ours = re.sub(r", metadata=\{[^}]*\}", "", ours)
        compared += 1
        if ours.strip() != theirs.strip():
            wrong.append(f"{name}:\n{theirs}\n{ours}")
    assert compared > 1000
    assert not wrong, f"{len(wrong)} of {compared}:\n" + "\n".join(wrong[:3])
