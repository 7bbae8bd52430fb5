"""Facts about PTX: resolved functions, what is wrong with them, registers that are live."""

from __future__ import annotations

from mlirhlo.analysis.ptx.flat import FlatFunction, FlatInstruction, flat
from mlirhlo.analysis.ptx.verifier import verify_ptx

__all__ = ["FlatFunction", "FlatInstruction", "flat", "verify_ptx"]
