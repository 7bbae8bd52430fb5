"""HLO text: reader, printer, grammar of record."""

from __future__ import annotations

import mlirhlo.dialects  # noqa: F401  # pyright: ignore[reportUnusedImport]  # xDSL's dialects, imported after it, are defined late
from mlirhlo.formats.hlo_text.options import PrintOptions
from mlirhlo.formats.hlo_text.printer import print_module
from mlirhlo.formats.hlo_text.reader import parse_module
from mlirhlo.formats.hlo_text.reader_state import ReadOptions

__all__ = ["PrintOptions", "ReadOptions", "parse_module", "print_module"]
