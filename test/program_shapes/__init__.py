"""Programs of any size, deep or wide in one way each, for tests of what takes how long."""

from __future__ import annotations

from program_shapes import chains, loops, many, nests, rows, runs, variadic, wide
from program_shapes.registry import SHAPES

__all__ = ["SHAPES", "chains", "loops", "many", "nests", "rows", "runs", "variadic", "wide"]
