"""Facts about PTX: resolved functions, what a target takes, registers that are live."""

from __future__ import annotations

from mlirhlo.analysis.ptx.flat import FlatFunction, FlatInstruction, flat

__all__ = ["FlatFunction", "FlatInstruction", "flat"]
