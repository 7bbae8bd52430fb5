"""Reads the pretty form of an op by its template, and finds the types that the text leaves out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    MemRefType,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.tpu.op_classes import SEGMENTS
from mlirhlo.dialects.tpu.rows import Row, Slot
from mlirhlo.formats.mosaic.spellings import spelling
from mlirhlo.formats.mosaic.templates import (
    AllTypes,
    Dict,
    Group,
    Listed,
    Node,
    Spelled,
    Text,
    Types,
    Values,
    nodes_of,
)
from mlirhlo.formats.stablehlo.scan import BAD_VALUE, UNKNOWN

if TYPE_CHECKING:
    from mlirhlo.formats.mosaic.reader import KernelReader
    from mlirhlo.formats.stablehlo.reader_ops import Use

DYNAMIC = {"mixed": -(1 << 63), "mixed32": -(1 << 31)}
"""Stands in an array of numbers, of 64 or 32 bits, where an operand has the number."""
_FIXED: dict[str, Attribute] = {"index": IndexType(), "i1": i1, "i32": i32}
_MAX_RULES = 8


@dataclass(slots=True)
class Draft:
    """What has been read of an op so far."""

    row: Row
    start: int
    uses: dict[str, list[Use]] = field(default_factory=dict[str, "list[Use]"])
    types: dict[str, list[Attribute]] = field(default_factory=dict[str, list[Attribute]])
    properties: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])

    def slot(self, name: str) -> Slot | None:
        """The operand of that name."""
        return next((slot for slot in self.row.operands if slot.name == name), None)


def read_form(reader: KernelReader, row: Row, start: int) -> Operation:
    """Reads what follows the name of an op that has a template."""
    assert row.form is not None
    draft = Draft(row, start)
    for node in nodes_of(row.form):
        _read(reader, node, draft)
    return finish(reader, draft)


def finish(reader: KernelReader, draft: Draft) -> Operation:
    """The op of a draft."""
    row = draft.row
    operands: list[SSAValue] = []
    sizes: list[int] = []
    for slot in row.operands:
        uses = draft.uses.get(slot.name, [])
        sizes.append(len(uses))
        types = draft.types.get(slot.name)
        if types is None and uses:
            types = _types_by_rule(reader, draft, slot, len(uses))
        operands += reader.resolve(uses, types or [], draft.start)
    if row.has_segments:
        draft.properties[SEGMENTS] = DenseArrayBase.from_list(i32, sizes)
    results: list[Attribute] = []
    for slot in row.results:
        found = draft.types.get(slot.name)
        if found is None:
            found = [_by_rule(reader, draft, slot.rule or "", 0)] if slot.rule else []
        results += found
    return reader.make_row(row, operands, results, draft.properties, draft.attributes, draft.start)


def _read(reader: KernelReader, node: Node, draft: Draft) -> None:
    match node:
        case Text(tokens=tokens):
            for token in tokens:
                if token[0].isalpha():
                    reader.need_word(token)
                else:
                    reader.need(token)
        case Values(name):
            _read_values(reader, name, draft)
        case Types(name):
            _read_types(reader, name, draft)
        case Spelled(name, kind, operands):
            if kind in DYNAMIC:
                _read_mixed(reader, name, kind, operands, draft)
            else:
                draft.properties[name] = spelling(kind).read(reader)
        case Dict():
            draft.attributes = reader.optional_dictionary()
        case AllTypes():
            _read_all_types(reader, draft)
        case Listed(is_results):
            types = [reader.type()]
            while reader.accept(","):
                types.append(reader.type())
            (_give_results if is_results else _give_operands)(reader, types, draft)
        case Group(nodes):
            if _stands(reader, nodes):
                for inner in nodes:
                    _read(reader, inner, draft)


def _stands(reader: KernelReader, nodes: tuple[Node, ...]) -> bool:
    """Whether an optional part stands here."""
    node = next(node for node in nodes if not isinstance(node, Text) or node.tokens)
    if isinstance(node, Text):
        before = reader.pos
        for token in node.tokens:
            found = reader.accept_word(token) if token[0].isalpha() else reader.accept(token)
            if not found:
                reader.pos = before
                return False
        reader.pos = before
        return True
    if isinstance(node, Spelled):
        return spelling(node.kind).begins(reader)
    return reader.at("%")


def _read_values(reader: KernelReader, name: str, draft: Draft) -> None:
    slot = draft.slot(name)
    assert slot is not None, name
    if slot.is_variadic:
        draft.uses[name] = reader.uses()
        return
    use = reader.optional_value()
    if use is None:
        reader.expected("a value")
    draft.uses[name] = [use]


def _read_types(reader: KernelReader, name: str, draft: Draft) -> None:
    slot = draft.slot(name)
    if slot is None:
        slot = next(slot for slot in draft.row.results if slot.name == name)
        count = -1 if slot.is_variadic else 1
    else:
        count = len(draft.uses.get(name, ()))
    if count == 0:
        draft.types[name] = []
        return
    found = [reader.type()]
    while (count < 0 or len(found) < count) and reader.accept(","):
        found.append(reader.type())
    draft.types[name] = found


def _read_mixed(reader: KernelReader, name: str, kind: str, operands: str, draft: Draft) -> None:
    """Numbers and operands in one list; its brackets belong to the template."""
    uses: list[Use] = []
    numbers: list[int] = []
    if not reader.at("]"):
        while True:
            use = reader.optional_value()
            if use is not None:
                uses.append(use)
            numbers.append(DYNAMIC[kind] if use is not None else _number(reader, DYNAMIC[kind]))
            if not reader.accept(","):
                break
    draft.uses[operands] = uses
    draft.properties[name] = DenseArrayBase.from_list(i64 if kind == "mixed" else i32, numbers)


def _number(reader: KernelReader, least: int) -> int:
    at = reader.skip()
    value = reader.integer()
    if not least < value < -least:
        bits = (-least).bit_length()
        reader.fail(f"this number does not fit into {bits} bits", at, code=BAD_VALUE)
    return value


def _read_all_types(reader: KernelReader, draft: Draft) -> None:
    at = reader.skip()
    inputs, outputs = reader.function_types()
    _give_operands(reader, inputs, draft, at)
    _give_results(reader, outputs, draft, at)


def _give_operands(
    reader: KernelReader, types: list[Attribute], draft: Draft, at: int | None = None
) -> None:
    if sum(len(draft.uses.get(slot.name, ())) for slot in draft.row.operands) != len(types):
        reader.fail(f"{len(types)} types for another number of operands", at, code=BAD_VALUE)
    begin = 0
    for slot in draft.row.operands:
        count = len(draft.uses.get(slot.name, ()))
        draft.types[slot.name] = types[begin : begin + count]
        begin += count


def _give_results(
    reader: KernelReader, types: list[Attribute], draft: Draft, at: int | None = None
) -> None:
    row = draft.row
    sizes = row.sizes(row.results, len(types))
    if sum(sizes) != len(types):
        reader.fail(f"{row.name} has {len(row.results)} results", at, code=BAD_VALUE)
    begin = 0
    for slot, size in zip(row.results, sizes, strict=True):
        draft.types[slot.name] = types[begin : begin + size]
        begin += size


# ---------------------------------------------------------------- types left out


def _types_by_rule(reader: KernelReader, draft: Draft, slot: Slot, count: int) -> list[Attribute]:
    if slot.rule is not None:
        return [_by_rule(reader, draft, slot.rule, 0)] * count
    return [known_type(reader, use) for use in draft.uses[slot.name]]


def known_type(reader: KernelReader, use: Use) -> Attribute:
    """The type of a value that is defined already."""
    name, index, at = use
    values = reader.values.get(name)
    if values is None or index >= len(values):
        reader.fail(f"%{name} is not defined", at, length=len(name) + 1, code=UNKNOWN)
    return values[index].type


def _of(reader: KernelReader, draft: Draft, name: str, depth: int) -> Attribute:
    """The type of the first value of an entry."""
    found = draft.types.get(name)
    if found:
        return found[0]
    uses = draft.uses.get(name)
    if uses:
        return known_type(reader, uses[0])
    slots = (*draft.row.operands, *draft.row.results)
    rule = next((slot.rule for slot in slots if slot.name == name), None)
    if rule is None or depth > _MAX_RULES:
        reader.fail(f"the type of '{name}' cannot be told", draft.start, code=BAD_VALUE)
    return _by_rule(reader, draft, rule, depth + 1)


def _by_rule(reader: KernelReader, draft: Draft, rule: str, depth: int) -> Attribute:
    fixed = _FIXED.get(rule)
    if fixed is not None:
        return fixed
    function, is_call, argument = rule.rstrip(")").partition("(")
    if not is_call:
        return _of(reader, draft, rule, depth)
    type_ = _of(reader, draft, argument, depth)
    if function == "i1":
        return like(type_, i1)
    if not isinstance(type_, MemRefType | VectorType):
        reader.fail(
            f"'{argument}' is {reader.show(type_)}, no memref or vector",
            draft.start,
            code=BAD_VALUE,
        )
    shaped: Any = cast(Any, type_)
    element: Attribute = shaped.element_type
    if function == "element":
        return element
    assert function == "shuffled"
    mask = cast("DenseArrayBase[Any]", draft.properties["mask"])
    return VectorType(cast(Any, element), [len(mask.get_values()), *shaped.get_shape()[1:]])


def like(type_: Attribute, element: Attribute) -> Attribute:
    """`element`, or the vector type with these elements and the shape of `type_`."""
    if not isinstance(type_, VectorType):
        return element
    vector: Any = cast(Any, type_)
    return VectorType(cast(Any, element), vector.get_shape(), vector.scalable_dims)
