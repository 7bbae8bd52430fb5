"""PTX: reader, printer, grammar of record, and the views that tools work on."""

from __future__ import annotations

from mlirhlo.analysis.ptx import FlatFunction, FlatInstruction, flat, verify_ptx
from mlirhlo.formats.ptx.files import check_roundtrip, is_llvm_ir, is_ptx, ptx_text
from mlirhlo.formats.ptx.printer import print_ptx
from mlirhlo.formats.ptx.reader import parse_ptx

__all__ = [
    "FlatFunction",
    "FlatInstruction",
    "check_roundtrip",
    "flat",
    "is_llvm_ir",
    "is_ptx",
    "parse_ptx",
    "print_ptx",
    "ptx_text",
    "verify_ptx",
]
