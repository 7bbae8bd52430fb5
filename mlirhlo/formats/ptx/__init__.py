"""PTX: reader, printer, grammar of record, and the flat view that tools work on."""

from __future__ import annotations

from mlirhlo.analysis.ptx import FlatFunction, FlatInstruction, flat
from mlirhlo.formats.ptx.printer import print_ptx
from mlirhlo.formats.ptx.reader import parse_ptx

__all__ = ["FlatFunction", "FlatInstruction", "flat", "parse_ptx", "print_ptx"]
