"""Whether an operand may be overwritten, because nobody else will ever look at it.

Values are immutable, but a loop that updates a large buffer slice by slice would copy all of it in
every iteration. The engine lets go of an operand at its last use, so an array that only the list
of inputs refers to is free for the taking. Views count as references to the array they look into.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np


def _references(inputs: Sequence[Any], index: int) -> int:
    operand = inputs[index]
    return sys.getrefcount(operand)


# Measured, not assumed: what a local variable counts for differs between Pythons.
_ALONE = _references([np.empty(1)], 0)


def is_free(inputs: Sequence[Any], index: int = 0) -> bool:
    """Whether `inputs` holds the only reference to a whole, writable array."""
    if _references(inputs, index) > _ALONE:
        return False
    flags = inputs[index].flags
    return bool(flags.owndata and flags.writeable and flags.c_contiguous)
