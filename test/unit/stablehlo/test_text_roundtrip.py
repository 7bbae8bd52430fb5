"""Programs come back as they were: the corpus, and every op in both forms."""

# ruff: noqa: ISC004 - lines of text, each in pieces

from __future__ import annotations

from pathlib import Path

import pytest
from support import CORPUS, needs_shared
from unit.stablehlo.op_texts import LINES, PROGRAMS

from mlirhlo.dialects import chlo, stablehlo
from mlirhlo.formats import load, to_bytes
from mlirhlo.formats.stablehlo import parse_module, print_module

FILES = sorted(CORPUS.glob("programs/*/*.stablehlo.mlir"))


def test_every_op_has_a_line() -> None:
    text = " ".join(LINES)
    missing = [n for n in (*stablehlo.ROWS, *chlo.ROWS) if f'"{n}"' not in text]
    assert not missing


@needs_shared
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name.removesuffix(".stablehlo.mlir"))
def test_corpus_is_printed_as_jax_printed_it(path: Path) -> None:
    text = path.read_text()
    module = parse_module(text, path.name)
    with_places = " loc(" in text
    assert print_module(module, debug_info=with_places) == text
    generic = print_module(module, generic=True, debug_info=with_places)
    assert print_module(parse_module(generic), debug_info=with_places) == text


@pytest.mark.parametrize("text", PROGRAMS, ids=range(len(PROGRAMS)))
def test_both_forms_of_every_op_come_back(text: str) -> None:
    module = parse_module(text)
    generic = print_module(module, generic=True)
    assert print_module(parse_module(generic), generic=True) == generic
    pretty = print_module(module)
    assert print_module(parse_module(pretty)) == pretty
    assert print_module(parse_module(generic)) == pretty


def test_quantized_types_are_spelled_as_the_quant_dialect_does() -> None:
    for given, printed in (
        ("!quant.uniform<i8:f32, 0.5:3>", "!quant.uniform<i8:f32, 5.000000e-01:3>"),
        ("!quant.uniform<u8:f32, 34.0>", "!quant.uniform<u8:f32, 3.400000e+01>"),
        ("!quant.uniform<i8<-7:7>:f32, 1.0>", "!quant.uniform<i8<-7:7>:f32, 1.000000e+00>"),
        (
            "!quant.uniform<i8:f32:1, {0.5, 0.25:-3}>",
            "!quant.uniform<i8:f32:1, {5.000000e-01,2.500000e-01:-3}>",
        ),
        (
            "!quant.uniform<i8:f32:{0:1, 1:2}, {{2.0:1, 3.0}, {4.0, 5.0}}>",
            "!quant.uniform<i8:f32:{0:1, 1:2},"
            " {{2.000000e+00:1, 3.000000e+00}, {4.000000e+00, 5.000000e+00}}>",
        ),
        ("!quant.any<i8:f32>", "!quant.any<i8:f32>"),
        ("!quant.calibrated<f32<-0.5:1.5>>", "!quant.calibrated<f32<-5.000000e-01:1.500000e+00>>"),
    ):
        text = f"func.func private @f(tensor<2x2x{given}>)"
        assert f"tensor<2x2x{printed}>" in print_module(parse_module(text))


FORMER = (
    (
        "%0 = stablehlo.convert(%a) : (tensor<4xf32>) -> tensor<4xf64>",
        "stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf64>",
    ),
    (
        '%0 = "stablehlo.slice"(%a) {start_indices = dense<0> : tensor<1xi64>, limit_indices ='
        " dense<4> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}"
        " : (tensor<4xf32>) -> tensor<4xf32>",
        "stablehlo.slice %arg0 [0:4]",
    ),
    (
        '%0 = "stablehlo.broadcast_in_dim"(%a) {broadcast_dimensions = dense<1> : tensor<1xi64>}'
        " : (tensor<4xf32>) -> tensor<2x4xf32>",
        "stablehlo.broadcast_in_dim %arg0, dims = [1]",
    ),
    (
        "%0 = stablehlo.compare  LT, %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
        "stablehlo.compare LT, %arg0, %arg0 :",
    ),
    (
        '%0 = "stablehlo.reverse"(%a) {dimensions = dense<> : tensor<0xi64>}'
        " : (tensor<4xf32>) -> tensor<4xf32>",
        "stablehlo.reverse %arg0, dims = [] :",
    ),
    (
        '%0 = "stablehlo.fft"(%c) {fft_type = #stablehlo<fft_type FFT>,'
        " fft_length = dense<4> : tensor<1xi64>}"
        " : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>",
        "stablehlo.fft %arg1, type = FFT, length = [4]",
    ),
    (
        "%0 = stablehlo.iota dim = 0 : tensor<?xi32, #stablehlo.type_extensions<bounds = [4]>>",
        "tensor<?xi32, #stablehlo.bounds<4>>",
    ),
)


@pytest.mark.parametrize("line, printed", FORMER)
def test_former_spellings_are_read(line: str, printed: str) -> None:
    text = f"func.func @f(%a: tensor<4xf32>, %c: tensor<4xcomplex<f32>>) {{\n  {line}\n  return\n}}"
    assert printed in print_module(parse_module(text))


def test_attributes_of_unknown_dialects_are_kept() -> None:
    body = (
        'module attributes {a.b = #tf.shape<2x"x>">, a.c = #foo<bar [1, 2]>, a.d = !t.u<v>} {\n}\n'
    )
    assert print_module(parse_module(body)) == body


def test_resources_are_kept() -> None:
    text = (
        "module {\n  func.func @f() {\n"
        "    %cst = stablehlo.constant dense_resource<r> : tensor<2xf32>\n    return\n  }\n}\n\n"
        '{-#\n  dialect_resources: {\n    builtin: {\n      r: "0x040000000000803F00000040"\n'
        "    }\n  }\n#-}\n"
    )
    assert print_module(parse_module(text)) == text


def test_load_tells_the_dialects_apart() -> None:
    text = PROGRAMS[0].encode()
    loaded = load(text)
    assert next(iter(loaded.module.ops)).name == "func.func"
    assert load(to_bytes(loaded.module, "mlir")).module.is_structurally_equivalent(loaded.module)
    hlo = load(b"ENTRY e { ROOT x = f32[] parameter(0) }").module
    again = load(to_bytes(hlo, "mlir"))
    assert next(iter(again.module.ops)).name == "hlo.computation"
