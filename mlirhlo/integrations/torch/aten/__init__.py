"""Meanings of PyTorch's ATen operations: functions on traced arrays, a rule an operation, by its overload's name.

Operands are arrays of `mlirhlo.numpy` under construction, or the Python numbers, lists and None that stand in a graph.
Source: PyTorch's `native_functions.yaml` (signatures) and documentation.
"""

from mlirhlo.integrations.torch.aten import (
    elementwise,
    indexing,
    movement,
    products,
    reductions,
    windows,
)
from mlirhlo.integrations.torch.aten.rules import RULES, Call

__all__ = [
    "RULES",
    "Call",
    "elementwise",
    "indexing",
    "movement",
    "products",
    "reductions",
    "windows",
]
