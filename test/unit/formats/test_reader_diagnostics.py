"""Every message of the reader: code, text, place, caret."""

from __future__ import annotations

import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module

HEAD = "HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n"

SCATTER = (
    "update_window_dims={}, inserted_window_dims={}, scatter_dims_to_operand_dims={},"
    " index_vector_dim=0, to_apply={ x = f32[] parameter(0) }"
)


def fails(text: str) -> HloError:
    with pytest.raises(HloError) as caught:
        parse_module(text, "m.hlo")
    return caught.value


@pytest.mark.parametrize(
    "line, code, message, column",
    [
        ("b= f32[4] negate(a)", "HLO0001", "expects name, found 'b='", 3),
        (
            "true = f32[4] negate(a)",
            "HLO0001",
            "expects name, found 'true', which is a reserved word",
            3,
        ),
        ("b f32[4] negate(a)", "HLO0001", "expects '=' in instruction", 5),
        ("b = f32[4] %negate(a)", "HLO0001", "expects opcode", 14),
        ("b = f32[4] negate a", "HLO0001", "expects '(' at the beginning of operands", 21),
        ("b = f32[4] negate(a /* x", "HLO0001", "unterminated comment", 23),
        ("b = f32[4] negate(a), dimensions ={0}", "HLO0001", "expects attribute name", 25),
        ("b = f32[4] parameter 1", "HLO0001", "expects '(' before parameter number", 24),
        (
            "b = f32[4] foo(a)",
            "HLO0002",
            "expects opcode but sees: foo, error: Unknown opcode: foo",
            14,
        ),
        (
            "b = f32[4] foo-start(a)",
            "HLO0002",
            "expects async wrapped opcode but sees: foo-start",
            14,
        ),
        (
            "b = f32[4] negate(a), bogus=1",
            "HLO0003",
            'unexpected attribute "bogus". Allowed attributes: backend_config',
            25,
        ),
        (
            "b = f32[4] reverse(a), dimensions={0}, dimensions={0}",
            "HLO0003",
            "attribute dimensions already exists",
            42,
        ),
        ("b = f32[4] reverse(a)", "HLO0004", "attribute dimensions is expected but not seen", 1),
        ("b = f32[4] reverse(a), dimensions={0,}", "HLO0005", "expects an integer", 40),
        ("b = f32[4] negate(c)", "HLO0006", "instruction does not exist: c", 21),
        (
            "b = f32[4] negate(a), control-predecessors={c}",
            "HLO0006",
            "instruction 'c' is not defined",
            47,
        ),
        ("a = f32[4] negate(a)", "HLO0007", "instruction already exists: a", 3),
        ("b = f32[4] call(a), to_apply=f", "HLO0008", "computation does not exist: f", 32),
        ("b = f32[4] add(a)", "HLO0009", "expects 2 operands, but has 1 operands", 17),
        (
            "b = f32[4] dynamic-slice(a), dynamic_slice_sizes={4}",
            "HLO0009",
            "Wrong number of operands.",
            27,
        ),
        (
            f"b = f32[4] scatter(a, a), {SCATTER}",
            "HLO0009",
            "expects an odd number of operands",
            21,
        ),
        ("b = conditional()", "HLO0009", "conditional expects a predicate", 18),
        (
            "b = f32[4]{0,1} negate(a)",
            "HLO0010",
            "Dimensions size is 1, but minor to major size is 2.",
            7,
        ),
        ("b = token[2] after-all()", "HLO0010", "token takes no dimensions", 7),
        (
            "b = s8[] constant(200)",
            "HLO0011",
            "value 200 is out of range for literal's primitive type S8 namely",
            21,
        ),
        (
            "b = f32[4] constant({1,2})",
            "HLO0011",
            "expects 4 elements in the []th element, but sees 2",
            27,
        ),
        ("b = f32[] constant(true)", "HLO0011", "expect floating point value", 22),
        ("b = token[] constant(0)", "HLO0011", "a constant cannot be a token", 24),
        (
            "b = f32[4] negate(f32[5] a)",
            "HLO0012",
            "The declared operand shape f32[5]{0} is not compatible",
            21,
        ),
        ("b = iota(), iota_dimension=0", "HLO0013", "cannot infer shape for opcode: iota", 7),
        ("b = add(a, f32[] constant(1)), metadata={}", "HLO0001", None, None),
        (
            "ROOT b = f32[4] negate(a) ROOT c = f32[4] negate(a)",
            "HLO0014",
            "one computation should have only one ROOT",
            29,
        ),
        ("b = f32[4] parameter(-1)", "HLO0015", "parameter number must be >= 0", 24),
        ("b = f32[4] parameter(0)", "HLO0015", "Duplicate parameter number 0", 24),
        (
            "%s4 = f32[4] negate(a)",
            "HLO0016",
            "illegal instruction name: s4; suggest renaming to: s4_",
            3,
        ),
        (
            "__b = f32[4] negate(a)",
            "HLO0016",
            "illegal instruction name: __b; suggest renaming to: a_b",
            3,
        ),
        (
            "b = f32[4] async-done(a)",
            "HLO0017",
            "AsyncUpdate and AsyncDone expect a single async op",
            14,
        ),
        (
            "b = f32[4] negate-start(a)",
            "HLO0017",
            "AsyncStart expects the op shape to be in the form",
            14,
        ),
        ("b = f32[4] tuple(a)", "HLO0019", "a tuple's shape is a tuple", 14),
        ("b = f32[8] concatenate(a, a), dimensions={0,1}", "HLO0019", "expects one dimension", 14),
        ("b = f32[4] all-gather(a), dimensions={}", "HLO0019", "expects one dimension", 14),
        (
            'b = f32[4] custom-call(a), custom_call_target="t", operand_layout_constraints={}',
            "HLO0019",
            "Expected 1 operand layout constraints, 0 given",
            14,
        ),
        (
            "b = f32[4] triangular-solve(a, a), transpose_a=UP",
            "HLO0005",
            "expects transpose but sees: UP",
            50,
        ),
        (
            "b = f32[4] negate(a), parameter_replication={true}",
            "HLO0003",
            'unexpected attribute "parameter_replication"',
            25,
        ),
        (
            "b = f32[4] reduce-window(a, a), window={size=1 stride=1x1}, to_apply={ x = f32[] parameter(0) }",
            "HLO0005",
            "expects 'stride=' has the same size as 'size='",
            None,
        ),
    ],
)
def test_message(line: str, code: str, message: str | None, column: int | None) -> None:
    if message is None:
        parse_module(HEAD + f"  {line}\n}}\n")
        return
    error = fails(HEAD + f"  {line}\n}}\n")
    (diagnostic,) = error.diagnostics
    assert diagnostic.code == code, error
    assert message in diagnostic.message
    place = diagnostic.place
    assert place is not None
    assert place.file == "m.hlo"
    if column is not None:
        assert place.column == column, error


