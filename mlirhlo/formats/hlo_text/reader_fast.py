"""The quick way: instructions and computation headers as a printer writes them, a line at a time.

One regular expression cuts a line into shape, name, opcode, operands and attributes; all pieces
are looked up by text (`reader_pieces`). Whatever is not exactly of that form, or is wrong, is left
where it is: the general way (`reader_general`) goes on from there, so that every rule and message
stands once. Patterns never backtrack: time is linear in the length of a line.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from xdsl.dialects.builtin import TupleType
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import append, create
from mlirhlo.dialects.hlo.ops.control_flow import ConstantOp, ParameterOp
from mlirhlo.dialects.hlo.shapes import Shape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.formats.hlo_text.lexer import RESERVED
from mlirhlo.formats.hlo_text.reader_pieces import Pieces
from mlirhlo.formats.hlo_text.reader_problems import Misfit
from mlirhlo.formats.hlo_text.reader_shapes import result_type
from mlirhlo.formats.hlo_text.reader_state import Scope

_NAME = r"%?+(?!__)[A-Za-z_][A-Za-z0-9_.\-]*+"


def _balanced(depth: int) -> str:
    inner = "|" + _balanced(depth - 1) if depth else ""
    return rf"\((?>[^()\r\n]+{inner})*+\)"


_LINE = re.compile(
    rf"[ \t]*+(ROOT )?+({_NAME}) = ([^(\s][^\s]*+|{_balanced(3)}) ([a-z][a-z0-9\-]*+)"
    rf"\(((?>[^()\r\n]+|{_balanced(1)})*+)\)((?:,[^\r\n]*+)?+)\r?\n"
)
"""ROOT, name, shape, opcode, operands, attributes."""

_PARAMETER = rf"({_NAME}): ([a-z][a-z0-9]*+\[[0-9,<=?]*+\]|{_balanced(3)}|b{_balanced(0)})"
_PARAMETERS = re.compile(_PARAMETER)
_HEADER = re.compile(
    rf"\s*+(ENTRY )?+({_NAME}) (\((?:{_PARAMETER}(?:, (?=[%A-Za-z_])|(?=\))))*+\) -> (.*) )?+\{{\r?\n"
)
"""First line of a computation: ENTRY, name, signature, (last parameter), result."""

FOOTER = re.compile(r"[ \t]*+\}\r?\n(?:[ \t]*+\r?\n)*+(?![,\s/])")
"""End of a computation that has nothing after its brace."""

_NUMBER = re.compile(r"[0-9]{1,9}")


class Header(NamedTuple):
    """First line of a computation."""

    is_entry: bool
    scope: Scope
    declared: Shape | None
    declared_at: int
    end: int


def read_header(pieces: Pieces, position: int) -> Header | None:
    """Reads the first line of a computation; None when it has not the usual form."""
    text = pieces.state.source.text
    match = _HEADER.match(text, position)
    if match is None:
        return None
    name = match[2].removeprefix("%")
    if name in RESERVED:
        return None
    declared = None
    if match[3] is not None:
        types = pieces.types
        for _, shape in _PARAMETERS.findall(text, match.start(3), match.start(6)):
            if shape not in types and pieces.type(shape) is None:
                return None
        type_ = types.get(match[6]) or pieces.type(match[6])
        if type_ is None:
            return None
        declared = shape_of(type_)
    start = match.start(2) + (match[2][0] == "%")
    declared_at = match.start(6) if declared is not None else start
    return Header(match[1] is not None, Scope(name, start), declared, declared_at, match.end())


def read_lines(pieces: Pieces, scope: Scope, position: int) -> int:
    """Reads instructions from `position` on as long as they have the usual form.

    Returns where the first line starts that has not.
    """
    state = pieces.state
    source, text = state.source, state.source.text
    types, opcodes, values, block = pieces.types, pieces.opcodes, scope.values, scope.block
    match_line = _LINE.match
    number = 0
    while (match := match_line(text, position)) is not None:
        root, key, shape, opcode, arguments, attributes = match.groups()
        if key[0] == "%":
            name = key[1:]
        else:
            name, key = key, "%" + key
        if name in RESERVED or key in values or (root and scope.root is not None):
            return position
        pieces_ = opcodes.get(opcode) or pieces.opcode(opcode)
        type_ = types.get(shape) or pieces.type(shape)
        if pieces_ is None or type_ is None:
            return position
        if attributes or pieces_.required:
            found = pieces.properties(pieces_, attributes, values)
            if found is None:
                return position
            properties, control = found
        else:
            properties, control = {}, None
        cls = pieces_.cls
        if cls is ParameterOp:
            number = int(arguments) if _NUMBER.fullmatch(arguments) else -1
            if number < 0 or number in scope.parameters or properties.get("parameter_replication"):
                return position
            properties["parameter_number"] = integer(number)
            operands: list[SSAValue] = []
        elif cls is ConstantOp:
            constant = (
                None if state.essential_constants else pieces.constant(shape, type_, arguments)
            )
            if constant is None:
                return position
            type_, properties["literal"] = constant
            operands = []
        else:
            if arguments:
                try:
                    operands = [values[argument] for argument in arguments.split(", ")]
                except KeyError:
                    if (slowly := pieces.operands(arguments, values)) is None:
                        return position
                    operands = slowly
            else:
                operands = []
            if pieces_.arity >= 0 and len(operands) != pieces_.arity:
                return position
            if pieces_.check is not None:
                try:
                    pieces_.check(state, operands, type_, properties)
                except Misfit:
                    return position
        if pieces_.redeclares:
            type_ = result_type(pieces_.info.row, operands, type_, properties)
        if type_.__class__ is TupleType and "sharding" in properties:
            state.fit_sharding(type_, properties)
        if control:
            operands += control
        op = create(cls, operands, type_, properties, name)
        op.text_source = (source, match.start(2))  # type: ignore[attr-defined]
        append(block, op)
        value = values[key] = op.results[0]
        if root:
            scope.root = value
        if cls is ParameterOp:
            scope.parameters[number] = op
        position = match.end()
    return position
