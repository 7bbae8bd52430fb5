"""The reader of HLO text: forms of files, loading rules, ways that agree."""

from __future__ import annotations

import gc

import pytest
from unit.corpus import repository_texts

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import HloModule, Instruction
from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
from mlirhlo.dialects.hlo.module import source_of
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.formats.hlo_text import PrintOptions, ReadOptions, parse_module, print_module
from mlirhlo.formats.hlo_text import reader_general as general

ADD = "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\n"


def read(text: str, **options: bool) -> HloModule:
    return HloModule(parse_module(text, options=ReadOptions(**options)))


def entry(*lines: str, before: str = "") -> HloModule:
    return read(f"HloModule m\n\n{before}ENTRY e {{\n" + "\n".join(lines) + "\n}\n")


def named(module: HloModule, name: str) -> Instruction:
    return next(op for op in module.entry.instructions if op.instruction_name == name)


def names(module: HloModule) -> list[str | None]:
    return [op.instruction_name for op in module.entry.instructions]


# ---------------------------------------------------------------- forms of files


def test_module() -> None:
    module = read(
        "HloModule demo, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}\n\n"
        "ENTRY %main (a: f32[4]) -> f32[4] {\n  ROOT %a = f32[4]{0} parameter(0)\n}\n"
    )
    assert module.name == "demo"
    assert module.is_scheduled
    assert module.entry.computation_name == "main"
    assert module.entry.root.opcode.name == "parameter"


@pytest.mark.parametrize(
    "text",
    ["ENTRY e { ROOT a = f32[4] parameter(0) }", "e { a = f32[4] parameter(0) }",
     "%e (a: f32[4]) -> f32[4] { a = f32[4] parameter(0) }"],
)  # fmt: skip
def test_computations_without_header(text: str) -> None:
    module = read(text)
    assert module.name == "module_e"
    assert module.entry.computation_name == "e"


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("r = f32[2] add(f32[2] x, f32[2] y)", ["x", "y", "r"]),
        ("ROOT r = f32[2] add(f32[2], f32[2])", ["_0", "_1", "r"]),
        ("f32[2] add(f32[2] x, f32[2] x)", ["x", "_"]),
        ("%r = f32[2] negate(f32[2] negate(f32[2] x))", ["x", "negate.anon", "r"]),
    ],
)
def test_single_instruction(text: str, wanted: list[str]) -> None:
    module = read(text)
    assert (module.name, module.entry.computation_name, module.is_scheduled) == ("_", "_", True)
    assert names(module) == wanted


def test_entry_is_the_last_computation_when_none_is_marked() -> None:
    module = read("HloModule m\nf { a = f32[] parameter(0) }\ng { b = f32[] parameter(0) }\n")
    assert module.entry.computation_name == "g"


def test_root_may_stand_anywhere_and_is_last_by_default() -> None:
    assert entry("ROOT a = f32[] parameter(0)", "b = f32[] negate(a)").entry.root is not None
    module = entry("ROOT a = f32[] parameter(0)", "b = f32[] negate(a)")
    assert module.entry.root.instruction_name == "a"
    module = entry("a = f32[] parameter(0)", "b = f32[] negate(a)")
    assert module.entry.root.instruction_name == "b"


def test_fingerprint_text_has_no_names() -> None:
    module = read(
        "HloModule , entry_computation_layout={()->f32[2]{0}}\n\nENTRY {\n  ROOT tmp_0 = f32[2]{0} constant(1)\n}\n"
    )
    assert module.name == ""
    assert str(named(module, "tmp_0").literal) == "f32[2]{0} {1, 1}"  # type: ignore[attr-defined]


def test_stack_frame_tables_stay_as_they_are() -> None:
    tables = (
        'FileNames\n1 "a.py"\n2 "unused.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n'
        "1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=5 end_column=9}\n\n"
        "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n\n"
    )
    text = f"HloModule m\n\n{tables}ENTRY e {{\n  a = f32[] parameter(0)\n}}\n"
    assert str(read(text).stack_frames) == tables