@pytest.mark.parametrize(
    "text, code, message, place",
    [
        ("", "HLO0001", "expects name, found the end", "m.hlo:1:1"),
        ("HloModule m", "HLO0001", "expects name, found the end", "m.hlo:1:12"),
        ("HloModule m\nENTRY e {\n}\n", "HLO0001", "expects name, found '}'", "m.hlo:3:1"),
        (
            "HloModule m\nENTRY e {\n  a = f32[] parameter(0)\n",
            "HLO0001",
            "expects '}'",
            "m.hlo:3:25",
        ),
        (
            "HloModule m, foo=1\n",
            "HLO0020",
            'unexpected attribute "foo". Allowed attributes: alias_pass',
            "m.hlo:1:14",
        ),
        (
            "HloModule m, replica_count=1, replica_count=1\n",
            "HLO0020",
            "attribute replica_count already exists",
            "m.hlo:1:31",
        ),
        ("HloModule m, is_scheduled=maybe\n", "HLO0020", "expects 'true' or 'false'", "m.hlo:1:27"),
        (
            "HloModule m, input_output_alias={ {3}: (0, {}) }\nENTRY e { a = f32[] parameter(0) }",
            "HLO0020",
            "Trying to set up alias at {3} which is an invalid index for shape f32[]",
            "m.hlo:1:14",
        ),
        (
            'HloModule m\nFileNames\n1 "a"\nENTRY e { a = f32[] parameter(0) }',
            "HLO0020",
            "expects 'FunctionNames'",
            "m.hlo:4:1",
        ),
        (
            "HloModule m\nENTRY f { a = f32[] parameter(0) }\nENTRY g { a = f32[] parameter(0) }",
            "HLO0014",
            "expects only one ENTRY",
            "m.hlo:3:7",
        ),
        (
            "HloModule m\nf { a = f32[] parameter(0) }\nf { a = f32[] parameter(0) }",
            "HLO0007",
            "computation already exists: f",
            "m.hlo:3:1",
        ),
        (
            "HloModule m\nENTRY f (p: f32[]) -> f32[2] { p = f32[] parameter(0) }",
            "HLO0012",
            "Shape of computation f, f32[2], is not compatible with that of its root instruction p, f32[]",
            "m.hlo:2:23",
        ),
        (
            "HloModule m\nENTRY f { p = f32[] parameter(1) }",
            "HLO0015",
            "computation f has no parameter(0)",
            "m.hlo:2:7",
        ),
        ("HloModule m\n\0", "HLO0021", "a NUL character", "m.hlo:2:1"),
        (
            "r = f32[2] add(x, f32[2] y)",
            "HLO0006",
            "Operand had no shape in HLO text; cannot create parameter",
            "m.hlo:1:16",
        ),
        (
            "r = f32[2] negate(f32[2] x) r",
            "HLO0001",
            "expects the end after a single instruction",
            "m.hlo:1:29",
        ),
        ("r = " + "(" * 5000, "HLO0010", "deep", "m.hlo:1:"),
        (
            "r = f32[] " + "negate(" * 5000,
            "HLO0018",
            "maximum recursion depth exceeded",
            "m.hlo:1:",
        ),
    ],
)
def test_message_of_a_file(text: str, code: str, message: str, place: str) -> None:
    error = fails(text)
    assert error.code == code, error
    assert message in error.diagnostics[0].message
    assert str(error.diagnostics[0].place).startswith(place), error


