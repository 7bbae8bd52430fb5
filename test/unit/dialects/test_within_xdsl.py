"""xDSL's own tools on our dialects: its parser, verifier and passes, as `xdsl-opt` runs them."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pytest
from support import ROOT
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Commutative, ConstantLike, Pure
from xdsl.transforms import get_all_passes
from xdsl.utils.exceptions import ParseError, VerifyException

import mlirhlo
from mlirhlo.dialects.hlo import OP_CLASSES, OPCODES
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.stablehlo.op_classes import TableOp
from mlirhlo.formats.mlir import parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.interp.registry import DynamicArray, Value
from mlirhlo.universe import UNIVERSE

PROGRAMS = sorted(
    path
    for path in (ROOT / "test" / "data" / "programs").glob("*/*.hlo")
    if not path.name.endswith("after_opt.hlo")
)
UNRUNNABLE = frozenset({"hlo_custom_call_parse", "hlo_host_transfer_parse"})
"""Programs that call what has no meaning here, or wait for a host."""
PASSES = ("canonicalize", "cse", "dce")


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    """A context with the dialects of the plugin; what it offers the dialects is taken back."""
    monkeypatch.setattr(TableOp, "CHECK", None)
    monkeypatch.setattr(TableOp, "READ_PRETTY", None)
    monkeypatch.setattr(ComputationOp, "CHECK", None)
    ctx = Context()
    from xdsl.dialects import get_all_dialects

    for name, factory in {**get_all_dialects(), **UNIVERSE.all_dialects}.items():
        ctx.register_dialect(name, factory)
    return ctx


def read(ctx: Context, text: str) -> ModuleOp:
    module = Parser(ctx, text).parse_module()
    module.verify()
    return module


def simplified(ctx: Context, module: ModuleOp) -> ModuleOp:
    for name in PASSES:
        get_all_passes()[name]()().apply(ctx, module)
        module.verify()
    return module


def printed(module: ModuleOp) -> str:
    stream = io.StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


def results(module: ModuleOp, arguments: list[Value]) -> list[bytes]:
    """Leaves of what the interpreter computes, bit for bit."""

    def leaves(value: object) -> Iterator[bytes]:
        if isinstance(value, tuple | list):
            for part in value:
                yield from leaves(part)
        else:
            yield np.asarray(value.data if isinstance(value, DynamicArray) else value).tobytes()

    return [*leaves(run_module(module, arguments))]


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_passes_of_xdsl_on_programs(path, context: Context) -> None:
    """In both dialects: read, verified, simplified and read back; HLO computes what it did."""
    module = mlirhlo.load(path)
    stablehlo = module.as_text("stablehlo")
    read(context, printed(simplified(context, read(context, stablehlo))))
    after = parse_module(printed(simplified(context, read(context, print_module(module.op)))))
    assert len(list(after.walk())) <= len(list(module.op.walk()))
    if path.stem not in UNRUNNABLE:
        arguments = make_fake_arguments(module.op)
        assert results(after, arguments) == results(module.op, arguments)


HLO = """
builtin.module @m {
  hlo.computation @noisy {
    %x = hlo.parameter 0 : tensor<4xf32>
    %r = hlo.custom_call %x {custom_call_target = "f", custom_call_has_side_effect = true} : tensor<4xf32>
    hlo.return %r
  }
  hlo.computation @outer {
    %x = hlo.parameter 0 : tensor<4xf32>
    %r = hlo.call %x {to_apply = @noisy} : tensor<4xf32>
    hlo.return %r
  }
  hlo.computation @quiet {
    %x = hlo.parameter 0 : tensor<4xf32>
    %r = hlo.negate %x : tensor<4xf32>
    hlo.return %r
  }
  hlo.computation entry @main {
    %x = hlo.parameter 0 : tensor<4xf32>
    %unused = hlo.parameter 1 : tensor<4xf32>
    %dead = hlo.negate %x : tensor<4xf32>
    %a = hlo.abs %x : tensor<4xf32>
    %b = hlo.abs %x : tensor<4xf32>
    %n = hlo.call %x {to_apply = @outer} : tensor<4xf32>
    %q = hlo.call %x {to_apply = @quiet} : tensor<4xf32>
    %p = hlo.custom_call %x {custom_call_target = "f"} : tensor<4xf32>
    %t = hlo.add %a, %b : tensor<4xf32>
    hlo.return %t
  }
}
"""


def test_dead_and_common_instructions_go_and_effects_stay(context: Context) -> None:
    module = simplified(context, read(context, HLO))
    entry = [op.opcode.name for op in HloModule(module).entry.instructions]
    assert entry == ["parameter", "parameter", "abs", "call", "add"]


STABLEHLO = """
func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %dead = stablehlo.negate %x : tensor<4xf32>
  %a = stablehlo.abs %x : tensor<4xf32>
  %b = stablehlo.abs %x : tensor<4xf32>
  %quiet = stablehlo.custom_call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %noisy = stablehlo.custom_call @g(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
  %pure = "stablehlo.if"(%p) ({
    %1 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %inner = "stablehlo.if"(%p) ({
    %1 = stablehlo.custom_call @h(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %t = stablehlo.add %a, %b : tensor<4xf32>
  func.return %t : tensor<4xf32>
}
"""


def test_effects_of_stablehlo(context: Context) -> None:
    text = printed(simplified(context, read(context, STABLEHLO)))
    assert text.count("stablehlo.abs") == 1
    assert "stablehlo.negate" not in text
    assert text.count("stablehlo.if") == 1
    assert [name in text for name in ("@f", "@g", "@h")] == [False, True, True] or (
        '"f"' not in text and '"g"' in text and '"h"' in text
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HLO.replace("%b : tensor<4xf32>", "%b : tensor<5xf32>"), "HLO0103"),
        (HLO.replace("to_apply = @quiet", "to_apply = @nowhere"), "HLO0"),
        (
            STABLEHLO.replace(
                "add %a, %b : tensor<4xf32>", "reverse %a, dims = [3] : tensor<4xf32>"
            ),
            "dimensions",
        ),
        (
            STABLEHLO.replace(
                "stablehlo.add %a, %b : tensor<4xf32>",
                '"stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32>',
            ).replace("%t : tensor<4xf32>", "%x : tensor<4xf32>"),
            "stablehlo.add",
        ),
    ],
)
def test_ill_typed_programs_are_refused(text: str, message: str, context: Context) -> None:
    with pytest.raises(VerifyException, match=message):
        read(context, text)


def test_bad_pretty_forms_are_errors_at_their_location(context: Context) -> None:
    with pytest.raises(ParseError, match=r"HLO0030") as caught:
        read(context, STABLEHLO.replace("abs %x :", "abs %x ?"))
    assert "stablehlo.abs %x ?" in str(caught.value)


def test_traits_follow_from_the_rows() -> None:
    for name, row in OPCODES.items():
        op = OP_CLASSES[name]
        assert op.has_trait(Commutative) == row.commutes
        assert op.has_trait(ConstantLike) == (name == "constant")
        assert not (op.has_trait(Pure) and (row.side_effect or name == "parameter"))
        assert not row.elementwise or op.has_trait(Pure)
