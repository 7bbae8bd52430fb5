"""What every structured attribute of the hlo dialect shares.

A structured attribute holds a plain frozen value. Its syntax is HLO's own, in both forms: in HLO
text it stands bare (`window={size=3x3}`), in MLIR text inside quotes (`#hlo.window<"{size=3x3}">`).
So the syntax of a value stands once, in its `read` function and its `__str__`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Data

from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem, parse_all

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

Value = TypeVar("Value")


class TextAttr(Data[Value]):
    """A `Data` attribute whose parameter is printed in HLO syntax inside a string."""

    read: ClassVar[Callable[[Cursor], Any]]
    """Reads the value from HLO text; raises `SyntaxProblem`."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Value:
        """Reads `<"text">`."""
        with parser.in_angle_brackets():
            start = parser.pos
            text = parser.parse_str_literal()
        try:
            return cast(Value, parse_all(text, cls.read))
        except SyntaxProblem as problem:
            parser.raise_error(f"{cls.name}: {problem.message}", start)

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<"text">`."""
        printer.print_string("<")
        print_string_literal(printer, str(self.data))
        printer.print_string(">")


_NOTHING_TO_ESCAPE = re.compile(r"[ !#-\[\]-~]*+")


def print_string_literal(printer: Printer, text: str) -> None:
    """Prints an MLIR string; in one go where nothing is to be escaped: xDSL prints character by character."""
    if _NOTHING_TO_ESCAPE.fullmatch(text) is None:
        printer.print_string_literal(text)
    else:
        printer.print_string(f'"{text}"')


@lru_cache(maxsize=1 << 14)
def integers(values: tuple[int, ...]) -> DenseArrayBase:
    """`array<i64: …>`, interned."""
    attribute = DenseArrayBase.from_list(i64, values)
    object.__setattr__(attribute, "_hlo_ints", values)
    return attribute


def ints(attribute: Attribute | None) -> tuple[int, ...]:
    """Values of an `array<i64>` attribute, or one of `i32`; `()` for an absent one. Cached on the attribute."""
    if attribute is None:
        return ()
    values: tuple[int, ...] | None = attribute.__dict__.get("_hlo_ints")
    if values is None:
        values = tuple(int(v) for v in cast("DenseArrayBase[Any]", attribute).get_values())
        object.__setattr__(attribute, "_hlo_ints", values)
    return values


@lru_cache(maxsize=1 << 14)
def integer(value: int) -> IntegerAttr:
    """An `i64` attribute, interned."""
    return IntegerAttr(value, i64)


def int_of(attribute: Attribute | None, default: int = 0) -> int:
    """Value of an integer or bool attribute; `default` for an absent one."""
    return default if attribute is None else cast("IntegerAttr[Any]", attribute).value.data


TRUE: IntegerAttr[Any] = IntegerAttr(-1, i1)
FALSE: IntegerAttr[Any] = IntegerAttr(0, i1)


def boolean(value: bool) -> IntegerAttr[Any]:
    """An `i1` attribute, interned."""
    return TRUE if value else FALSE


def bool_of(attribute: Attribute | None, default: bool = False) -> bool:
    """Value of a bool attribute; `default` for an absent one."""
    return default if attribute is None else cast("IntegerAttr[Any]", attribute).value.data != 0


@lru_cache(maxsize=1 << 16)
def string(value: str) -> StringAttr:
    """A string attribute, interned."""
    return StringAttr(value)


def str_of(attribute: Attribute | None, default: str = "") -> str:
    """Value of a string attribute; `default` for an absent one."""
    return default if attribute is None else cast(StringAttr, attribute).data


def attribute_of(value: object, *, is_computation: bool = False) -> Attribute:
    """The attribute of a bool, an integer, a string or several integers; an attribute as it is.

    With `is_computation` a string is a computation's name. Raises `TypeError` for anything else.
    """
    match value:
        case Attribute():
            return value
        case bool():
            return boolean(value)
        case int():
            return integer(value)
        case str():
            return symbol(value) if is_computation else string(value)
        case tuple() | list() if all(type(n) is int for n in cast("list[object]", value)):
            return integers(tuple(cast("list[int]", value)))
        case _:
            raise TypeError(
                "a property is a bool, an integer, a string, integers or an attribute, "
                f"not {type(value).__name__}"
            )


@lru_cache(maxsize=1 << 14)
def symbol(name: str) -> SymbolRefAttr:
    """A reference to a computation, interned."""
    return SymbolRefAttr(name)


def symbol_of(attribute: Attribute) -> str:
    """Name of the computation a reference means."""
    return cast(SymbolRefAttr, attribute).root_reference.data


def symbols_of(attribute: Attribute | None) -> tuple[str, ...]:
    """Computations named by a reference, or by a list of references; `()` for an absent one."""
    if attribute is None:
        return ()
    if isinstance(attribute, SymbolRefAttr):
        return (attribute.root_reference.data,)
    return tuple(symbol_of(a) for a in cast("ArrayAttr[SymbolRefAttr]", attribute).data)
