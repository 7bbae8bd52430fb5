"""The MLIR form: line by line and through xDSL the same, round trips exact, errors coded."""

import re

import pytest
from program_shapes import SHAPES
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import HLO, HloModule
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.formats import hlo_text
from mlirhlo.formats.mlir import MlirPrinter, parse_module, print_module
from mlirhlo.formats.mlir import parser as mlir_parser

MODULE = """\
builtin.module @jit_f attributes {hlo.is_scheduled = true} {
  hlo.computation @add.1 {
    %x = hlo.parameter 0 : tensor<f32>
    %y = hlo.parameter 1 : tensor<f32>
    %s = hlo.add %x, %y : tensor<f32>
    hlo.return %s
  }
  hlo.computation entry @"main-2" attributes {execution_thread = "other"} {
    %param_0 = hlo.parameter 0 : tensor<?x3xf32, #hlo.layout<"[<=4,3]{0,1:T(8,128)}">>
    %param_0.1 = hlo.parameter 1 {sharding = #hlo.sharding<"{replicated}">} : tensor<4x3xf32>
    %param_0_1 = hlo.constant "{ { 1, -nan(0x1) }, { inf, 4 } }" : tensor<2x2xf32>
    %c = hlo.constant "{...}" : tensor<100xsi1>
    %zero = hlo.constant "0" : tensor<f32>
    %r = hlo.reduce %param_0.1, %zero after %c, %param_0_1 {dimensions = array<i64: 1>, to_apply = @add.1, \
metadata = #hlo.metadata<"{op_name=\\22jit(f)/sum\\22 stack_frame_id=3}">} : tensor<4xf32>
    %t = hlo.tuple %r, %c : tuple<tensor<4xf32>, tensor<100xsi1>>
    hlo.return %t
  }
}
"""


def through_xdsl(text: str) -> ModuleOp:
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(HLO)
    return Parser(ctx, text).parse_module()


def through_printer(module: ModuleOp) -> str:
    from io import StringIO

    stream = StringIO()
    MlirPrinter(stream).print_op(module)
    return stream.getvalue() + "\n"


def test_custom_form_round_trips() -> None:
    module = parse_module(MODULE)
    module.verify()
    assert print_module(module) == MODULE


def test_generic_form_round_trips() -> None:
    generic = print_module(parse_module(MODULE), generic=True)
    assert '"hlo.reduce"' in generic
    again = parse_module(generic)
    assert print_module(again) == MODULE
    assert print_module(again, generic=True) == generic


@pytest.mark.parametrize("form", ["wide_loop", "wide_parameter"])
def test_long_tuples_are_written_once_in_the_generic_form(form: str) -> None:
    module = hlo_text.parse_module(SHAPES[form](200))
    text = print_module(module, generic=True)
    assert text.count("!tuple = tuple<") == 1
    assert len(text) < 20_000
    assert print_module(parse_module(text, "<string>")) == print_module(module)


def test_the_line_reader_reads_what_the_printer_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("the slow parser was asked")

    monkeypatch.setattr(mlir_parser, "_check_depth", refuse)
    assert print_module(parse_module(MODULE)) == MODULE


def test_the_slow_parser_reads_the_same() -> None:
    # One blank line is enough to leave the printer's own form.
    other = MODULE.replace("  hlo.computation @add.1", "\n  hlo.computation @add.1")
    assert print_module(parse_module(other)) == MODULE


def test_the_writer_and_xdsls_printer_agree() -> None:
    module = parse_module(MODULE)
    assert through_printer(module) == print_module(module)


def test_stock_xdsl_reads_it_up_to_names() -> None:
    module = through_xdsl(MODULE)
    module.verify()
    assert module.is_structurally_equivalent(parse_module(MODULE))


def test_names_are_exact() -> None:
    names = [op.instruction_name for op in HloModule(parse_module(MODULE)).entry.instructions]
    assert names == ["param_0", "param_0.1", "param_0_1", "c", "zero", "r", "t"]


def test_clashing_and_missing_names_are_told_apart() -> None:
    module = parse_module(MODULE)
    for op in HloModule(module).entry.instructions:
        op.instruction_name = "a" if op.output.first_use is None else None
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    for op in HloModule(module).entry.instructions:
        op.instruction_name = "a"
    text = print_module(module)
    assert "%a_1 = " in text
    assert print_module(parse_module(text)) == text


