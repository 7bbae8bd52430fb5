"""Constraints that no text can break: modules built, or taken apart, in Python."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.shape_inference import ConstraintError, infer
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo.attributes.base import integer, integers, string, symbol
from mlirhlo.dialects.hlo.attributes.dimensions import Padding, PaddingAttr, PaddingDimension
from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
from mlirhlo.dialects.hlo.build import append, make
from mlirhlo.dialects.hlo.ops import ComputationOp, Instruction, ReturnOp
from mlirhlo.dialects.hlo.shapes import parse_shape
from mlirhlo.formats.hlo_text import parse_module

F32_2 = parse_shape("f32[2]")


def breaks(constraint: str) -> Callable[[Callable[[], ModuleOp]], None]:
    """Turns a function that builds a module into a test that the module breaks `constraint`."""

    def define(build: Callable[[], ModuleOp]) -> None:
        def test() -> None:
            found = [d.message.rsplit("[", 1)[1][:-1] for d in verify_module(build())]
            assert found[0] == constraint, found

        globals()[f"test_{constraint}_{build.__name__}"] = test

    return define


def parameter(number: int = 0, name: str = "p") -> Instruction:
    return make("parameter", [], F32_2, {"parameter_number": integer(number)}, name=name)


def module(*ops: Instruction, root: Instruction | None = None) -> ModuleOp:
    """A module whose entry holds `ops`; the last one is the root unless one is given."""
    entry = ComputationOp("e", is_entry=True)
    for op in ops:
        append(entry.block, op)
    entry.block.add_op(ReturnOp((root or ops[-1]).output))
    return ModuleOp([entry], sym_name=string("m"))


@breaks("computation_c1")
def root_elsewhere() -> ModuleOp:
    elsewhere = parameter(name="q")
    append(ComputationOp("f").block, elsewhere)
    return module(parameter(), root=elsewhere)


@breaks("computation_c3")
def two_of_a_name() -> ModuleOp:
    p = parameter()
    return module(p, make("negate", [p], F32_2, name="p"))


@breaks("computation_c4")
def used_before_defined() -> ModuleOp:
    p = parameter()
    return module(make("negate", [p], F32_2, name="n"), p)


@breaks("computation_c4")
def defined_elsewhere() -> ModuleOp:
    elsewhere = parameter(name="q")
    append(ComputationOp("f").block, elsewhere)
    return module(parameter(), make("negate", [elsewhere], F32_2, name="n"))


@breaks("computation_c5")
def waits_for_a_later_one() -> ModuleOp:
    p, late = parameter(), make("iota", [], F32_2, {"iota_dimension": integer(0)}, name="late")
    return module(p, make("negate", [p], F32_2, name="n", control_predecessors=[late]), late)


@breaks("computation_c7")
def fused_root_is_used() -> ModuleOp:
    parsed = parse_module("""
f { a = f32[2] parameter(0)  b = f32[2] negate(a)  ROOT c = f32[2] negate(b) }
ENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] fusion(p), kind=kLoop, calls=f }""")
    fused = next(op for op in parsed.body.block.ops if isinstance(op, ComputationOp))
    _, middle, last = fused.instructions
    # %c keeps a user, which stands in no block, so that only the new root is at fault.
    make("negate", [last], F32_2)
    fused.terminator.operands[0] = middle.output
    return parsed


@breaks("computation_c8")
def storage_order_repeats() -> ModuleOp:
    p = parameter()
    built = module(p, make("negate", [p], F32_2, name="n"))
    entry = next(op for op in built.body.block.ops if isinstance(op, ComputationOp))
    entry.properties["storage_order"] = integers((0, 0))
    return built


@breaks("module_c2")
def two_computations_of_a_name() -> ModuleOp:
    built = module(parameter())
    again = ComputationOp("e")
    p = parameter()
    append(again.block, p)
    again.block.add_op(ReturnOp(p.output))
    built.body.block.add_op(again)
    return built


@breaks("pad_c5")
def negative_interior() -> ModuleOp:
    p = parameter()
    value = make("parameter", [], parse_shape("f32[]"), {"parameter_number": integer(1)}, name="v")
    padding = PaddingAttr(Padding((PaddingDimension(0, 0, -1),)))
    return module(p, value, make("pad", [p, value], F32_2, {"padding": padding}, name="r"))


def test_instruction_c10() -> None:
    parsed = parse_module(
        "ENTRY e { p = f32[2,3]{0,1} parameter(0) ROOT t = (f32[2,3]{1,0}) tuple(p) }"
    )
    assert verify_module(parsed) == []
    found = verify_module(parsed, layout_sensitive=True)
    assert [d.message.rsplit(" ", 1)[1] for d in found] == [
        "[instruction_c10]"
    ]  # breaks("instruction_c10")


def test_shape_must_be_written() -> None:
    with pytest.raises(ConstraintError, match="cannot infer shape for opcode: convert") as caught:
        infer("convert", [F32_2], {})
    assert caught.value.constraint == "instruction_c3"  # breaks("instruction_c3")


def test_scan_without_inputs() -> None:
    body = ProgramLayout((F32_2,), parse_shape("(f32[2])"))
    properties = {"dimensions": integers((0,)), "num_carries": integer(1), "to_apply": symbol("f")}
    with pytest.raises(ConstraintError) as caught:
        infer("scan", [F32_2], properties, {"f": body})
    assert caught.value.constraint == "scan_c4"  # breaks("scan_c4")


def test_broadcast_of_unbounded() -> None:
    with pytest.raises(ConstraintError) as caught:
        infer("broadcast", [parse_shape("f32[?]")], {"dimensions": integers((0,))})
    assert caught.value.constraint == "broadcast_c7"  # breaks("broadcast_c7")


def test_more_than_the_limit_is_not_listed() -> None:
    p = parameter()
    wrong = [make("negate", [p], parse_shape("f32[3]"), name=f"n{i}") for i in range(5)]
    assert len(verify_module(module(p, *wrong), limit=3)) == 3


def test_operand_place_and_definition() -> None:
    text = """\
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[5] parameter(1)
  ROOT s = f32[4] add(a, /*index=1*/ b)
}
"""
    (found,) = verify_module(parse_module(text, "bad.hlo"))
    message = "Binary op with incompatible shapes: f32[4] and f32[5]."
    assert str(found).splitlines() == [
        f"bad.hlo:4:38: error[HLO0102]: add: {message} [add_c3]",
        "  ROOT s = f32[4] add(a, /*index=1*/ b)",
        "                                     ^",
        "note: %b is defined at bad.hlo:3:3",
    ]
