"""Reads operands and declarations of PTX; `values.py` writes them.

Source: PTX ISA, chapters "Syntax", "State Spaces, Types, and Variables" and "Directives".
"""

from __future__ import annotations

import re
from functools import lru_cache

from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem, parse_all
from mlirhlo.dialects.ptx.constants import read_constant
from mlirhlo.dialects.ptx.values import (
    Address,
    Component,
    Group,
    Guard,
    Immediate,
    Negated,
    Operand,
    Operands,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)

IDENTIFIER = re.compile(r"[A-Za-z][\w$]*|[_$%][\w$]+")
"""A name: a letter, or `_`, `$`, `%` and at least one more character."""
_NAME = re.compile(rf"(?:{IDENTIFIER.pattern})(?:\.[a-z]\w*)?")

_PARENTHESIS = re.compile(r"[()]")
_THREE = ("x", "y", "z")
SPECIAL_REGISTERS = frozenset(
    {
        *(
            f"%{name}{part}"
            for name in (
                *("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid"),
                *("cluster_ctaid", "cluster_nctaid"),
            )
            for part in ("", *(f".{axis}" for axis in _THREE), ".w")
        ),
        *("%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "%is_explicit_cluster"),
        *("%cluster_ctarank", "%cluster_nctarank", "%clock", "%clock_hi", "%clock64"),
        *(f"%lanemask_{which}" for which in ("eq", "le", "lt", "ge", "gt")),
        *(f"%pm{number}" for number in range(8)),
        *(f"%pm{number}_64" for number in range(8)),
        *(f"%envreg{number}" for number in range(32)),
        *("%globaltimer", "%globaltimer_lo", "%globaltimer_hi", "%current_graph_exec"),
        *(f"%reserved_smem_offset_{which}" for which in ("begin", "end", "cap", "0", "1")),
        *("%total_smem_size", "%aggr_smem_size", "%dynamic_smem_size"),
    }
)
"""Registers that the machine defines."""


def is_register_name(name: str) -> bool:
    """Whether a name that starts with `%` is one of a register that the program declares."""
    return name.startswith("%") and name not in SPECIAL_REGISTERS


def name_value(text: str) -> Register | Special | Symbol | Component | Sink:
    """What a name, perhaps with a component, says by itself."""
    if text == "_":
        return Sink()
    if text in SPECIAL_REGISTERS:
        return Special(text)
    name, dot, part = text.partition(".")
    value = Register(name) if name.startswith("%") else Symbol(name)
    return Component(value, part) if dot else value


def read_operands(cursor: Cursor) -> Operands:
    """Operands up to the end of the text, divided by commas. Raises `SyntaxProblem`."""
    if cursor.at_end():
        return Operands()
    parts = [read_operand(cursor)]
    while cursor.accept(","):
        parts.append(read_operand(cursor))
    return Operands(tuple(parts))


def read_operand(cursor: Cursor) -> Operand:
    """One operand of an instruction. Raises `SyntaxProblem`."""
    first = _read_single(cursor)
    if not isinstance(first, Immediate) and cursor.accept("|"):
        return Pair(first, _read_single(cursor))
    return first


def _read_single(cursor: Cursor) -> Operand:
    start = cursor.skip()
    match cursor.text[start : min(start + 1, cursor.end)]:
        case "[":
            return _read_address(cursor)
        case "{":
            return Vector(cursor.items("{", "}", lambda: read_operand(cursor)))
        case "(" if _is_group(cursor):
            return Group(cursor.items("(", ")", lambda: read_operand(cursor)))
        case "!" if (name := IDENTIFIER.match(cursor.text, start + 1, cursor.end)) is not None:
            cursor.position = name.end()
            value = name_value(name.group())
            if isinstance(value, Register | Symbol):
                return Negated(value)
            raise SyntaxProblem(start, f"'!' of {value}", cursor.position - start)
        case _:
            return _read_scalar(cursor)


def _is_group(cursor: Cursor) -> bool:
    """Whether the parentheses that start here hold the operands of a call, not a part of an expression."""
    depth = 0
    for sign in _PARENTHESIS.finditer(cursor.text, cursor.position, cursor.end):
        depth += 1 if sign.group() == "(" else -1
        if not depth:
            after = Cursor(cursor.text, sign.end(), cursor.end)
            return after.at_end() or after.peek(",")
    return False


def _read_scalar(cursor: Cursor) -> Operand:
    """A name, with an offset if it is a symbol, or a constant."""
    name = _NAME.match(cursor.text, cursor.skip(), cursor.end)
    if name is None:
        return Sink() if cursor.accept("_") else read_constant(cursor)
    if name.group() == "WARP_SZ":
        return read_constant(cursor)
    cursor.position = name.end()
    value = name_value(name.group())
    if isinstance(value, Symbol) and cursor.accept("+"):
        return Symbol(value.name, read_constant(cursor).value)
    return value


def _read_address(cursor: Cursor) -> Address:
    cursor.expect("[")
    start = cursor.skip()
    name = _NAME.match(cursor.text, start, cursor.end)
    base: Operand
    if name is None or name.group() == "WARP_SZ":
        base = read_constant(cursor)
    else:
        cursor.position = name.end()
        base = name_value(name.group())
    if not isinstance(base, Register | Special | Symbol | Immediate):
        raise SyntaxProblem(start, f"{base} is no address", cursor.position - start)
    offset, text, begin = 0, "", cursor.skip()
    if cursor.accept("+"):
        offset = read_constant(cursor).value
        text = "".join(cursor.text[begin : cursor.position].split())
        text = "" if offset and text == f"+{offset}" else text
    more: list[Operand] = []
    while cursor.accept(","):
        more.append(read_operand(cursor))
    cursor.expect("]")
    return Address(base, offset, tuple(more), text)


def read_guard(cursor: Cursor) -> Guard:
    """`@%p1`, `@!%p1`."""
    cursor.expect("@")
    is_negated = cursor.accept("!")
    return Guard(read_name(cursor), is_negated)


def read_name(cursor: Cursor, what: str = "a name") -> str:
    """An identifier."""
    match = IDENTIFIER.match(cursor.text, cursor.skip(), cursor.end)
    if match is None:
        raise cursor.problem(f"expects {what}")
    cursor.position = match.end()
    return match.group()


@lru_cache(maxsize=1 << 16)
def operand(text: str) -> Operand:
    """An operand by its text, cached: programs repeat the same few names. Raises `SyntaxProblem`."""
    return parse_all(text, read_operand)
