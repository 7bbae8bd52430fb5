"""Attributes and types that nobody here knows, kept as they are spelled."""

from __future__ import annotations

from xdsl.ir import BuiltinAttribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class OpaqueAttr(Data[str], BuiltinAttribute):
    """An attribute of a dialect that is not registered: `#tf.shape<2>`. `data` is its text."""

    name = "builtin.opaque_attr"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Reads a string."""
        return parser.parse_str_literal()

    def print_parameter(self, printer: Printer) -> None:
        """Prints the text."""
        printer.print_string(self.data)

    def print_builtin(self, printer: Printer) -> None:
        """Prints the text."""
        printer.print_string(self.data)


@irdl_attr_definition
class OpaqueType(Data[str], BuiltinAttribute, TypeAttribute):
    """A type of a dialect that is not registered: `!tf.string`. `data` is its text."""

    name = "builtin.opaque_type"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Reads a string."""
        return parser.parse_str_literal()

    def print_parameter(self, printer: Printer) -> None:
        """Prints the text."""
        printer.print_string(self.data)

    def print_builtin(self, printer: Printer) -> None:
        """Prints the text."""
        printer.print_string(self.data)
