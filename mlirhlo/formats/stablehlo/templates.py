"""Pretty forms that a template describes: how they are read and how they are printed.

A template is text with fields in braces; `(? … )` surrounds what is left out where the property in
it is absent. See `dialects/stablehlo/rows.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.stablehlo.op_classes import TableOp
from mlirhlo.dialects.stablehlo.rows import OpRow
from mlirhlo.formats.stablehlo.fields import FIELDS
from mlirhlo.formats.stablehlo.type_forms import TYPE_FORMS

if TYPE_CHECKING:
    from mlirhlo.formats.stablehlo.printer import Printer
    from mlirhlo.formats.stablehlo.reader import Reader


@dataclass(slots=True)
class Draft:
    """What has been read of an op so far."""

    row: OpRow
    uses: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])
    operand_types: list[Attribute] = field(default_factory=list[Attribute])
    result_types: list[Attribute] = field(default_factory=list[Attribute])
    properties: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    last_list_was_empty: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Words and marks."""

    text: str


@dataclass(frozen=True, slots=True)
class Field:
    """`{name}` or `{name:kind}`."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Group:
    """`(? … )`."""

    nodes: tuple[Node, ...]
    property: str


Node: TypeAlias = "Text | Field | Group"

_TOKEN = re.compile(r"\{([$\w+?]+)(?::(\w+))?\}|\(\?|\)")


@lru_cache(maxsize=1024)
def nodes_of(template: str) -> tuple[Node, ...]:
    """The parts of a template."""
    stack: list[list[Node]] = [[]]
    begin = 0
    for match in _TOKEN.finditer(template):
        token = match[0]
        if token == ")" and len(stack) == 1:
            continue
        if match.start() > begin:
            stack[-1].append(Text(template[begin : match.start()]))
        begin = match.end()
        if token == "(?":
            stack.append([])
        elif token == ")":
            inner = tuple(stack.pop())
            name = next(node.name for node in inner if isinstance(node, Field))
            stack[-1].append(Group(inner, name))
        else:
            stack[-1].append(Field(match[1], match[2] or ""))
    if begin < len(template):
        stack[-1].append(Text(template[begin:]))
    return tuple(stack[0])


# ---------------------------------------------------------------- reading


def read(reader: Reader, row: OpRow, cls: type[TableOp], start: int) -> Operation:
    """Reads what stands after the name of an op."""
    assert row.form is not None
    draft = Draft(row)
    for node in nodes_of(row.form):
        _read_node(reader, node, draft)
    at = start
    operands = reader.resolve(draft.uses, draft.operand_types, at)
    return reader.make(cls, operands, draft.result_types, draft.properties, draft.attributes, start)


def _read_node(reader: Reader, node: Node, draft: Draft) -> None:
    match node:
        case Text(text):
            if draft.last_list_was_empty and text.startswith(","):
                # An empty list and its comma may both be missing.
                draft.last_list_was_empty = False
                if not reader.at(","):
                    text = text[1:]
            reader.literal(_spaced(text))
        case Group(inner):
            before = reader.pos
            first = inner[0]
            if isinstance(first, Text):
                for token in _spaced(first.text).split():
                    found = (
                        reader.accept_word(token) if token[0].isalpha() else reader.accept(token)
                    )
                    if not found:
                        reader.pos = before
                        return
                inner = inner[1:]
            for part in inner:
                _read_node(reader, part, draft)
        case Field(name, kind):
            _read_field(reader, name, kind, draft)


@lru_cache(maxsize=1024)
def _spaced(text: str) -> str:
    return re.sub(r"([,=()\[\]:])", r" \1 ", text)


def _read_field(reader: Reader, name: str, kind: str, draft: Draft) -> None:
    if kind:
        FIELDS[kind].read(reader, name, draft)
    elif name == "operands":
        # Once, `convert(%x)` had its operand in brackets.
        is_bracketed = reader.accept("(")
        draft.uses += reader.uses()
        if is_bracketed:
            reader.need(")")
        draft.last_list_was_empty = False
    elif name[0] == "$":
        _read_operand(reader, name[1:], draft)
    elif name == "dict":
        for key, value in reader.optional_dictionary().items():
            if key in draft.row.by_name and key not in draft.properties:
                draft.properties[key] = value
            else:
                draft.attributes[key] = value
    else:
        TYPE_FORMS[name].read(reader, draft)


def _read_operand(reader: Reader, name: str, draft: Draft) -> None:
    operand = next(o for o in draft.row.operands if o.name == name)
    if operand.is_variadic:
        uses = reader.uses()
        draft.last_list_was_empty = not uses
        draft.uses += uses
        return
    use = reader.optional_value()
    if use is None:
        reader.expected(f"the operand '{name}'")
    draft.uses.append(use)


# ---------------------------------------------------------------- printing

Part: TypeAlias = "str | Callable[[Printer, TableOp], str]"


@lru_cache(maxsize=1024)
def parts_of(template: str) -> tuple[Part, ...]:
    """A template as texts and functions that print."""
    return tuple(_part(node, template) for node in nodes_of(template))


def text_of(printer: Printer, op: TableOp, template: str) -> str:
    """What stands after the name of an op."""
    return "".join(
        part if isinstance(part, str) else part(printer, op) for part in parts_of(template)
    )


def _part(node: Node, template: str) -> Part:
    match node:
        case Text(text):
            return text
        case Group(inner, name):
            name = name.partition("+")[0]
            parts = [_part(n, template) for n in inner]

            def group(printer: Printer, op: TableOp) -> str:
                value = op.properties.get(name)
                if value is None or printer.is_default(op, name, value):
                    return ""
                return "".join(p if isinstance(p, str) else p(printer, op) for p in parts)

            return group
        case Field(name, kind):
            return _field_part(name, kind, template)


def _field_part(name: str, kind: str, template: str) -> Part:
    if kind:
        shown = FIELDS[kind]
        names = name.split("+")
        return lambda printer, op: shown.text(printer, op, names)
    if name == "operands":
        return lambda printer, op: ", ".join([printer.value(v) for v in op.operands])
    if name[0] == "$":
        inner = name[1:]
        return lambda printer, op: printer.operand_text(op, inner)
    if name == "dict":
        shown_names = frozenset(_shown(nodes_of(template)))
        return lambda printer, op: printer.dictionary_text(op, shown_names)
    return TYPE_FORMS[name].text


def _shown(nodes: tuple[Node, ...]) -> list[str]:
    """Properties that a template shows."""
    found: list[str] = []
    for node in nodes:
        if isinstance(node, Group):
            found += _shown(node.nodes)
        elif isinstance(node, Field):
            found += FIELDS[node.kind].shows(node.name) if node.kind else []
    return found
