"""Constants and constant expressions of PTX, evaluated as the assembler does: in 64 bits.

Source: PTX ISA, "Constants" and "Constant Expressions".
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

from mlirhlo.dialects.hlo.syntax import Cursor
from mlirhlo.dialects.ptx.values import Immediate

_HEX_FLOAT = re.compile(r"0([fF])([0-9a-fA-F]{8})(?!\w)|0([dD])([0-9a-fA-F]{16})(?!\w)")
_DECIMAL_FLOAT = re.compile(
    r"(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"
)
_INTEGER = re.compile(r"(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|(0[0-7]*)|([1-9][0-9]*))(U?)(?!\w)")
_OPERATOR = re.compile(r"<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&^|?]")
_CAST = re.compile(r"\(\s*\.([su])64\s*\)")

_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class _Value:
    """A part of an expression: an integer modulo 2**64 as its kind says, or a Python float."""

    kind: str
    value: int | float

    @staticmethod
    def integer(value: int, kind: str) -> _Value:
        value &= _MASK
        return _Value(kind, value - (1 << 64) if kind == "s64" and value >> 63 else value)


def _quotient(a: int, b: int) -> int:
    magnitude = abs(a) // abs(b)
    return magnitude if (a < 0) == (b < 0) else -magnitude


_BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda a, b: int(bool(a or b))),
    "&&": (2, lambda a, b: int(bool(a and b))),
    "|": (3, lambda a, b: a | b),
    "^": (4, lambda a, b: a ^ b),
    "&": (5, lambda a, b: a & b),
    "==": (6, operator.eq),
    "!=": (6, operator.ne),
    "<": (7, operator.lt),
    "<=": (7, operator.le),
    ">": (7, operator.gt),
    ">=": (7, operator.ge),
    "<<": (8, lambda a, b: a << (b & 63)),
    ">>": (8, lambda a, b: a >> (b & 63)),
    "+": (9, operator.add),
    "-": (9, operator.sub),
    "*": (10, operator.mul),
    "/": (10, _quotient),
    "%": (10, lambda a, b: a - b * _quotient(a, b)),
}
_FLOAT_OPERATORS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b,
}
_TRUTHS = frozenset({"||", "&&", "==", "!=", "<", "<=", ">", ">="})


def read_constant(cursor: Cursor) -> Immediate:
    """A constant or constant expression. Raises `SyntaxProblem`."""
    start = cursor.skip()
    hexadecimal = _HEX_FLOAT.match(cursor.text, start, cursor.end)
    if hexadecimal is not None:
        cursor.position = hexadecimal.end()
        single, single_bits, _, double_bits = hexadecimal.groups()
        kind = "f64" if single is None else "f32"
        return Immediate(int(single_bits or double_bits, 16), kind, hexadecimal.group())
    value = _choice(cursor)
    text = cursor.text[start : cursor.position]
    if isinstance(value.value, float):
        return Immediate(_bits(value.value), "f64", text)
    return Immediate(value.value, value.kind, text)


def _bits(number: float) -> int:
    return int.from_bytes(struct.pack("<d", number), "little")


def _choice(cursor: Cursor) -> _Value:
    """`condition ? a : b`, or what binds closer."""
    condition = _binary(cursor, 1)
    if not cursor.accept("?"):
        return condition
    first = _choice(cursor)
    cursor.expect(":")
    second = _choice(cursor)
    return first if condition.value else second


def _binary(cursor: Cursor, least: int) -> _Value:
    left = _unary(cursor)
    while True:
        match = _OPERATOR.match(cursor.text, cursor.skip(), cursor.end)
        sign = "" if match is None else match.group()
        if match is None or sign not in _BINARY or _BINARY[sign][0] < least:
            return left
        start, cursor.position = cursor.position, match.end()
        right = _binary(cursor, _BINARY[sign][0] + 1)
        if sign in "/%" and not right.value:
            raise cursor.problem("division by zero in a constant", start)
        if isinstance(left.value, float) or isinstance(right.value, float):
            if sign not in _FLOAT_OPERATORS:
                raise cursor.problem(f"'{sign}' of a float", start)
            left = _Value("f64", _FLOAT_OPERATORS[sign](float(left.value), float(right.value)))
            continue
        kind = "u64" if "u64" in (left.kind, right.kind) else "s64"
        value = int(_BINARY[sign][1](left.value, right.value))
        left = _Value.integer(value, "s64" if sign in _TRUTHS else kind)


def _unary(cursor: Cursor) -> _Value:
    start = cursor.skip()
    cast = _CAST.match(cursor.text, start, cursor.end)
    if cast is not None:
        cursor.position = cast.end()
        value = _unary(cursor)
        return _Value.integer(int(value.value), f"{cast.group(1)}64")
    for sign in "+-!~(":
        if cursor.accept(sign):
            break
    else:
        return _primary(cursor)
    if sign == "(":
        value = _choice(cursor)
        cursor.expect(")")
        return value
    value = _unary(cursor)
    if isinstance(value.value, float):
        if sign in "!~":
            raise cursor.problem(f"'{sign}' of a float", start)
        return value if sign == "+" else _Value("f64", -value.value)
    match sign:
        case "-":
            # The least integer is written as the minus of one that only u64 has.
            kind = "s64" if value.value == 1 << 63 else value.kind
            return _Value.integer(-value.value, kind)
        case "!":
            return _Value.integer(int(not value.value), "s64")
        case "~":
            return _Value.integer(~value.value, value.kind)
        case _:
            return value


def _primary(cursor: Cursor) -> _Value:
    start = cursor.skip()
    if cursor.accept("WARP_SZ"):
        return _Value("u64", 32)
    if (match := _DECIMAL_FLOAT.match(cursor.text, start, cursor.end)) is not None:
        cursor.position = match.end()
        return _Value("f64", float(match.group()))
    if (match := _INTEGER.match(cursor.text, start, cursor.end)) is None:
        raise cursor.problem("expects an operand")
    cursor.position = match.end()
    for digits, base in zip(match.groups()[:4], (16, 2, 8, 10), strict=True):
        if digits is not None:
            value = int(digits, base)
            break
    else:
        raise AssertionError(match)
    # The type of a literal is s64 unless it says U or does not fit.
    return _Value.integer(value, "u64" if match.group(5) or value >> 63 else "s64")
