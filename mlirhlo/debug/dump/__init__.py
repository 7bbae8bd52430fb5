"""Dumps as XLA writes them: names, kinds and contents of the files that `--xla_dump_to` asks for."""

from __future__ import annotations

from mlirhlo.debug.dump.compilation import CompilationDump, dumping, flags_for, observe
from mlirhlo.debug.dump.writer import ModuleDump, start

__all__ = ["CompilationDump", "ModuleDump", "dumping", "flags_for", "observe", "start"]
