"""PTX out of files: what they are is told by content, as everywhere."""

from __future__ import annotations

import re

from mlirhlo.diagnostics import Place, error
from mlirhlo.dialects.ptx.ops import ModuleOp
from mlirhlo.formats.ptx.printer import print_ptx
from mlirhlo.formats.ptx.reader import parse_ptx
from mlirhlo.formats.sniff import Format, sniff, unwrap

_PTX = re.compile(rb"(?>\s+|//[^\n]*+|/\*(?>[^*]+|\*(?!/))*+\*/)*+\.\s*version\b")


_LLVM_IR = re.compile(
    rb"(?>\s+|;[^\n]*+)*+(?:source_filename|target (?:triple|datalayout)|define |declare |[@%!$]|attributes )"
)


def is_llvm_ir(data: bytes) -> bool:
    """Whether a file begins as LLVM assembly does."""
    return _LLVM_IR.match(data) is not None


def is_ptx(data: bytes) -> bool:
    """Whether a file begins as PTX does: with `.version`, behind comments."""
    return _PTX.match(data) is not None


def ptx_text(data: bytes, name: str = "<input>") -> str:
    """The PTX in a file, gzip or not. Raises `HloError` HLO0765 if the file is something else."""
    data = unwrap(data, name)
    if not is_ptx(data):
        known = sniff(data)
        what = f": it is {known}" if known.format is not Format.UNKNOWN else ""
        raise error(
            "HLO0765",
            f"this is not PTX{what}",
            Place(name),
            help="PTX begins with .version; hlo-opt reads modules, mosaic-opt kernels of TPUs",
        )
    return data.decode("utf-8", "surrogateescape")


def check_roundtrip(module: ModuleOp, name: str) -> None:
    """Raises `HloError` HLO0766 unless what is printed of a module is read as the same module."""
    text = print_ptx(module)
    again = parse_ptx(text, name)
    if not module.is_structurally_equivalent(again):
        lines = zip(text.split("\n"), print_ptx(again).split("\n"), strict=False)
        number, line = next(
            ((n, one) for n, (one, other) in enumerate(lines, 1) if one != other), (0, "")
        )
        raise error(
            "HLO0766", "printed and read again, the module differs", Place(name, number, 0, 1, line)
        )
