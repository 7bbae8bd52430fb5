"""Builtin attributes of MLIR that xDSL has no class for."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, BuiltinAttribute, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.printer import Printer


@irdl_attr_definition
class FileLineColRange(ParametrizedAttribute, BuiltinAttribute):
    """`loc("f.py":1:2 to 3:4)`: a stretch of a file. Zero to four numbers, in the order of the text:
    the line; line and column; line, column, end column; line, column, end line, end column."""

    name: ClassVar[str] = "builtin.file_line_col_range"

    filename: StringAttr
    numbers: ArrayAttr[IntAttr]

    def print_builtin(self, printer: Printer) -> None:
        """Prints it as MLIR does."""
        numbers = [number.data for number in self.numbers.data]
        with printer.in_location():
            printer.print_string_literal(self.filename.data)
            if len(numbers) > 0:
                printer.print_string(f":{numbers[0]}")
            if len(numbers) > 1:
                printer.print_string(f":{numbers[1]}")
            if len(numbers) == 3:
                printer.print_string(f" to :{numbers[2]}")
            if len(numbers) == 4:
                printer.print_string(f" to {numbers[2]}:{numbers[3]}")


@irdl_attr_definition
class DistinctAttr(ParametrizedAttribute, BuiltinAttribute):
    """`distinct[0]<…>`: equal only to itself."""

    name: ClassVar[str] = "builtin.distinct"

    number: IntAttr
    value: Attribute

    def print_builtin(self, printer: Printer) -> None:
        """Prints it as MLIR does."""
        printer.print_string(f"distinct[{self.number.data}]<")
        printer.print_attribute(self.value)
        printer.print_string(">")


@irdl_attr_definition
class DenseStringElementsAttr(ParametrizedAttribute, BuiltinAttribute):
    """`dense<["a", "b"]> : tensor<2x!t>`: strings, one where all are the same."""

    name: ClassVar[str] = "builtin.dense_string_elements"

    type: Attribute
    values: ArrayAttr[StringAttr]
    is_splat: IntAttr

    def print_builtin(self, printer: Printer) -> None:
        """Prints it flat; a splat without brackets."""
        printer.print_string("dense<")
        if self.is_splat.data:
            printer.print_attribute(self.values.data[0])
        else:
            printer.print_attribute(self.values)
        printer.print_string("> : ")
        printer.print_attribute(self.type)


@irdl_attr_definition
class SparseElementsAttr(ParametrizedAttribute, BuiltinAttribute):
    """`sparse<indices, values> : type`."""

    name: ClassVar[str] = "builtin.sparse_elements"

    type: Attribute
    indices: Attribute
    values: Attribute

    def print_builtin(self, printer: Printer) -> None:
        """Prints indices and values with their types."""
        printer.print_string("sparse<")
        printer.print_attribute(self.indices)
        printer.print_string(", ")
        printer.print_attribute(self.values)
        printer.print_string("> : ")
        printer.print_attribute(self.type)
