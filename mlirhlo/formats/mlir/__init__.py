"""The MLIR form: custom and generic syntax in and out."""

from mlirhlo.formats.mlir.parser import context, parse_module
from mlirhlo.formats.mlir.printer import MlirPrinter, print_module

__all__ = ["MlirPrinter", "context", "parse_module", "print_module"]
