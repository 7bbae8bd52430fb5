"""StableHLO programs as MLIR text, pretty and generic, byte for byte as MLIR prints them."""

from mlirhlo.formats.stablehlo.printer import print_module
from mlirhlo.formats.stablehlo.reader import parse_module

__all__ = ["parse_module", "print_module"]
