"""Reads declarations, heads of functions and other directives of PTX; `values.py` writes them.

Source: PTX ISA, "Variables", "Directives" and "Performance-Tuning Directives".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem
from mlirhlo.dialects.ptx.constants import read_constant
from mlirhlo.dialects.ptx.syntax import IDENTIFIER, read_name
from mlirhlo.dialects.ptx.values import (
    TYPE_BITS,
    Declaration,
    Directive,
    Generic,
    Initializer,
    Masked,
    Nested,
    Prototype,
    Signature,
    SourceLocation,
    Symbol,
    Variable,
)

LINKAGES = ("extern", "visible", "weak", "common")
SPACES = ("reg", "sreg", "global", "shared", "local", "const", "param", "tex")
FUNCTION_DIRECTIVES = (
    *("maxntid", "reqntid", "minnctapersm", "maxnctapersm", "maxnreg", "noreturn", "pragma"),
    *("reqnctapercluster", "maxclusterrank", "explicitcluster", "blocksareclusters", "unique"),
    *("abi_preserve", "abi_preserve_control", "address_size"),
)
"""Directives that may stand between the parameters of a function and its body."""

_WORD = re.compile(r"\.([A-Za-z_]\w*(?:::\w+)*)")
_DIGIT = re.compile(r"[0-9(]")
_STRING = re.compile(r'"([^"\n]*)"')


def peek_directive(cursor: Cursor) -> str | None:
    """The directive that comes next, without its dot."""
    match = _WORD.match(cursor.text, cursor.skip(), cursor.end)
    return None if match is None else match.group(1)


def take_directive(cursor: Cursor, *names: str) -> str | None:
    """Takes one of these directives if it comes next."""
    match = _WORD.match(cursor.text, cursor.skip(), cursor.end)
    if match is None or match.group(1) not in names:
        return None
    cursor.position = match.end()
    return match.group(1)


def read_string(cursor: Cursor) -> str:
    """`"text"`; PTX has no escapes."""
    match = _STRING.match(cursor.text, cursor.skip(), cursor.end)
    if match is None:
        raise cursor.problem("expects a string")
    cursor.position = match.end()
    return match.group(1)


def read_strings(cursor: Cursor) -> tuple[str, ...]:
    """`"a", "b"`."""
    strings = [read_string(cursor)]
    while cursor.accept(","):
        strings.append(read_string(cursor))
    return tuple(strings)


def read_integer(cursor: Cursor) -> int:
    """A constant that is an integer."""
    start = cursor.skip()
    value = read_constant(cursor)
    if value.kind not in ("s64", "u64"):
        raise SyntaxProblem(start, f"expects an integer, found '{value}'", len(value.text))
    return value.value


@dataclass(slots=True)
class _Specifier:
    """What stands before the names of a declaration."""

    space: str
    type: str
    vector: int = 1
    alignment: int | None = None
    attributes: tuple[str, ...] = ()
    is_pointer: bool = False
    pointer_space: str | None = None
    pointer_alignment: int | None = None


def read_attributes(cursor: Cursor) -> tuple[str, ...]:
    """`(.managed, .unified(1, 2))` after `.attribute`."""

    def one() -> str:
        name = take_directive(cursor, "managed", "unified")
        if name is None:
            raise cursor.problem("expects .managed or .unified")
        if name == "unified":
            numbers = cursor.items("(", ")", lambda: str(read_constant(cursor)))
            return f"unified({', '.join(numbers)})"
        return name

    return cursor.items("(", ")", one)


def _read_specifier(cursor: Cursor) -> _Specifier:
    space = take_directive(cursor, *SPACES)
    if space is None:
        raise cursor.problem("expects a state space such as .reg or .shared")
    specifier = _Specifier(space, "")
    while (name := peek_directive(cursor)) is not None:
        start = cursor.position
        take_directive(cursor, name)
        if name == "align" and specifier.is_pointer:
            specifier.pointer_alignment = read_integer(cursor)
        elif name == "align":
            specifier.alignment = read_integer(cursor)
        elif name == "attribute":
            specifier.attributes = read_attributes(cursor)
        elif name == "ptr":
            specifier.is_pointer = True
        elif specifier.is_pointer and name in SPACES:
            specifier.pointer_space = name
        elif name in ("v2", "v4", "v8"):
            specifier.vector = int(name[1:])
        elif name in TYPE_BITS and not specifier.type:
            specifier.type = name
        else:
            raise SyntaxProblem(start, f"unexpected '.{name}' in a declaration", len(name) + 1)
    if not specifier.type:
        raise cursor.problem("expects a type such as .b32")
    return specifier


def _read_variable(
    cursor: Cursor, specifier: _Specifier, linkage: tuple[str, ...] = ()
) -> Variable:
    name = "_" if _take_underscore(cursor) else read_name(cursor)
    count = None
    if cursor.accept("<"):
        count = cursor.integer()
        cursor.expect(">")
    dimensions: list[int | None] = []
    while cursor.accept("["):
        dimensions.append(None if cursor.peek("]") else read_integer(cursor))
        cursor.expect("]")
    return Variable(
        specifier.space,
        specifier.type,
        name,
        tuple(dimensions),
        count,
        specifier.vector,
        specifier.alignment,
        linkage,
        specifier.attributes,
        specifier.is_pointer,
        specifier.pointer_space,
        specifier.pointer_alignment,
        read_initializer(cursor) if cursor.accept("=") else None,
    )


def _take_underscore(cursor: Cursor) -> bool:
    return IDENTIFIER.match(cursor.text, cursor.skip(), cursor.end) is None and cursor.accept("_")


def read_declaration(cursor: Cursor) -> Declaration:
    """`.visible .global .align 4 .b32 x[2] = {1, 2};`."""
    linkage = read_linkage(cursor)
    specifier = _read_specifier(cursor)
    variables = [_read_variable(cursor, specifier, linkage)]
    while cursor.accept(","):
        variables.append(_read_variable(cursor, specifier, linkage))
    cursor.expect(";")
    return Declaration(tuple(variables))


def read_linkage(cursor: Cursor) -> tuple[str, ...]:
    """`.visible`, `.extern`, `.weak`, `.common`."""
    found: list[str] = []
    while (word := take_directive(cursor, *LINKAGES)) is not None:
        found.append(word)
    return tuple(found)


def read_initializer(cursor: Cursor) -> Initializer:
    """The value of a variable: numbers, addresses, and lists of them."""
    if cursor.peek("{"):
        return Nested(cursor.items("{", "}", lambda: read_initializer(cursor)))
    match = IDENTIFIER.match(cursor.text, cursor.skip(), cursor.end)
    if match is not None and match.group() != "WARP_SZ":
        return _read_address(cursor)
    value = read_constant(cursor)
    if not cursor.accept("("):
        return value
    symbol = _read_address(cursor)
    cursor.expect(")")
    return Masked(value, symbol)


def _read_address(cursor: Cursor) -> Symbol | Generic:
    """`x`, `x+4`, `generic(x)+4`."""
    name = read_name(cursor)
    is_generic = name == "generic" and cursor.accept("(")
    if is_generic:
        name = read_name(cursor)
        cursor.expect(")")
    offset = 0
    if cursor.accept("+"):
        offset = read_integer(cursor)
    symbol = Symbol(name, offset)
    return Generic(symbol) if is_generic else symbol


def _read_parameter(cursor: Cursor) -> Variable:
    return _read_variable(cursor, _read_specifier(cursor))


def _read_parameters(cursor: Cursor) -> tuple[Variable, ...]:
    return cursor.items("(", ")", lambda: _read_parameter(cursor))


def read_signature(cursor: Cursor) -> Signature:
    """The head of a function, up to its body or semicolon."""
    linkage = read_linkage(cursor)
    keyword = take_directive(cursor, "entry", "func")
    if keyword is None:
        raise cursor.problem("expects .entry or .func")
    attributes = read_attributes(cursor) if take_directive(cursor, "attribute") else ()
    results = _read_parameters(cursor) if cursor.peek("(") else ()
    name = read_name(cursor, "the name of the function")
    has_list = cursor.peek("(")
    parameters = _read_parameters(cursor) if has_list else ()
    directives = _read_function_directives(cursor)
    return Signature(
        name, keyword == "entry", linkage, attributes, results, parameters, directives, has_list
    )


def _read_function_directives(cursor: Cursor) -> tuple[Directive, ...]:
    found: list[Directive] = []
    while (name := take_directive(cursor, *FUNCTION_DIRECTIVES)) is not None:
        if name == "pragma":
            found.append(Directive(name, strings=read_strings(cursor)))
            cursor.accept(";")
            continue
        values: list[int] = []
        if _DIGIT.match(cursor.text, cursor.skip(), cursor.end):
            values.append(read_integer(cursor))
            while cursor.accept(","):
                values.append(read_integer(cursor))
        found.append(Directive(name, tuple(values)))
    return tuple(found)


def read_prototype(cursor: Cursor) -> Prototype:
    """`.callprototype (.param .b32 _) _ (.param .b64 _);`."""
    if take_directive(cursor, "callprototype") is None:
        raise cursor.problem("expects .callprototype")
    results = _read_parameters(cursor) if cursor.peek("(") else ()
    cursor.expect("_")
    parameters = _read_parameters(cursor) if cursor.peek("(") else ()
    directives = _read_function_directives(cursor)
    cursor.expect(";")
    return Prototype(results, parameters, directives)


def read_location(cursor: Cursor) -> SourceLocation:
    """`.loc 1 14 0`, perhaps with `, function_name $L, inlined_at 1 2 3`."""
    if take_directive(cursor, "loc") is None:
        raise cursor.problem("expects .loc")
    place = cursor.integer(), cursor.integer(), cursor.integer()
    if not cursor.accept(","):
        return SourceLocation(*place)
    cursor.expect("function_name")
    name = _read_address(cursor)
    cursor.expect(",")
    cursor.expect("inlined_at")
    symbol = name if isinstance(name, Symbol) else name.symbol
    inlined_at = cursor.integer(), cursor.integer(), cursor.integer()
    return SourceLocation(*place, symbol, inlined_at)
