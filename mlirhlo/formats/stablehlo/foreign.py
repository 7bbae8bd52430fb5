"""The bridge to xDSL's parser, for the syntax that dialects bring themselves.

The reader hands its position, values and aliases over; what the dialect's code asks for - types,
attributes, regions, operands - comes back to the reader.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Span

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.dialects.stablehlo.elements import DenseAttr, to_xdsl
from mlirhlo.formats.mlir.parser import MlirParser
from mlirhlo.formats.stablehlo.scan import BAD_VALUE, SYNTAX

if TYPE_CHECKING:
    from mlirhlo.formats.stablehlo.reader import Reader

_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)


class Bridge(MlirParser):
    """xDSL's parser at the reader's position in the reader's text."""

    for_foreign_op: bool = False
    """Whether an op of xDSL is being read, which knows xDSL's constants only."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        super().__init__(reader.ctx, reader.text, reader.source.file)

    @property
    def ssa_values(self) -> dict[str, tuple[SSAValue, ...]]:
        """The reader's values."""
        return self._reader.values

    @ssa_values.setter
    def ssa_values(self, value: dict[str, tuple[SSAValue, ...]]) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """xDSL's constructor sets an empty dictionary; the reader's stands."""

    @classmethod
    @contextmanager
    def over(cls, reader: Reader) -> Generator[Bridge]:
        """A parser at the reader's position; the reader goes on where the parser stops.

        What xDSL raises becomes `HloError`.
        """
        bridge = reader.bridge
        if bridge is None:
            bridge = reader.bridge = cls(reader)
        outer = bridge._parser_state.dialect_stack
        bridge.enter()
        start = reader.pos
        try:
            yield bridge
        except ParseError as problem:
            span = problem.span
            text = str(problem.args[-1] if problem.args else problem).strip().splitlines()
            place = reader.source.place(span.start, max(1, span.end - span.start))
            message = text[-1] if text else "syntax error"
            raise HloError(Diagnostic(SYNTAX, message, place)) from None
        except VerifyException as problem:
            lines = str(problem).strip().splitlines()
            place = reader.source.place(start)
            raise HloError(Diagnostic(BAD_VALUE, lines[-1] if lines else "", place)) from None
        except _FAILURES as problem:
            message = f"cannot read this: {problem or type(problem).__name__}"
            raise HloError(Diagnostic(SYNTAX, message, reader.source.place(start))) from None
        finally:
            bridge._parser_state.dialect_stack = outer
        bridge.leave()

    def enter(self) -> None:
        """Goes to the reader's position."""
        self._resume_from(self._reader.skip())

    def leave(self) -> None:
        """Takes the reader to this position."""
        self._reader.pos = self.pos

    # What dialects ask for.

    def own_type(self) -> Attribute:
        """A type by xDSL's own rules; inner ones are the reader's."""
        return self.expect(super().parse_optional_type, "type expected")

    def own_attribute(self) -> Attribute:
        """An attribute by xDSL's own rules; inner ones are the reader's."""
        return self.expect(super().parse_optional_attribute, "attribute expected")

    def parse_optional_type(self) -> Any:
        """The reader's types."""
        self.leave()
        found = self._reader.optional_type()
        self.enter()
        return found

    def parse_optional_attribute(self) -> Attribute | None:
        """The reader's attributes."""
        self.leave()
        found = self._reader.optional_attribute()
        self.enter()
        if self.for_foreign_op and isinstance(found, DenseAttr):
            return to_xdsl(found)
        return found

    def parse_optional_location(self) -> LocationAttr | None:
        """The reader's places."""
        self.leave()
        found = self._reader.optional_location()
        self.enter()
        return cast("LocationAttr | None", found)

    def parse_optional_dictionary_attr_dict(self) -> dict[str, Attribute]:
        """The reader's dictionaries."""
        self.leave()
        found = self._reader.optional_dictionary()
        self.enter()
        return found

    def parse_optional_successor(self) -> Block | None:
        """The reader's blocks."""
        self.leave()
        found: Block | None = None
        if self._reader.accept("^"):
            found = self._reader.block_named(self._reader.suffix())
        self.enter()
        return found

    def parse_optional_argument(self, expect_type: bool = True) -> Any:
        """An argument may say where it comes from."""
        found: Any = super().parse_optional_argument(expect_type)
        if found is not None and expect_type:
            found.location = self.parse_optional_location()
        return found

    def resolve_operand(self, operand: Any, type: Any) -> Any:
        """The reader's values."""
        return self._reader.use(operand.operand_name, operand.index, type, operand.span.start)

    def _register_ssa_definition(self, name: str, values: Any, span: Span) -> None:
        self._reader.define(name, tuple(values), span.start)

    def parse_optional_region(
        self, arguments: Iterable[Parser.Argument] | None = None
    ) -> Region | None:
        """The reader's regions."""
        self.leave()
        if not self._reader.at("{"):
            self.enter()
            return None
        given = None
        arguments = None if arguments is None else list(arguments)
        if arguments is not None:
            given = [(a.name.text[1:], a.type, a.name.start) for a in arguments]
        places = [cast("Attribute | None", a.location) for a in arguments or ()]
        region = self._reader.region(given, locations=places)
        self.enter()
        return region

    def parse_optional_operation(self) -> Operation | None:
        """The reader's operations."""
        self.leave()
        found = self._reader.optional_operation()
        self.enter()
        return found

    def parse_operation(self) -> Operation:
        """The reader's operations."""
        return self.expect(self.parse_optional_operation, "operation expected")
