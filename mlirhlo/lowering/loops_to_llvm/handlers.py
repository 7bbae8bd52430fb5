"""The handlers of all ops by name."""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.lowering.loops_to_llvm.arith import HANDLERS as ARITH
from mlirhlo.lowering.loops_to_llvm.control import HANDLERS as CONTROL
from mlirhlo.lowering.loops_to_llvm.convert import Handler
from mlirhlo.lowering.loops_to_llvm.memory import HANDLERS as MEMORY
from mlirhlo.lowering.loops_to_llvm.vectors import HANDLERS as VECTORS
from mlirhlo.lowering.loops_to_llvm.x86 import HANDLERS as X86

HANDLERS: Mapping[str, Handler] = {**ARITH, **CONTROL, **MEMORY, **VECTORS, **X86}
"""Every op of the loops stage that has a lowering."""
