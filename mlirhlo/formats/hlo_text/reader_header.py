"""The first lines of a module: name, header attributes, stack-frame tables.

Source: HLO text, "Module header". A header has at most a few attributes, so there is one way only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.aliasing import (
    BufferDonors,
    BufferDonorsAttr,
    InputOutputAliases,
    InputOutputAliasesAttr,
    read_buffer_donor,
    read_input_output_alias,
)
from mlirhlo.dialects.hlo.attributes.annotations import (
    FrontendAttributesAttr,
    read_frontend_attributes,
)
from mlirhlo.dialects.hlo.attributes.base import TRUE, integer, string
from mlirhlo.dialects.hlo.attributes.header import (
    BooleansAttr,
    ProgramLayout,
    ProgramLayoutAttr,
    RawTextAttr,
    StackFramesAttr,
    read_booleans,
    read_raw_braces,
    read_stack_frames,
)
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import read_shape, subshape
from mlirhlo.dialects.hlo.syntax import SyntaxProblem, braces
from mlirhlo.formats.hlo_text import reader_problems as codes
from mlirhlo.formats.hlo_text.lexer import KEYWORDS, Lexer
from mlirhlo.formats.hlo_text.reader_pieces import ATTRIBUTE
from mlirhlo.formats.hlo_text.reader_problems import ReadProblem, coded
from mlirhlo.formats.hlo_text.reader_state import ModuleState, ReadOptions
from mlirhlo.formats.hlo_text.suggestions import did_you_mean

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")

Value = Callable[[Lexer, ReadOptions], Attribute | None]
"""Reads a header attribute; None when it says no more than its default."""


def _true(lexer: Lexer, options: ReadOptions) -> Attribute | None:
    return TRUE if lexer.boolean() else None


def _count(lexer: Lexer, options: ReadOptions) -> Attribute | None:
    value = lexer.integer()
    return None if value == 1 else integer(value)


def _booleans(lexer: Lexer, options: ReadOptions) -> Attribute | None:
    value = read_booleans(lexer)
    return None if value.values in ((), (False,)) else BooleansAttr(value)


def _aliases(lexer: Lexer, options: ReadOptions) -> Attribute | None:
    # One alias for each output, in the order of outputs, as in XLA's tree of them.
    by_output = {entry.output_index: entry for entry in read_input_output_alias(lexer).entries}
    entries = tuple(by_output[index] for index in sorted(by_output))
    return InputOutputAliasesAttr(InputOutputAliases(entries)) if entries else None


def _donors(lexer: Lexer, options: ReadOptions) -> Attribute | None:
    entries = tuple(sorted(set(read_buffer_donor(lexer).entries)))
    return BufferDonorsAttr(BufferDonors(entries)) if entries else None


def _frontend_attributes(lexer: Lexer, options: ReadOptions) -> Attribute | None:
    value = read_frontend_attributes(lexer)
    return FrontendAttributesAttr(value) if value.entries else None


def _layout(lexer: Lexer, options: ReadOptions) -> Attribute | None:
    default = not options.keep_unset_layouts
    lexer.expect("{")
    parameters = lexer.items("(", ")", lambda: read_shape(lexer, default))
    lexer.expect("->")
    result = read_shape(lexer, default)
    lexer.expect("}")
    return ProgramLayoutAttr(ProgramLayout(parameters, result))


def _raw(lexer: Lexer, options: ReadOptions) -> Attribute | None:
    return RawTextAttr(read_raw_braces(lexer))


ATTRIBUTES: Mapping[str, Value] = {
    "is_scheduled": _true,
    "input_output_alias": _aliases,
    "buffer_donor": _donors,
    "alias_passthrough_params": _true,
    "entry_computation_layout": _layout,
    "allow_spmd_sharding_propagation_to_parameters": _booleans,
    "allow_spmd_sharding_propagation_to_output": _booleans,
    "replica_count": _count,
    "num_partitions": _count,
    "frontend_attributes": _frontend_attributes,
    "origin_recovery_table": _raw,
    # libtpu 0.0.51 on
    "debug_attributes": _raw,
}
"""How the value of every header attribute is read."""


def read_module_header(state: ModuleState, lexer: Lexer) -> None:
    """Reads `HloModule name, attributes` and the tables. Raises `SyntaxProblem`."""
    lexer.take()
    module = HloModule(state.module)
    token = lexer.look()
    if lexer.at_name() or token.text in KEYWORDS:  # which XLA prints, too
        lexer.take()
        module.op.properties["sym_name"] = string(token.text)
    elif lexer.peek(","):
        # A fingerprint: names are left out, and constants may be.
        state.essential_constants = True
    else:
        raise ReadProblem(
            codes.SYNTAX, token.start, f"expects name of the module, found {token.text[:40]!r}"
        )
    seen: set[str] = set()
    raw: list[str] = []
    while lexer.accept(","):
        _attribute(state, lexer, module, seen, raw)
    if raw:
        module.set("raw_attributes", string(", ".join(raw)))
    if lexer.is_keyword(_TABLES[0]):
        _tables(state, lexer, module)


def _attribute(
    state: ModuleState, lexer: Lexer, module: HloModule, seen: set[str], raw: list[str]
) -> None:
    token = lexer.look()
    key = token.text
    if token.kind != "key":
        raise ReadProblem(codes.SYNTAX, token.start, f"expects attribute name, found {key[:40]!r}")
    if key in seen:
        raise ReadProblem(codes.HEADER, token.start, f"attribute {key} already exists", len(key))
    seen.add(key)
    lexer.take()
    read = ATTRIBUTES.get(key)
    if read is None:
        if state.options.carry_unknown_attributes:
            end = lexer.text.find("\n", token.start)
            line = lexer.text[token.start : end if end >= 0 else None]
            match = ATTRIBUTE.match(", " + line)
            if match is not None:
                text = match.group()[2:].rstrip()
                raw.append(text)
                lexer.position = token.start + len(text)
                return
        allowed = ", ".join(sorted(ATTRIBUTES))
        raise ReadProblem(
            codes.HEADER,
            token.start,
            f'unexpected attribute "{key}". Allowed attributes: {allowed}',
            len(key),
            help=did_you_mean(key, ATTRIBUTES),
        )
    try:
        value = read(lexer, state.options)
    except SyntaxProblem as problem:
        raise coded(problem, codes.HEADER).within(
            f"error parsing attribute {key}", token.start
        ) from None
    if key == "input_output_alias":
        state.alias_offset = token.start
    if value is not None:
        module.set(key, value)


def check_aliases(state: ModuleState) -> None:
    """Every aliased output is part of the entry's result. Raises `ReadProblem`."""
    module = HloModule(state.module)
    aliases = module.input_output_alias
    if aliases is None:
        return
    shape = module.entry.root.shape
    for entry in aliases.entries:
        try:
            subshape(shape, entry.output_index)
        except IndexError:
            raise ReadProblem(
                codes.HEADER,
                state.alias_offset,
                f"Trying to set up alias at {braces(entry.output_index)} which is an invalid index"
                f" for shape {shape.to_string(layout=False)}",
                len("input_output_alias"),
            ) from None


def _tables(state: ModuleState, lexer: Lexer, module: HloModule) -> None:
    start = lexer.skip()
    try:
        frames = read_stack_frames(lexer)
    except SyntaxProblem as problem:
        raise coded(problem, codes.HEADER) from None
    text = lexer.text
    for table in _TABLES:
        if text.find(table, start, lexer.position) < 0:
            raise ReadProblem(codes.HEADER, lexer.skip(), f"expects '{table}'")
    module.set("stack_frames", StackFramesAttr(frames))
