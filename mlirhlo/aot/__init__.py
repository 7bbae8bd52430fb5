"""Modules compiled ahead of time: object files and libraries that run without Python, LLVM or this package.

`compile_ahead(module, name)` gives an `Ahead`: the object code with everything a header has to say;
`emitted(ahead, kinds)` makes its files. `docs/ahead-of-time.md` shows the command, `hlo-aot`.
"""

from __future__ import annotations

from mlirhlo.aot.compiler import Ahead, compile_ahead
from mlirhlo.aot.files import emitted, write_files

__all__ = ["Ahead", "compile_ahead", "emitted", "write_files"]
