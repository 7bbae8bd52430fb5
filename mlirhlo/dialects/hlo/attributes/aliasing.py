"""Who shares memory with whom: aliasing of inputs, outputs and operands; donated buffers.

Source of every syntax: HLO text, "Module header" and "Attribute value syntaxes".
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.irdl import irdl_attr_definition

from mlirhlo.dialects.hlo.attributes.base import TextAttr
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem, braces

_KINDS = ("may-alias", "must-alias")


@dataclass(frozen=True, slots=True)
class InputOutputAlias:
    """One entry `{out}: (parameter, {index}, may-alias)`."""

    output_index: tuple[int, ...]
    parameter_number: int
    parameter_index: tuple[int, ...] = ()
    kind: str = "may-alias"

    def __str__(self) -> str:
        return f"{_index(self.output_index)}: ({self.parameter_number}, {_index(self.parameter_index)}, {self.kind})"


def _index(index: tuple[int, ...]) -> str:
    return braces(index)


@dataclass(frozen=True, slots=True)
class InputOutputAliases:
    """`{ {0}: (0, {}, may-alias), … }`."""

    entries: tuple[InputOutputAlias, ...]

    def __str__(self) -> str:
        return "{ " + ", ".join(map(str, self.entries)) + " }"


def read_input_output_alias(cursor: Cursor) -> InputOutputAliases:
    """Reads the module header's `input_output_alias`. Raises `SyntaxProblem`."""

    def entry() -> InputOutputAlias:
        output = cursor.integers()
        cursor.expect(":")
        if not cursor.accept("("):
            raise cursor.problem("expects '(param_number, {index}[, may-alias|must-alias])'")
        number = cursor.integer()
        index: tuple[int, ...] = ()
        kind = "may-alias"
        if cursor.accept(","):
            index = cursor.integers()
        if cursor.accept(","):
            start = cursor.skip()
            kind = cursor.word("an alias kind")
            if kind not in _KINDS:
                raise SyntaxProblem(
                    start, f"alias kind is {' or '.join(_KINDS)}, found {kind!r}", len(kind)
                )
        cursor.expect(")")
        return InputOutputAlias(output, number, index, kind)

    return InputOutputAliases(cursor.items("{", "}", entry))


@irdl_attr_definition
class InputOutputAliasesAttr(TextAttr[InputOutputAliases]):
    """An `InputOutputAliases`."""

    name = "hlo.input_output_alias"
    read = read_input_output_alias


@dataclass(frozen=True, slots=True)
class BufferDonors:
    """`{ (2, {}), (3, {0}) }`: parameter number and shape index."""

    entries: tuple[tuple[int, tuple[int, ...]], ...]

    def __str__(self) -> str:
        return "{ " + ", ".join(f"({n}, {_index(i)})" for n, i in self.entries) + " }"


def read_buffer_donor(cursor: Cursor) -> BufferDonors:
    """Reads the module header's `buffer_donor`. Raises `SyntaxProblem`."""

    def entry() -> tuple[int, tuple[int, ...]]:
        cursor.expect("(")
        number = cursor.integer()
        cursor.expect(",")
        index = cursor.integers()
        cursor.expect(")")
        return number, index

    return BufferDonors(cursor.items("{", "}", entry))


@irdl_attr_definition
class BufferDonorsAttr(TextAttr[BufferDonors]):
    """A `BufferDonors`."""

    name = "hlo.buffer_donor"
    read = read_buffer_donor


@dataclass(frozen=True, slots=True)
class OutputOperandAlias:
    """One entry `{out}: (operand, {index})`."""

    output_index: tuple[int, ...]
    operand_number: int
    operand_index: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{_index(self.output_index)}: ({self.operand_number}, {_index(self.operand_index)})"


@dataclass(frozen=True, slots=True)
class OutputOperandAliases:
    """`{{}: (0, {}), {1}: (2, {0})}`."""

    entries: tuple[OutputOperandAlias, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.entries)) + "}"


def read_output_operand_aliasing(cursor: Cursor) -> OutputOperandAliases:
    """Reads `output_to_operand_aliasing`. Raises `SyntaxProblem`."""

    def entry() -> OutputOperandAlias:
        output = cursor.integers()
        cursor.expect(":")
        cursor.expect("(")
        number = cursor.integer()
        index = cursor.integers() if cursor.accept(",") else ()
        cursor.expect(")")
        return OutputOperandAlias(output, number, index)

    return OutputOperandAliases(cursor.items("{", "}", entry))


@irdl_attr_definition
class OutputOperandAliasesAttr(TextAttr[OutputOperandAliases]):
    """An `OutputOperandAliases`."""

    name = "hlo.output_to_operand_aliasing"
    read = read_output_operand_aliasing
