"""What is written is read: every format, of valid modules and mutants, with names and keys of any bytes."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from unit.corpus import repository_texts

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.debug.fuzz.mutants import judge, mutants, written_finding
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats import load, to_bytes
from mlirhlo.formats.proto import encode_module

TEXTS = [text for _, text in repository_texts() if len(text) <= 2500]
ODD = (
    *(
        "a b",
        "a=b",
        '"',
        "é",
        "a\nb",
        "05",
        "x.05",
        "a.-0",
        "%x",
        "\\",
        "\0",
        "{",
        "}",
        "f32",
        "__x",
        "",
        "*/",
        "//",
    ),
    *("tuple", "ROOT", "true", "-1", "b,c", "(", '{"a":{}}', "{'a'}", "/*", "\x7f", "a" * 300),
)
"""Strings that text has to write with care."""
LAYOUTS = (
    "{1,5}",
    "{1,1}",
    "{1,-1}",
    "{1,0:T(0)}",
    "{1,0:E(-1)}",
    "{1,0:SC(5:1)}",
    "{1,0:P(f32[2]{3})}",
)
"""Layouts of matrices that fit none."""


def shapes_of_a_layout(layout: str) -> Iterator[tuple[str, str]]:
    """Modules with a shape of this layout, by where it stands."""
    x = "x = f32[4,8]{1,0} parameter(0)"
    shape, last = f"f32[4,8]{layout}", "ROOT r = f32[4,8]{1,0} negate(x)"
    yield "result", f"ENTRY e {{ {x} ROOT r = {shape} negate(x) }}"
    yield "parameter", f"ENTRY e {{ x = {shape} parameter(0) {last} }}"
    yield (
        "tuple",
        f'ENTRY e {{ {x} ROOT r = ({shape}, (f32[], {shape})) custom-call(x), custom_call_target="t" }}',
    )
    yield "buffer", f'ENTRY e {{ {x} ROOT r = b({shape}) custom-call(x), custom_call_target="t" }}'
    yield "constant", f"ENTRY e {{ ROOT r = {shape} constant({{...}}) }}"
    constrained = f"operand_layout_constraints={{f32[4,8]{{1,0}}, {shape}}}"
    yield (
        "constraint",
        f'ENTRY e {{ {x} ROOT r = f32[] custom-call(x, x), custom_call_target="t", {constrained} }}',
    )
    yield (
        "outfeed",
        f"ENTRY e {{ {x} t = token[] after-all() ROOT r = token[] outfeed(x, t), outfeed_shape={shape} }}",
    )
    for where in (f"{{({shape})->f32[4,8]{{1,0}}}}", f"{{(f32[4,8]{{1,0}})->{shape}}}"):
        yield "header", f"HloModule m, entry_computation_layout={where}\nENTRY e {{ {x} {last} }}"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_that_fits_no_array_is_refused_wherever_it_stands(layout: str) -> None:
    for where, text in shapes_of_a_layout(layout):
        try:
            problems = verify_module(load(text.encode()).module)
        except HloError as problem:  # what cannot be meant is refused by the reader
            problems = list(problem.diagnostics)
        assert problems, where
        for problem in problems:
            assert problem.place is not None
            assert problem.place.line, where


def test_layouts_that_fit_are_taken_wherever_they_stand() -> None:
    for where, text in shapes_of_a_layout("{0,1:T(2,4)E(64)S(1)}"):
        problems = verify_module(load(text.encode()).module)
        assert not [p for p in problems if "layout" in p.message or "tile" in p.message], where


NAMED = """\
HloModule m, frontend_attributes={k="v"}

c (q: f32[4]) -> f32[4] {
  q = f32[4] parameter(0)
  ROOT s = f32[4] negate(q)
}