def test_layouts_may_be_kept_unset() -> None:
    text = "HloModule m, entry_computation_layout={(f32[4])->f32[4]{0}}\nENTRY e { a = f32[4] parameter(0) }"

    def layouts(layout: ProgramLayout) -> list[object]:
        shapes = [*layout.parameters, layout.result]
        return [s.layout for s in shapes if isinstance(s, ArrayShape)]

    assert layouts(read(text, keep_unset_layouts=True).program_layout)[0] is None
    assert None not in layouts(read(text).program_layout)


# ---------------------------------------------------------------- loading rules


@pytest.mark.parametrize(
    "given, wanted",
    [
        ("a a a", "a a.1 a.2"),
        ("a.1 a.1 a.1", "a.1 a.0 a.2"),
        ("a.5 a a a.5", "a.5 a a.1 a.2"),
        ("a.01", "a.1"),
        ("a.0 a", "a.0 a.1"),
        ("add.clone add.clone", "add.clone add.clone.1"),
    ],
)
def test_names_become_unique_in_the_module(given: str, wanted: str) -> None:
    computations = "".join(
        f"c{i} {{ {n} = f32[] parameter(0) }}\n" for i, n in enumerate(given.split())
    )
    found = [op.instruction_name for op in read("HloModule m\n" + computations).instructions]
    assert found == wanted.split()


def test_computation_names_are_a_name_space_of_their_own() -> None:
    module = read("HloModule m\n__a { a = f32[] parameter(0) }\nENTRY b { b = f32[] parameter(0) }")
    assert [c.computation_name for c in module.computations] == ["a_a", "b"]


@pytest.mark.parametrize(
    "line, key",
    [
        ('r = f32[] negate(a), backend_config=""', "backend_config"),
        ("r = f32[] negate(a), frontend_attributes={}", "frontend_attributes"),
        ("r = f32[] exponential(a), result_accuracy={mode=default}", "result_accuracy"),
        ("r = f32[] reshape(a), inferred_dimension=-1", "inferred_dimension"),
        ("r = pred[] compare(a, a), direction=LT, type=FLOAT", "type"),
        ("r = f32[] dot(a, a), lhs_contracting_dims={}", "lhs_contracting_dims"),
        ("r = f32[] dot(a, a), operand_precision={default,default}", "operand_precision"),
        ('r = f32[] custom-call(a), custom_call_target="t", schedule=SCHEDULE_NONE', "schedule"),
        ("r = f32[] reduce-window(a, a), window={}, to_apply=add", "window"),
    ],
)
def test_defaults_are_dropped(line: str, key: str) -> None:
    module = entry("a = f32[] parameter(0)", line, before=ADD)
    assert key not in named(module, "r").properties


@pytest.mark.parametrize(
    "line, key, wanted",
    [
        ("r = f32[2] broadcast(a)", "dimensions", "array<i64>"),
        ("r = f32[] all-reduce(a), to_apply=add", "replica_groups", '#hlo.replica_groups<"{}">'),
        ("r = token[] outfeed(a, t)", "outfeed_shape", "tensor<f32>"),
        ("r = f32[] custom-call(a), custom_call_target=\"t\", to_apply=add", "called_computations", "[@add]"),
    ],
)  # fmt: skip
def test_what_xla_fills_in(line: str, key: str, wanted: str) -> None:
    module = entry("a = f32[] parameter(0)", "t = token[] after-all()", line, before=ADD)
    assert str(named(module, "r").properties[key]) == wanted


def test_one_sharding_of_a_tuple_goes_to_every_leaf() -> None:
    module = entry(
        "a = f32[] parameter(0)",
        'r = (f32[], (f32[])) custom-call(a), custom_call_target="t", sharding={replicated}',
    )
    assert str(named(module, "r").sharding) == "{{replicated}, {replicated}}"


def test_control_predecessors_are_operands() -> None:
    module = entry(
        "a = f32[] parameter(0)",
        "b = f32[] negate(a)",
        "r = f32[] negate(a), control-predecessors={%b, b, a}",
    )
    op = named(module, "r")
    assert len(op.inputs) == 1
    assert [value._name for value in op.control_predecessors] == ["b", "a"]


def test_elided_constants_stay_elided() -> None:
    module = entry("c = f32[3] constant({...})", "ROOT d = (f32[2], s32[]) constant({...})")
    assert all(op.literal.is_elided for op in module.entry.instructions)  # type: ignore[attr-defined]


