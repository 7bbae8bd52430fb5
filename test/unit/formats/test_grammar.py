"""The grammar of record and the reader see the same in every text."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest
from hypothesis import given
from lark import Token
from lark.exceptions import LarkError
from strategies.drawn import examples, strategy_of
from strategies.text import print_options, random_shape, texts
from support import needs_shared, one_in, sampled
from unit.corpus import corpus_texts, repository_texts

from mlirhlo.debug.fuzz import texts as fuzz_text
from mlirhlo.debug.fuzz.generators.choices import Choices
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import OPCODES, ComputationOp, HloModule, Instruction
from mlirhlo.dialects.hlo.attributes.base import symbols_of
from mlirhlo.dialects.hlo.attributes.sharding import Sharding
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.shapes import compatible, parse_shape
from mlirhlo.dialects.hlo.syntax import Cursor
from mlirhlo.dialects.hlo.table import COMMON, DeclaredShape
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.formats.hlo_text.grammar import (
    ComputationRecord,
    InstructionRecord,
    grammar,
    parse_records,
)
from mlirhlo.formats.hlo_text.options import PrintOptions
from mlirhlo.formats.hlo_text.reader_attributes import settle

FILLED_IN = {
    "replica_groups", "dimensions", "outfeed_shape", "called_computations", "parameter_number",
    "literal", "control_predecessors",
}  # fmt: skip
"""Properties that may be there though the text does not say them."""


@lru_cache(maxsize=4096)
def tokens(key: str, value: str) -> tuple[str, ...]:
    """Tokens of an attribute by the grammar, without positions."""
    tree = grammar().parse(f"{key}={value}", start="attribute")
    return tuple(str(token) for token in tree.scan_values(lambda _: True) if token is not None)


def is_name(token: object) -> bool:
    return isinstance(token, Token) and token.type == "NAME"


def root_of(name: str | None) -> str:
    """A name without the number that makes it unique."""
    return re.sub(r"\.[0-9]+$", "", name or "")


DROPPED_BY_CHECKS = ("type", "async_execution_thread")
"""Attributes whose default depends on the operands."""

KEPT_AS_WRITTEN = (
    "integers", "integer_lists", "dim_labels", "output_to_operand_aliasing", "boolean",
)  # fmt: skip
"""Kinds whose values are printed with the tokens they were written with."""

Defined = dict[str, Instruction]
"""Instructions of one computation by their names in the text."""


def compare_instruction(
    record: InstructionRecord, op: Instruction, by_name: dict[str, ComputationOp], defined: Defined
) -> None:
    """Asserts that the op says what the grammar found."""
    assert root_of(op.instruction_name) == root_of(record.name or f"{record.opcode}.anon")
    assert op.opcode.name == record.opcode
    if record.shape is not None and record.opcode != "constant":
        shape = parse_shape(record.shape)
        # Some declared shapes do not count unless they fit; the oracle's tests hold what is made of them.
        if op.opcode.declared_shape is DeclaredShape.KEPT or compatible(op.shape, shape):
            assert op.shape == shape, record
    assert len(op.inputs) == len(record.operands)
    for wanted, value in zip(record.operands, op.inputs, strict=True):
        owner = value.owner
        assert isinstance(owner, Instruction)
        if isinstance(wanted, str):
            assert owner is defined[wanted]
        else:
            compare_instruction(wanted, owner, by_name, defined)
    if record.opcode == "parameter":
        assert op.parameter_number == int(record.value)  # type: ignore[attr-defined]
    if record.opcode == "constant":
        assert record.shape is not None
        assert op.literal == Literal.from_text(parse_shape(record.shape), record.value)  # type: ignore[attr-defined]
    seen: set[str] = set()
    for key, text in record.attributes.items():
        if key == "control-predecessors":
            tree = grammar().parse(f"{key}={text}", start="attribute")
            names = [str(t).removeprefix("%") for t in tree.scan_values(is_name)]
            assert [v.owner for v in op.control_predecessors] == [defined[n] for n in names]
            continue
        spec = op.opcode.attribute(key)
        assert spec is not None
        seen.add(spec.property_name)
        found = op.properties.get(spec.property_name)
        if spec.kind.names_computations:
            if "=" not in text and not spec.read_only:
                tree = grammar().parse(f"{key}={text}", start="attribute")
                names = tree.scan_values(is_name)
                assert [str(n).removeprefix("%") for n in names] == list(symbols_of(found))
            continue
        cursor = Cursor(text)
        wanted_value = settle(spec, spec.kind.read(cursor))
        cursor.expect_end()
        if key == "sharding" and found != wanted_value:
            sharding = op.sharding
            assert isinstance(sharding, Sharding)
            assert wanted_value is not None
            assert set(sharding.elements) <= {wanted_value.data}  # type: ignore[attr-defined]
        elif found is None or wanted_value is None:
            assert found is wanted_value or key in DROPPED_BY_CHECKS, (key, text)
        else:
            # By their text: a nan does not equal itself.
            printed = spec.kind.write(found)
            assert printed == spec.kind.write(wanted_value), (key, text)
            if spec.kind.name in KEPT_AS_WRITTEN:
                assert tokens(key, printed) == tokens(key, text)
    assert set(op.properties) <= seen | FILLED_IN
    inline = [name for key in op.calling_keys for name in symbols_of(op.properties.get(key))]
    bodies = [by_name[name] for name in inline if name.startswith("_")]
    for body, computation in zip(record.bodies, bodies, strict=False):
        compare_instructions(body, computation, by_name)


def is_nested(op: Instruction, records: tuple[InstructionRecord, ...]) -> bool:
    """Whether an op was written inside an operand list."""
    nested = any(not isinstance(o, str) for record in records for o in record.operands)
    return nested and root_of(op.instruction_name) == f"{op.opcode.name}.anon"


def compare_instructions(
    records: tuple[InstructionRecord, ...],
    computation: ComputationOp,
    by_name: dict[str, ComputationOp],
) -> None:
    ops = [op for op in computation.instructions if not is_nested(op, records)]
    assert len(ops) == len(records)
    defined: Defined = {}
    for record, op in zip(records, ops, strict=True):
        compare_instruction(record, op, by_name, defined)
        defined[record.name] = op
    root = next((i for i, record in enumerate(records) if record.is_root), len(records) - 1)
    assert computation.root is ops[root]


def compare(text: str) -> None:
    """Asserts that grammar and reader agree on a module."""
    record = parse_records(text)
    module = HloModule(parse_module(text))
    assert module.name == record.name
    by_name = module.by_name()
    for wanted in record.computations:
        computation = by_name[wanted.name]
        assert (computation.is_entry is not None) == is_entry(wanted, record.computations)
        if wanted.thread:
            assert computation.thread == wanted.thread
        compare_instructions(wanted.instructions, computation, by_name)


def is_entry(wanted: ComputationRecord, all_: tuple[ComputationRecord, ...]) -> bool:
    return wanted.is_entry or (wanted is all_[-1] and not any(c.is_entry for c in all_))


@pytest.mark.parametrize(
    "name, text", list(repository_texts()), ids=lambda v: v if len(v) < 200 else ""
)
def test_repository_texts(name: str, text: str) -> None:
    if "canonical" in name:
        parse_records(text)
    elif len(text) < 20_000:
        compare(text)


@needs_shared
@pytest.mark.slow
@sampled(20)
def test_corpus(every: int) -> None:
    count = 0
    for name, text in one_in(every, corpus_texts(30_000)):
        try:
            if "canonical" in name:
                parse_records(text)
            else:
                compare(text)
        except (AssertionError, LarkError, HloError) as error:
            raise AssertionError(name) from error
        count += 1
    assert count > 1000 // every


@pytest.mark.parametrize("loose", [False, True])
def test_generated(loose: bool) -> None:
    @examples(15)
    @given(texts(loose))
    def agree(text: str) -> None:
        compare(text)

    agree()


def test_every_opcode_is_generated() -> None:
    """Some text with every row, read by both."""

    @examples(1)
    @given(texts(loose=False, rows=list(OPCODES.values())))
    def agree(text: str) -> None:
        compare(text)

    agree()


@examples(300)
@given(strategy_of(random_shape))
def test_generated_shapes(text: str) -> None:
    grammar().parse(text, start="shape")
    parse_shape(text)


@pytest.mark.slow
def test_printed_texts() -> None:
    """What is printed, whatever the options, is in the grammar and reads as the same module."""

    @examples(40)
    @given(texts(loose=False), strategy_of(print_options))
    def agree(text: str, options: PrintOptions) -> None:
        module = parse_module(text)
        printed = print_module(module, options)
        if options.async_sugar:
            parse_records(printed)  # `negate-start` is read as an async-start, a rule of its own
        else:
            compare(printed)
        assert print_module(parse_module(printed), options) == printed
        # Blanks that no printer writes: the quick way leaves every line to the general one.
        general = printed.replace(" = ", "  /**/  =  ")
        assert print_module(parse_module(general), options) == printed

    agree()


def damaged(choose: Choices) -> str:
    """A text of the repository with something wrong in it."""
    texts = [text for _, text in repository_texts() if len(text) < 3000]
    return fuzz_text.mutate(choose.random(), choose.pick(texts))


@examples(300)
@given(strategy_of(damaged))
def test_what_is_read_is_in_the_grammar(text: str) -> None:
    """Damaged text: the grammar may take more than the reader (it counts nothing), never less."""
    if not text.startswith("HloModule") or "\0" in text:
        return
    try:
        parse_module(text)
    except HloError:
        return
    parse_records(text)


@pytest.mark.parametrize("literal", ["{,1,,2,}", "{1 2}", "{/*c*/,1,2}", "{1,...}", "{...}"])
def test_commas_of_literals(literal: str) -> None:
    """Between elements stands any number of them, as in XLA."""
    compare(f"HloModule m\nENTRY e {{ a = s32[2] constant({literal}) }}")


def test_every_kind_of_value_is_tried() -> None:
    from strategies.text import ONLY, VALUES

    kinds = {s.kind.name for s in COMMON}
    kinds |= {s.kind.name for row in OPCODES.values() for s in row.attributes if s.key not in ONLY}
    assert kinds - {"computation", "computations", "shapes"} <= VALUES.keys()


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m\nENTRY e { a= f32[] parameter(0) }",
        "HloModule m\nENTRY e { true = f32[] parameter(0) }",
        "HloModule m\nENTRY e { s4 = f32[] parameter(0) }",
        "HloModule m\nENTRY e { a = f32[2] reverse(a), dimensions={0,} }",
        "HloModule m\nENTRY e { a = f32[2,] parameter(0) }",
        "HloModule m\nENTRY e { }",
        "HloModule m\n",
        "HloModule m, ENTRY e { a = f32[] parameter(0) }",
        'HloModule m\nENTRY e { a = f32[] parameter(0), metadata={op_nam="x"} }',
        "HloModule m\nENTRY e { a = f32[] constant({1 }",
        "HloModule m\nENTRY e { a = f32[] constant(,1) }",
    ],
)
def test_both_refuse(text: str) -> None:
    with pytest.raises(LarkError):
        parse_records(text)
    with pytest.raises(HloError):
        parse_module(text)
