"""The handlers of all ops by name."""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.lowering.loops_to_llvm.arith import HANDLERS as ARITH
from mlirhlo.lowering.loops_to_llvm.control import HANDLERS as CONTROL
from mlirhlo.lowering.loops_to_llvm.convert import Handler
from mlirhlo.lowering.loops_to_llvm.memory import HANDLERS as MEMORY
from mlirhlo.lowering.loops_to_llvm.vectors import HANDLERS as VECTORS

HANDLERS: Mapping[str, Handler] = {**ARITH, **CONTROL, **MEMORY, **VECTORS}
"""Every op of the loops stage that has a lowering."""
