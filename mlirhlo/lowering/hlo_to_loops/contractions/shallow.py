"""Contractions of few products for each element of the result: memory bounds them, so they are computed row by row
as elementwise instructions are. Packing operands and cutting the result into tiles would only cost.
"""

from __future__ import annotations

from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import rounding
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction

MAX_DEPTH = 5
"""Products for each element of the result."""
MIN_VECTORS = 2
"""Vectors in a row of the result."""


def is_shallow(c: Contraction, lanes: int) -> bool:
    """Whether a vector of the result is a sum of few vectors in memory, each times one number in memory."""
    if c.count(c.depth) > MAX_DEPTH or c.arithmetic.parts > 1 or len(c.columns) != 1:
        return False
    if not (c.lhs.is_linear and c.rhs.is_linear) or c.count(c.columns) < MIN_VECTORS * lanes:
        return False
    if any(rounding(f.shape.element_type, c.algorithm) for f in (c.lhs, c.rhs)):
        return False
    (column,) = c.columns
    _, strides = c.rhs.strides()
    return strides.get(c.origins.get(column, (column,))[-1], 0) == 1
