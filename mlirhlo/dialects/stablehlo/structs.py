"""What the structured attributes of StableHLO and CHLO share: a frozen value, a list of fields.

The dialects spell them `#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>`. A field that
has its default is left out where the dialect leaves it out, and fields are taken in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, TypeVar, cast

from xdsl.ir import Data, SpacedOpaqueSyntaxAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

Value = TypeVar("Value")
Ints = tuple[int, ...]


def parse_ints(parser: AttrParser) -> Ints:
    """`[1, 2, 3]`."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))


def spell_ints(values: Ints) -> str:
    """`[1, 2, 3]`."""
    return f"[{', '.join(map(str, values))}]"


class TextualAttr(Data[Value]):
    """A `Data` attribute whose parameter `spelled` writes."""

    def spelled(self) -> str:
        """The parameter with its brackets: `<offset_dims = [1]>`."""
        raise TypeError(f"{type(self).__name__} has no spelling")

    def print_parameter(self, printer: Printer) -> None:
        """Prints what `spelled` says."""
        printer.print_string(self.spelled())


class StructAttr(TextualAttr[Value]):
    """Named fields in angle brackets; every field an integer or a list of integers."""

    value_class: ClassVar[type[Any]]
    """The frozen dataclass of the value; a field without annotation `int` is a list."""
    all_fields: ClassVar[bool] = False
    """Whether fields with their default are spelled too, and must be given."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Value:
        """Reads `<name = value, …>`."""
        with parser.in_angle_brackets():
            return cls.parse_fields(parser)

    @classmethod
    def parse_fields(cls, parser: AttrParser) -> Value:
        """Reads `name = value, …`; a comma may follow the last."""
        kinds = {f.name: f.type for f in fields(cls.value_class)}
        values: dict[str, Any] = {}
        while (name := parser.parse_optional_identifier()) is not None:
            if name not in kinds:
                parser.raise_error(f"{cls.name} has no field '{name}'")
            if name in values:
                parser.raise_error(f"{cls.name}: field '{name}' stands twice")
            parser.parse_punctuation("=")
            is_int = kinds[name] in ("int", int)
            values[name] = parser.parse_integer() if is_int else parse_ints(parser)
            if parser.parse_optional_punctuation(",") is None:
                break
        if cls.all_fields and (missing := [name for name in kinds if name not in values]):
            parser.raise_error(f"{cls.name}: expected '{missing[0]}'")
        return cast(Value, cls.value_class(**values))

    def spelled(self) -> str:
        """The fields in order, those with their default left out unless all are spelled."""
        parts: list[str] = []
        for field in fields(self.value_class):
            value: int | Ints = getattr(self.data, field.name)
            if self.all_fields or value != field.default:
                text = str(value) if isinstance(value, int) else spell_ints(value)
                parts.append(f"{field.name} = {text}")
        return f"<{', '.join(parts)}>"


class EnumAttr(TextualAttr[str], SpacedOpaqueSyntaxAttribute):
    """One word of a closed list: `#stablehlo<comparison_direction LT>`. `data` is the word."""

    cases: ClassVar[Mapping[str, int]]
    """Every word, with its number in the dialect."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Reads the word, bare or quoted."""
        start = parser.pos
        word = parser.parse_optional_str_literal()
        if word is None:
            word = parser.parse_identifier()
        if word not in cls.cases:
            what = cls.name.rpartition(".")[2]
            parser.raise_error(f"{what} is one of {', '.join(cls.cases)}, not '{word}'", start)
        return word

    def spelled(self) -> str:
        """The word."""
        return self.data

    @property
    def number(self) -> int:
        """Number of the case in the dialect's definition."""
        return self.cases[self.data]


def numbered(*names: str, start: int = 0) -> Mapping[str, int]:
    """Cases counted from `start`."""
    return {name: number for number, name in enumerate(names, start)}