def test_what_contains_the_fault_is_a_note() -> None:
    error = fails(HEAD + "  b = f32[4] negate(a), sharding={devices=[2]0}\n}\n")
    assert str(error).splitlines()[-1].startswith(
        "note: error parsing attribute sharding at m.hlo:4:25"
    ) or ("note: error parsing attribute sharding at m.hlo:4:25" in str(error))


def test_earlier_definitions_are_noted() -> None:
    assert "note: instruction previously defined here at m.hlo:3:3" in str(
        fails(HEAD + "  a = f32[4] negate(a)\n}\n")
    )
    assert "note: %a is defined at m.hlo:3:3" in str(
        fails(HEAD + "  b = f32[4] negate(f32[3] a)\n}\n")
    )


def test_near_names_are_suggested() -> None:
    assert "help: did you mean 'negate'?" in str(fails(HEAD + "  b = f32[4] negat(a)\n}\n"))


def test_lines_count_from_where_the_text_starts() -> None:
    with pytest.raises(HloError) as caught:
        parse_module("HloModule m\nENTRY e {\n}\n", "m.hlo", first_line=10)
    assert str(caught.value.diagnostics[0].place) == "m.hlo:12:1"


def test_the_whole_message() -> None:
    assert str(fails(HEAD + "  ROOT r = f32[4] add(a)\n}\n")) == (
        "m.hlo:4:22: error[HLO0009]: expects 2 operands, but has 1 operands\n"
        "  ROOT r = f32[4] add(a)\n"
        "                     ^~~"
    )
