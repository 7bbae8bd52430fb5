"""Pretty forms that no template describes, and the register of all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, Region

from mlirhlo.dialects import chlo, mhlo, stablehlo
from mlirhlo.dialects.hlo.attributes.base import boolean, integer, integers
from mlirhlo.dialects.hlo.build import append
from mlirhlo.dialects.quick import create_op
from mlirhlo.dialects.stablehlo.op_classes import TableOp
from mlirhlo.dialects.stablehlo.types import NO_ENCODING
from mlirhlo.formats.stablehlo import functions
from mlirhlo.formats.stablehlo.fields import read_ints
from mlirhlo.formats.stablehlo.reader_types import tensor_type
from mlirhlo.formats.stablehlo.scan import BAD_VALUE
from mlirhlo.formats.stablehlo.templates import Draft, read

if TYPE_CHECKING:
    from mlirhlo.formats.stablehlo.reader import Reader

FormReader: TypeAlias = "Callable[[Reader, int], Operation]"
"""Reads what follows the name of an op; the number is where the name stands."""


@cache
def readers() -> dict[str, FormReader]:
    """How the pretty form of each op is read."""
    found: dict[str, FormReader] = dict(functions.READERS)
    for rows, classes in (
        (stablehlo.ROWS, stablehlo.OP_CLASSES),
        (chlo.ROWS, chlo.OP_CLASSES),
        (mhlo.ROWS, mhlo.OP_CLASSES),
    ):
        for name, row in rows.items():
            if row.form is None:
                continue
            custom = _CUSTOM.get(row.form)
            if custom is not None:
                found[name] = _bound(custom, classes[name])
            else:
                found[name] = _by_template(classes[name])
    return found


def _by_template(cls: type[TableOp]) -> FormReader:
    return lambda reader, start: read(reader, cls.row, cls, start)


def _bound(
    custom: Callable[[Reader, int, type[TableOp]], Operation], cls: type[TableOp]
) -> FormReader:
    return lambda reader, start: custom(reader, start, cls)


def _read_constant(reader: Reader, start: int, cls: type[TableOp]) -> Operation:
    """`dense<…> : type`, or `() <{value = …}> : () -> type` where the types differ.

    The value once stood among the other attributes: `() {value = …} : () -> type`.
    """
    if reader.accept("("):
        reader.need(")")
        properties: dict[str, Attribute] = {}
        if reader.accept("<"):
            properties = reader.dictionary()
            reader.need(">")
        attributes = reader.optional_dictionary()
        if "value" in attributes:
            properties["value"] = attributes.pop("value")
        reader.need(":")
        _, types = reader.function_types()
        return reader.make(cls, [], types, properties, attributes, start)
    attributes = reader.optional_dictionary()
    at = reader.skip()
    value = reader.attribute()
    get_type = getattr(value, "get_type", None)
    if get_type is None:
        reader.fail("a constant is dense<…> : type", at, code=BAD_VALUE)
    return reader.make(cls, [], [get_type()], {"value": value}, attributes, start)


def _read_barrier(reader: Reader, start: int, cls: type[TableOp]) -> Operation:
    if reader.accept("("):
        reader.need(")")
        return reader.make(cls, [], [], {}, {}, start)
    attributes = reader.optional_dictionary()
    at = reader.skip()
    uses = reader.uses()
    types: list[Attribute] = []
    if uses:
        reader.need(":")
        types.append(reader.type())
        while reader.accept(","):
            types.append(reader.type())
    elif reader.accept("("):
        reader.need(")")
    return reader.make(cls, reader.resolve(uses, types, at), types, {}, attributes, start)


# ---------------------------------------------------------------- reduce


def _read_reduce(reader: Reader, start: int, cls: type[TableOp]) -> Operation:
    """`(%x init: %c), … applies op across dimensions = [0] : types`, or a reducer at the end."""
    draft = Draft(cls.row)
    inits: list[tuple[str, int, int]] = []
    while True:
        reader.need("(")
        draft.uses += _one_use(reader)
        reader.need_word("init")
        reader.need(":")
        inits += _one_use(reader)
        reader.need(")")
        if not reader.accept(","):
            break
    count = len(draft.uses)
    draft.uses += inits
    applied: str | None = None
    at = reader.skip()
    if reader.accept_word("applies"):
        at = reader.skip()
        applied = reader.optional_word()
    reader.need_word("across")
    reader.need_word("dimensions")
    reader.need("=")
    properties: dict[str, Attribute] = {"dimensions": integers(read_ints(reader))}
    attributes = reader.optional_dictionary()
    reader.need(":")
    types_at = reader.skip()
    operand_types, result_types = reader.function_types()
    operands = reader.resolve(draft.uses, operand_types, types_at)
    if applied is not None:
        body = _applied(reader, applied, operand_types[0], at)
    else:
        body = _read_reducer(reader, count)
    op = reader.make(cls, operands, result_types, properties, attributes, start, [body])
    if applied is not None and reader.at("loc"):
        location = cast(Any, reader.optional_location())
        for inner in (op, *op.regions[0].block.ops):
            inner.location = location
    return op


def _one_use(reader: Reader) -> list[tuple[str, int, int]]:
    use = reader.optional_value()
    if use is None:
        reader.expected("an operand")
    return [use]


def _applied(reader: Reader, name: str, operand_type: Attribute, at: int) -> Region:
    """The region of the short form: one op on both arguments, and its return."""
    inner = stablehlo.OP_CLASSES.get(name)
    if inner is None or len(inner.row.operands) != 2 or inner.row.properties:
        reader.fail(f"'{name}' is no op of two operands", at, length=len(name))
    if not isinstance(operand_type, TensorType):
        reader.fail("reduce takes tensors", at, code=BAD_VALUE)
    element = cast("TensorType[Attribute]", operand_type).element_type
    scalar = tensor_type(element, [], NO_ENCODING)
    block = Block(arg_types=[scalar, scalar])
    op = create_op(inner, list(block.args), [scalar], {})
    append(block, op)
    append(block, create_op(stablehlo.OP_CLASSES["stablehlo.return"], list(op.results), (), {}))
    return Region(block)


def _read_reducer(reader: Reader, count: int) -> Region:
    reader.need_word("reducer")
    pairs: list[list[tuple[str, Attribute, int]]] = []
    places: list[list[Attribute | None]] = []
    for _ in range(count):
        reader.need("(")
        pair: list[tuple[str, Attribute, int]] = []
        place: list[Attribute | None] = []
        for position in range(2):
            if position:
                reader.need(",")
            pair.append(reader.argument())
            place.append(reader.optional_location())
        reader.need(")")
        pairs.append(pair)
        places.append(place)
    arguments = [pair[side] for side in range(2) for pair in pairs]
    locations = [place[side] for side in range(2) for place in places]
    reader.dialects.append("")
    region = reader.region(arguments, locations=locations)
    reader.dialects.pop()
    return region


# ---------------------------------------------------------------- while


def _read_while(reader: Reader, start: int, cls: type[TableOp]) -> Operation:
    """`(%iterArg = %x, …) : types attributes {…} cond {…} do {…}`."""
    reader.need("(")
    names: list[tuple[str, int, int]] = []
    uses: list[tuple[str, int, int]] = []
    if not reader.accept(")"):
        while True:
            names += _one_use(reader)
            reader.need("=")
            uses += _one_use(reader)
            if not reader.accept(","):
                break
        reader.need(")")
    types: list[Attribute] = []
    at = reader.skip()
    if uses:
        reader.need(":")
        types.append(reader.type())
        while reader.accept(","):
            types.append(reader.type())
    attributes = reader.dictionary() if reader.accept_word("attributes") else {}
    operands = reader.resolve(uses, types, at)
    arguments = [(name, type_, place) for (name, _, place), type_ in zip(names, types, strict=True)]
    reader.dialects.append("")
    reader.need_word("cond")
    condition = reader.region(arguments)
    reader.need_word("do")
    body = reader.region(arguments)
    reader.dialects.pop()
    return reader.make(cls, operands, types, {}, attributes, start, [condition, body])


# ---------------------------------------------------------------- scan


def _read_scan(reader: Reader, start: int, cls: type[TableOp]) -> Operation:
    """`(%x, …) inits (%c, …) dimension=0 {…} : types`."""
    reader.need("(")
    inputs = reader.uses()
    reader.need(")")
    reader.need_word("inits")
    reader.need("(")
    inits = reader.uses()
    reader.need(")")
    properties: dict[str, Attribute] = {}
    while (word := reader.optional_keyword()) is not None and word != "attributes":
        own = cls.row.by_name.get(word)
        if own is None or word in properties:
            reader.fail(f"scan has no '{word}' here")
        reader.need("=")
        properties[word] = (
            boolean(reader.boolean()) if own.kind == "bool" else integer(reader.integer())
        )
        reader.accept(",")
    attributes = reader.dictionary() if word == "attributes" else {}
    reader.dialects.append("")
    body = reader.region()
    reader.dialects.pop()
    attributes.update(reader.optional_dictionary())
    reader.need(":")
    at = reader.skip()
    operand_types, result_types = reader.function_types()
    operands = reader.resolve([*inputs, *inits], operand_types, at)
    carries = len(inits)
    properties["operandSegmentSizes"] = _sizes(len(inputs), carries)
    properties["resultSegmentSizes"] = _sizes(max(0, len(result_types) - carries), carries)
    return reader.make(cls, operands, result_types, properties, attributes, start, [body])


def _sizes(*sizes: int) -> Attribute:
    from xdsl.dialects.builtin import DenseArrayBase, i32

    return DenseArrayBase.from_list(i32, list(sizes))


_CUSTOM: dict[str, Callable[[Reader, int, type[TableOp]], Operation]] = {
    "{barrier}": _read_barrier,
    "{constant}": _read_constant,
    "{reduce}": _read_reduce,
    "{scan}": _read_scan,
    "{while}": _read_while,
}
"""Readers of forms that no template describes."""