def test_names_of_instructions_and_of_other_values_do_not_meet() -> None:
    text = """structured.kernel @k(%t: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %t_2 = hlo.constant "0" : tensor<f32>
  %t_3 = structured.map ins(%t : tensor<f32>) maps [affine_map<() -> ()>] -> tensor<f32> {
  ^bb0(%t_4: tensor<f32>):
    %t_5 = hlo.add %t_4, %t_4 : tensor<f32>
    structured.yield %t_5 : tensor<f32>
  }
  %t_6 = structured.map ins(%t_3, %t_2 : tensor<f32>, tensor<f32>)
      maps [affine_map<() -> ()>, affine_map<() -> ()>] -> tensor<f32> {
  ^bb0(%t_7: tensor<f32>, %t_8: tensor<f32>):
    structured.yield %t_7 : tensor<f32>
  }
  structured.return %t_6, %t_2 : tensor<f32>, tensor<f32>
}
"""
    printed = print_module(parse_module(text))
    defined = re.findall(r"(%[\w.]+)(?:: tensor<f32>[,)]| = )", printed)
    assert len(set(defined)) == len(defined) == 8
    assert print_module(parse_module(printed)) == printed


def test_instructions_stand_in_functions_too() -> None:
    text = """\
builtin.module {
  func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = hlo.negate %y : tensor<4xf32>
    %1 = hlo.subtract %x, %0 : tensor<4xf32>
    func.return %1 : tensor<4xf32>
  }
}
"""
    assert print_module(parse_module(text)) == text


def test_strings_hold_any_bytes() -> None:
    module = parse_module(MODULE)
    op = next(iter(HloModule(module).entry.instructions))
    from mlirhlo.dialects.hlo.attributes.base import string

    op.properties["backend_config"] = string(
        b'\xff"\\\n\xc3\xa9'.decode("utf-8", "surrogateescape")
    )
    text = print_module(module)
    assert r'backend_config = "\FF\22\\\0A\C3\A9"' in text
    for form in (text, print_module(module, generic=True)):
        assert print_module(parse_module(form)) == text


def test_elided_constants_stay_elided() -> None:
    constants = [
        op for op in HloModule(parse_module(MODULE)).instructions if isinstance(op, ConstantOp)
    ]
    assert [c.literal is not None and c.literal.is_elided for c in constants] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "text, code, place",
    [
        ("builtin.module {\n  hlo.foo\n}", "HLO0060", "2:3"),
        (MODULE.replace("%x, %y", "%x, %z"), "HLO0060", "5:22"),
        (
            MODULE.replace("tensor<f32>\n    hlo.return", "tensor<g32>\n    hlo.return"),
            "HLO0060",
            "5:34",
        ),
        (MODULE.replace('"0" :', '"0, 1" :'), "HLO0060", "13:"),
        (MODULE.replace("[<=4,3]", "[<=4,5]"), "HLO006", ""),
        (MODULE.replace("{replicated}", "{replicate}"), "HLO0060", "10:"),
        (MODULE[:-3], "HLO0060", ""),
        ("builtin.module " + "{" * 5000, "HLO0061", "1:"),
        ("\0\1\2", "HLO0060", "1:1"),
        ('builtin.module { "a', "HLO0060", "1:"),
    ],
)
def test_bad_text_is_diagnosed(text: str, code: str, place: str) -> None:
    with pytest.raises(HloError) as caught:
        parse_module(text, "m.mlir").verify()
    assert caught.value.code.startswith(code)
    assert f"m.mlir:{place}" in str(caught.value)


@pytest.mark.parametrize(
    "header",
    ["hlo.is_scheduled = 3.0", "hlo.entry_computation_layout = 3 : i64", "hlo.unknown = true"],
)
def test_header_attributes_are_of_their_kind(header: str) -> None:
    with pytest.raises(HloError) as caught:
        parse_module(MODULE.replace("hlo.is_scheduled = true", header))
    assert caught.value.code == "HLO0062"


def test_a_name_over_two_lines_is_shown_whole() -> None:
    text = 'builtin.module { hlo.computation entry @"a\\0Ab" { %x = hlo.parameter 0 : tensor<f32> hlo.return %x } }'
    with pytest.raises(HloError, match=r"'a\\nb' is no name HLO can spell; 'a_b' would be"):
        parse_module(text)


def test_private_entries_of_a_proto_are_of_their_kind() -> None:
    from mlirhlo.formats import proto
    from mlirhlo.formats.hlo_text import parse_module as parse_hlo
    from mlirhlo.formats.hlo_text import print_module as print_hlo

    text = "HloModule m, num_partitions=2\n\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n"
    message = proto.encode_module(parse_hlo(text))
    assert print_hlo(proto.decode_module(message)) == print_hlo(parse_hlo(text))
    message.backend_config = (
        b'{"mlirhlo":{"entry_computation_layout":3,"num_partitions":"two","x":1}}'
    )
    assert "num_partitions" not in print_hlo(proto.decode_module(message))
