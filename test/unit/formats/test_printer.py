"""The printer's own promises: names, switches XLA's Python does not reach, pieces, errors, depth."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import DATA
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.attributes.base import string, symbol
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import array
from mlirhlo.formats.hlo_text.options import PrintOptions, Subcomputations
from mlirhlo.formats.hlo_text.printer import print_computation, print_instruction, print_module
from mlirhlo.formats.hlo_text.reader import parse_module

TEXT = """HloModule m, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}

%inner (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%p)
}

ENTRY %e (a: f32[4], b: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %s = f32[4]{0} add(%a, %b), metadata={op_type="t" op_name="s"}, backend_config={"z":1,"a":[2]}
  %f = f32[4]{0} fusion(%s), kind=kLoop, calls=%inner
  %r = f32[4]{0} all-reduce(%f), channel_id=3, replica_groups=[1,2]<=[2], to_apply=%inner
  ROOT %c = f32[4]{0} custom-call(%r), custom_call_target="x", backend_config="body"
}

"""


DUMPS = [
    p for p in sorted((DATA / "dumps").rglob("*.txt")) if p.read_text().startswith("HloModule")
]


@pytest.mark.parametrize("path", DUMPS, ids=lambda p: p.name)
def test_dumps_round_trip(path: Path) -> None:
    """A dump is printed as it was written, in the long or in the short style."""
    text = path.read_text()
    parsed = parse_module(text, path.name)
    styles = (PrintOptions(), PrintOptions.short_dump(), PrintOptions(large_constants=True))
    assert text in [print_module(parsed, options) for options in styles]


def module(text: str = TEXT) -> ModuleOp:
    return parse_module(text, "test.hlo")


def entry_line(text: str, name: str) -> str:
    return next(line.strip() for line in text.split("\n") if f"{name} = " in line)


def test_round_trip() -> None:
    assert print_module(module()) == TEXT


@pytest.mark.parametrize(
    ("options", "name", "line"),
    [
        (PrintOptions(percent=False), "s", "s = f32[4]{0} add(a, b), metadata"),
        (PrintOptions(metadata_only_op_name=True), "%s", 'metadata={op_name="s"}, backend'),
        (PrintOptions(sorted_backend_config=True), "%s", 'backend_config={"a":[2],"z":1}'),
        (PrintOptions(custom_call_bodies=False), "%c", "backend_config={...}"),
        (PrintOptions(channel_ids=False), "%r", "all-reduce(%f), replica_groups=[1,2]<=[2]"),
        (PrintOptions(full_replica_groups=True), "%r", "replica_groups={{0,1}}, to_apply"),
        (PrintOptions(parameter_numbers=False), "%b", "%b = f32[4]{0} parameter()"),
        (
            PrintOptions(subcomputations=Subcomputations.OFF),
            "%f",
            "%f = f32[4]{0} fusion(%s), kind=kLoop",
        ),
        (PrintOptions(operand_index_interval=1), "%s", "add(%a, /*index=1*/%b)"),
        (PrintOptions(layouts=False, operand_shapes=True), "%f", "%f = f32[4] fusion(f32[4] %s)"),
    ],
)
def test_switches(options: PrintOptions, name: str, line: str) -> None:
    assert line in entry_line(print_module(module(), options), name)


def test_name_after_closing_brace() -> None:
    text = print_module(module(), PrintOptions(name_after_closing_brace=True))
    assert text.endswith("} // e\n\n")
    assert text.count("//") == 1


def test_indent() -> None:
    text = print_module(module(), PrintOptions(indent=1))
    assert all(line.startswith("  ") for line in text.split("\n") if line)


def test_names_are_made_unique_without_touching_the_module() -> None:
    view = HloModule(module())
    first = next(op for op in view.entry.instructions if op.instruction_name == "s")
    block = view.entry.block
    for name in (None, None, "s", "a"):
        op = make("negate", [first], first.shape, name=name)
        block.insert_op_before(op, view.entry.terminator)
    text = print_module(view.op)
    names = [line.split("=")[0].strip() for line in text.split("\n") if "negate(%s)" in line]
    assert names == ["%negate", "%negate.1", "%s.1", "%a.1"]
    assert [op.instruction_name for op in view.entry.instructions][-4:] == [None, None, "s", "a"]


def test_pieces() -> None:
    view = HloModule(module())
    inner = view.by_name()["inner"]
    assert print_computation(inner) + "\n" in TEXT
    assert print_instruction(inner.root) == "%n = f32[4]{0} negate(%p)"
    assert print_instruction(inner.root, PrintOptions.canonical()) == (
        "tmp_1 = f32[4]{0} negate(f32[4]{0} tmp_0)"
    )
    fusion = next(op for op in view.entry.instructions if op.opcode.name == "fusion")
    assert print_instruction(fusion, PrintOptions.canonical()).endswith(
        "calls=\n{\n  tmp_0 = f32[4]{0} parameter(0)\n"
        "  ROOT tmp_1 = f32[4]{0} negate(f32[4]{0} tmp_0)\n}"
    )
    alone = make("negate", [make("iota", [], array("f32", (4,)), name="i")], array("f32", (4,)))
    assert print_instruction(alone) == "%negate = f32[4]{0} negate(%i)"


def test_fingerprint_without_operand_shapes() -> None:
    text = print_module(module(), PrintOptions.module_fingerprint())
    assert "add(tmp_0, tmp_1)" in text
    assert text.startswith("HloModule , entry_computation_layout")


def test_inline_stack_frames() -> None:
    text = """HloModule m, entry_computation_layout={()->f32[]}

FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=4 column=5 end_column=6}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


ENTRY %e () -> f32[] {
  ROOT %c = f32[] constant(1), metadata={op_name="c" stack_frame_id=1}
}

"""
    assert print_module(module(text)) == text
    inlined = print_module(module(text), PrintOptions(inline_stack_frames=True))
    assert "StackFrames" in inlined
    expected = 'metadata={op_name="c" source_file="a.py" source_line=3 source_column=5}'
    assert expected in inlined
    assert "StackFrames" not in print_module(module(text), PrintOptions(metadata=False))


def test_calls_in_a_circle_are_refused_where_bodies_are_printed() -> None:
    view = HloModule(module())
    root = view.by_name()["inner"].root
    call = make("call", [root], root.shape, {"to_apply": symbol("inner")})
    view.by_name()["inner"].block.insert_op_before(call, view.by_name()["inner"].terminator)
    assert "to_apply=%inner" in print_module(view.op)
    with pytest.raises(HloError, match="HLO0080"):
        print_module(view.op, PrintOptions.canonical())


def test_deep_chains_do_not_recurse() -> None:
    depth = 5000
    lines = [f"  n{i} = f32[] negate({'a' if i == 0 else f'n{i - 1}'})" for i in range(depth)]
    chain = "HloModule m\nENTRY e {\n  a = f32[] parameter(0)\n" + "\n".join(lines) + "\n}\n"
    assert f"%n{depth - 1} = " in print_module(module(chain))
    calls = ["g0 { ROOT p = f32[] parameter(0) }"]
    calls += [
        f"g{i} {{ p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=g{i - 1} }}"
        for i in range(1, 1500)
    ]
    nested = "HloModule m\n" + "\n".join(calls) + "\n"
    text = print_module(module(nested))
    assert text.index("%g0 ") < text.index("%g1400 ")
    last = HloModule(module(nested)).by_name()["g400"]
    assert print_computation(last, PrintOptions.canonical()).count("call(") == 400


def test_unknown_attributes_are_carried_through() -> None:
    view = HloModule(module())
    op = next(op for op in view.entry.instructions if op.instruction_name == "s")
    op.properties["raw_attributes"] = string("new_thing={1}")
    assert "add(%a, %b), new_thing={1}, metadata" in print_module(view.op)