ENTRY e (x: f32[4]) -> f32[4] {
  x = f32[4] parameter(0), metadata={op_name="f" source_file="g.py"}
  a = f32[4] call(x), to_apply=c, frontend_attributes={k="v"}
  a.5 = f32[4] add(a, x), backend_config="b", statistics={visualizing_index=0,s=1}
  ROOT r = f32[4] custom-call(a.5), custom_call_target="t", api_version=API_VERSION_UNSPECIFIED, called_computations={c}
}
"""


def string_fields(message: Any) -> Iterator[tuple[Any, FieldDescriptor]]:
    """Fields of strings and bytes that are set, maps of strings among them, with their messages."""
    for field, value in message.ListFields():
        entry = field.message_type
        if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            yield message, field
        elif entry is not None and entry.GetOptions().map_entry:
            if entry.fields_by_name["value"].type == field.TYPE_STRING:
                yield message, field
        elif entry is not None:
            for part in value if field.is_repeated else [value]:
                yield from string_fields(part)


def put(message: Any, field: FieldDescriptor, odd: str) -> None:
    """Sets a field to a string, or to one that holds it; of a map, a key."""
    if field.message_type is not None:
        getattr(message, field.name)[odd] = odd
        return
    value = odd.encode() if field.type == field.TYPE_BYTES else odd
    if field.is_repeated:
        getattr(message, field.name)[0] = value
    else:
        setattr(message, field.name, value)


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_any_string_of_a_message_is_written_so_that_it_is_read(odd: str) -> None:
    proto = encode_module(load(NAMED.encode()).module)
    count = len(list(string_fields(proto)))
    choose = random.Random(odd)
    for number in (0, *choose.sample(range(1, count), 4)):
        changed = copy.deepcopy(proto)
        message, field = list(string_fields(changed))[number]
        put(message, field, odd)
        try:
            module = load(changed.SerializeToString()).module
        except HloError:
            continue
        if verify_module(module):
            continue
        for name in ("hlo", choose.choice(("mlir", "mlir-generic", "pb", "pbtxt", "json"))):
            assert written_finding(module, name) is None, (field.full_name, name)


def test_names_with_numbers_that_read_as_others() -> None:
    text = """\
builtin.module @m {
  hlo.computation @c.05 {
    %x = hlo.parameter 0 : tensor<4xf32>
    hlo.return %x
  }
  hlo.computation entry @e {
    %x = hlo.parameter 0 : tensor<4xf32>
    %b.05 = hlo.negate %x : tensor<4xf32>
    %b.5 = hlo.negate %b.05 : tensor<4xf32>
    %a.-0 = hlo.negate %b.5 : tensor<4xf32>
    %d.00.1 = hlo.call %a.-0 {to_apply = @c.05} : tensor<4xf32>
    %c.0 = hlo.negate %d.00.1 : tensor<4xf32>
    hlo.return %c.0
  }
}
"""
    printed = to_bytes(load(text.encode()).module)
    assert to_bytes(load(printed).module) == printed
    assert b"%b.5 = " in printed
    assert b".05" not in printed
    assert b"%c.5 (" in printed


@pytest.mark.parametrize("seed", range(40))
def test_names_of_one_root_keep_apart(seed: int) -> None:
    """Passes leave any names: `a` and `a.0` are one name to the reader, `a.05` and `a.5` too."""
    choose = random.Random(seed)
    module = load(NAMED.encode()).module
    for op in HloModule(module).instructions:
        op.instruction_name = choose.choice(("a", "b", "a.1")) + choose.choice(
            ("", ".0", ".1", ".00", ".01", ".-0", ".0.0")
        )
    printed = to_bytes(module)
    assert to_bytes(load(printed).module) == printed


def test_mutants_are_written_so_that_they_are_read() -> None:
    findings = {
        number: outcome
        for number, text in mutants(3, TEXTS, iter(range(30)))
        if " " in (outcome := judge(text, ("formats",)))
    }
    assert not findings


def random_proto(choose: random.Random) -> bytes:
    """A message of a text with one or two numbers or strings exchanged."""
    proto = encode_module(load(choose.choice(TEXTS).encode()).module)
    for _ in range(choose.choice((1, 2))):
        put(*choose.choice(list(string_fields(proto))), choose.choice(ODD))
    return proto.SerializeToString()


@pytest.mark.parametrize("seed", range(12))
def test_messages_with_accidents_are_written_so_that_they_are_read(seed: int) -> None:
    try:
        module = load(random_proto(random.Random(seed))).module
    except HloError:
        return
    for name in ("hlo", "mlir", "pb") if not verify_module(module) else ():
        assert written_finding(module, name) is None