def test_constants_lose_bounds_but_keep_layouts() -> None:
    op = named(entry("c = f32[<=2,1]{0,1} constant({ {1}, {2} })"), "c")
    assert str(op.shape) == "f32[2,1]{0,1}"


# ---------------------------------------------------------------- the general forms


def test_comments_blanks_and_line_breaks_anywhere() -> None:
    module = entry(
        'a = f32[] /* x */ parameter ( 0 ) b =\n f32 [ ]{:S(1)} add(a // first\n, a), \t metadata={op_name="x",\r\n'
        " source_line=3} ROOT /**/ c = f32[] negate(/*index=0*/ %b)"
    )
    assert names(module) == ["a", "b", "c"]
    assert named(module, "b").metadata.source_line == 3  # type: ignore[union-attr]


def test_windows_line_ends() -> None:
    text = "HloModule m\r\n\r\nENTRY e {\r\n  a = f32[2]{0} parameter(0)\r\n  ROOT b = f32[2]{0} negate(a)\r\n}\r\n"
    assert names(read(text)) == ["a", "b"]


def test_nested_operands() -> None:
    module = entry(
        "a = f32[] parameter(0)", "r = f32[] add(f32[] negate(a), f32[] negate(f32[] negate(%a)))"
    )
    assert names(module) == ["a", "negate.anon", "negate.anon.1", "negate.anon.2", "r"]


def test_inline_bodies() -> None:
    module = entry(
        "a = f32[2] parameter(0)",
        "b = f32[] constant(0)",
        "r = f32[] reduce(a, b), dimensions={0}, to_apply={ x = f32[] parameter(0) y = f32[] parameter(1)"
        " ROOT z = f32[] add(x, y) }",
    )
    assert [c.computation_name for c in module.computations] == ["_", "e"]
    assert named(module, "r").called_computations == ("_",)


def test_shapes_may_be_left_out() -> None:
    module = entry(
        "a = f32[2,3] parameter(0)",
        "b = f32[] constant(0)",
        "n = negate(a)",
        "g = compare(a, n), direction=LT",
        "s = reduce(n, b), dimensions={1}, to_apply=add",
        "ROOT t = tuple(g, s)",
        before=ADD,
    )
    assert str(module.entry.root.shape) == "(pred[2,3]{1,0}, f32[2]{0})"


def test_operands_may_carry_shapes() -> None:
    module = entry(
        "a = f32[2,3]{1,0} parameter(0)", "r = f32[2,3] add(f32[2,3]{0,1} %a, f32[2,3] a)"
    )
    assert len(named(module, "r").inputs) == 2


