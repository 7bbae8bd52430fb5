"""Builtin attributes of MLIR that xDSL has no class for."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.printer import Printer


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
