"""Kernels as text: pretty, generic and stable form in, the same out, byte for byte."""

from mlirhlo.formats.mosaic.printer import Form, KernelPrinter, print_kernel
from mlirhlo.formats.mosaic.reader import KernelReader, parse_kernel

__all__ = ["Form", "KernelPrinter", "KernelReader", "parse_kernel", "print_kernel"]