@pytest.mark.parametrize(
    "name, text", list(repository_texts()), ids=lambda v: v if len(v) < 200 else ""
)
def test_both_ways_read_the_same(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The general way alone gives what the quick way gives."""
    if len(text) > 60_000:
        pytest.skip("long")
    quick = print_module(parse_module(text), PrintOptions(large_constants=True))
    monkeypatch.setattr(general, "read_header", lambda pieces, position: None)
    monkeypatch.setattr(general, "read_lines", lambda pieces, scope, position: position)
    assert print_module(parse_module(text), PrintOptions(large_constants=True)) == quick


# ---------------------------------------------------------------- asynchronous instructions

START = "s = ((f32[4]), f32[2], s32[]) "


def test_short_asynchronous_form() -> None:
    module = entry(
        "a = f32[4] parameter(0)",
        START
        + 'reduce-scatter-start(a), replica_groups={{0,1}}, dimensions={0}, to_apply=add, metadata={op_name="x"},'
        ' async_execution_thread="t"',
        "u = ((f32[4]), f32[2], s32[]) reduce-scatter-update(s)",
        "ROOT d = f32[2] reduce-scatter-done(u)",
        before=ADD,
    )
    assert [op.opcode.name for op in module.entry.instructions][1:] == [
        "async-start", "async-update", "async-done",
    ]  # fmt: skip
    wrapped = module.by_name()["async_wrapped"]
    assert [op.instruction_name for op in wrapped.instructions] == ["async_param", "async_op"]
    assert str(wrapped.root.properties["replica_groups"]) == '#hlo.replica_groups<"{{0,1}}">'
    assert wrapped.root.metadata is not None
    assert "replica_groups" not in named(module, "s").properties
    assert {wrapped.thread, module.by_name()["add"].thread} == {"t"}


def test_what_a_computation_of_a_thread_calls_is_on_the_thread_too() -> None:
    outer = (
        "outer {\n a = f32[4] parameter(0)\n z = f32[] constant(0)\n"
        ' ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=add\n}, execution_thread="t"\n'
    )
    module = entry(
        "a = f32[4] parameter(0)",
        's = ((f32[4]), f32[], s32[]) call-start(a), async_execution_thread="t", to_apply=outer',
        "ROOT d = f32[] call-done(s)",
        before=ADD + outer,
    )
    assert {module.by_name()[name].thread for name in ("outer", "add")} == {"t"}


def test_short_form_of_a_fusion_calls_what_the_fusion_calls() -> None:
    module = entry(
        "a = f32[] parameter(0)",
        "s = ((f32[]), f32[], s32[]) fusion-start(a), kind=kLoop, calls=neg",
        "ROOT d = f32[] fusion-done(s)",
        before="neg { x = f32[] parameter(0) ROOT y = f32[] negate(x) }\n",
    )
    wrapped = module.by_name()["async_wrapped"].root
    assert (wrapped.opcode.name, wrapped.called_computations) == ("fusion", ("neg",))
    assert named(module, "s").called_computations == ("async_wrapped",)


@pytest.mark.parametrize(
    "line, key, wanted",
    [
        (
            "r = f32[] convolution(a, a), dim_labels=bf_io->bf, conv_kind=dgrad",
            "convolution_kind",
            '"dgrad"',
        ),
        ("r = f32[] dot(a, a, a), sparsity=L.1@2:4", "raw_attributes", '"sparsity=L.1@2:4"'),
        ("r = pred[] compare(a, a), direction=LT, order=TOTAL", "order", '"TOTAL"'),
        (
            'r = f32[] negate(a), metadata={op_name="x" preserve_layout=true size_of_generated_code_in_bytes=7}',
            "metadata",
            '#hlo.metadata<"{op_name=\\22x\\22}">',
        ),
        (
            "r = f32[] negate(a), sharding={mesh[x=2], [], replicated={x}}",
            "sharding",
            "#hlo.sharding<\"{mesh['x'=2], [], replicated={'x'}}\">",
        ),
    ],
)
def test_former_and_newer_spellings(line: str, key: str, wanted: str) -> None:
    assert str(named(entry("a = f32[] parameter(0)", line), "r").properties[key]) == wanted


def test_real_opcodes_are_no_short_forms() -> None:
    module = entry(
        "a = f32[4] parameter(0)", "ROOT s = f32[4] all-reduce-start(a), to_apply=add", before=ADD
    )
    assert module.entry.root.opcode.name == "all-reduce-start"


# ---------------------------------------------------------------- unknown attributes, places


def test_unknown_attributes_are_carried_through() -> None:
    text = (
        "HloModule m, new_switch={a, {b}}, replica_count=2\n\nENTRY e {\n"
        '  a = f32[] parameter(0), shiny="x, y", other={1,{2}}, metadata={op_name="z"}\n}\n'
    )
    with pytest.raises(HloError):
        parse_module(text)
    module = read(text, carry_unknown_attributes=True)
    printed = print_module(module.op)
    assert 'shiny="x, y", other={1,{2}}, metadata' in printed
    assert "new_switch={a, {b}}" in printed


def test_instructions_know_their_place() -> None:
    module = entry("  a = f32[] parameter(0)", "  ROOT %bb = f32[] negate(negate(a))")
    places = [source_of(op) for op in module.entry.instructions]
    assert all(place is not None for place in places)
    found = [place[0].place(place[1]) for place in places if place is not None]
    assert [(p.line, p.column) for p in found] == [(4, 3), (5, 27), (5, 8)]


def test_the_collector_is_as_before() -> None:
    assert gc.isenabled()
    with pytest.raises(HloError):
        parse_module("HloModule m\nENTRY e {")
    assert gc.isenabled()
