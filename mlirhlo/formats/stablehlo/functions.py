"""Reads modules, functions, calls and returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region

from mlirhlo.dialects.hlo.attributes.base import string, symbol
from mlirhlo.dialects.quick import create_op
from mlirhlo.formats.stablehlo.reader_types import function_type

if TYPE_CHECKING:
    from mlirhlo.formats.stablehlo.reader import Reader

FormReader: TypeAlias = "Callable[[Reader, int], Operation]"

_EMPTY = DictionaryAttr({})
_VISIBILITY = ("public", "private", "nested")


def _read_module(reader: Reader, start: int) -> Operation:
    """`module @name attributes {…} {…}`."""
    del start
    properties: dict[str, Attribute] = {}
    visibility = _visibility(reader)
    if visibility is not None:
        properties["sym_visibility"] = visibility
    name = reader.optional_symbol()
    if name is not None:
        properties["sym_name"] = string(name)
    attributes = reader.dictionary() if reader.accept_word("attributes") else {}
    reader.dialects.append("builtin")
    region = reader.region(is_isolated=True, is_graph=True)
    reader.dialects.pop()
    if not region.blocks:
        region.add_block(Block())
    return create_op(ModuleOp, (), (), properties, regions=[region], attributes=attributes)


def _visibility(reader: Reader) -> StringAttr | None:
    for word in _VISIBILITY:
        if reader.accept_word(word):
            return string(word)
    return None


def _read_function(reader: Reader, start: int) -> Operation:
    """`func.func public @name(%arg0: type {…}, …) -> (type {…}) attributes {…} {…}`."""
    del start
    properties: dict[str, Attribute] = {}
    visibility = _visibility(reader)
    name = reader.symbol()
    properties["sym_name"] = string(name)
    arguments: list[tuple[str, Attribute, int]] = []
    locations: list[Attribute | None] = []
    argument_types: list[Attribute] = []
    argument_attributes: list[dict[str, Attribute]] = []
    reader.need("(")
    if not reader.accept(")"):
        while True:
            if reader.at("%"):
                arguments.append(reader.argument())
                argument_types.append(arguments[-1][1])
            else:
                argument_types.append(reader.type())
            argument_attributes.append(reader.optional_dictionary())
            locations.append(reader.optional_location())
            if not reader.accept(","):
                break
        reader.need(")")
    if arguments and len(arguments) != len(argument_types):
        reader.fail("either all arguments have names, or none")
    result_types, result_attributes = _results(reader)
    properties["function_type"] = function_type(argument_types, result_types)
    if visibility is not None:
        properties["sym_visibility"] = visibility
    if any(argument_attributes):
        properties["arg_attrs"] = ArrayAttr(
            [DictionaryAttr(a) if a else _EMPTY for a in argument_attributes]
        )
    if any(result_attributes):
        properties["res_attrs"] = ArrayAttr(
            [DictionaryAttr(a) if a else _EMPTY for a in result_attributes]
        )
    attributes: dict[str, Attribute] = {}
    if reader.accept_word("attributes"):
        attributes = reader.dictionary()
        for key in ("no_inline",):
            if key in attributes:
                properties[key] = attributes.pop(key)
    region = Region()
    if reader.at("{"):
        reader.dialects.append("func")
        given = arguments if arguments or not argument_types else None
        region = reader.region(given, is_isolated=True, locations=locations)
        reader.dialects.pop()
    return create_op(FuncOp, (), (), properties, regions=[region], attributes=attributes)


def _results(reader: Reader) -> tuple[list[Attribute], list[dict[str, Attribute]]]:
    """`-> type`, `-> (type {…}, …)` or nothing."""
    if not reader.accept("->"):
        return [], []
    if not reader.accept("("):
        return [reader.type()], [{}]
    types: list[Attribute] = []
    attributes: list[dict[str, Attribute]] = []
    if not reader.accept(")"):
        while True:
            types.append(reader.type())
            attributes.append(reader.optional_dictionary())
            if not reader.accept(","):
                break
        reader.need(")")
    return types, attributes


def _read_call(reader: Reader, start: int) -> Operation:
    """`call @name(operands) {…} : types`."""
    del start
    at = reader.skip()
    properties: dict[str, Attribute] = {"callee": symbol(reader.symbol())}
    reader.need("(")
    uses = reader.uses()
    reader.need(")")
    attributes = reader.optional_dictionary()
    for key in ("arg_attrs", "res_attrs", "no_inline"):
        if key in attributes:
            properties[key] = attributes.pop(key)
    reader.need(":")
    operand_types, result_types = reader.function_types()
    operands = reader.resolve(uses, operand_types, at)
    return create_op(CallOp, operands, result_types, properties, attributes=attributes)


def _read_return(reader: Reader, start: int) -> Operation:
    """`return operands : types`."""
    attributes = reader.optional_dictionary()
    uses = reader.uses()
    types: list[Attribute] = []
    if uses:
        reader.need(":")
        types.append(reader.type())
        while reader.accept(","):
            types.append(reader.type())
    return create_op(ReturnOp, reader.resolve(uses, types, start), (), {}, attributes=attributes)


READERS: dict[str, FormReader] = {
    "builtin.module": _read_module,
    "func.call": _read_call,
    "func.func": _read_function,
    "func.return": _read_return,
}
"""Readers of the pretty forms of the ops every program is made of."""
