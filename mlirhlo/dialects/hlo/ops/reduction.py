"""Instructions that fold, scan, sort or map by a computation."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.dimensions import Window
from mlirhlo.dialects.hlo.ops.base import (
    Instruction,
    Unary,
    bool_property,
    computation_property,
    instruction,
    int_property,
    ints_property,
    value_or,
)


@instruction("map")
class MapOp(Instruction):
    """A computation on each element."""

    dimensions = ints_property()
    to_apply = computation_property()


@instruction("reduce")
class ReduceOp(Instruction):
    """Dimensions folded by a computation from initial values."""

    dimensions = ints_property()
    to_apply = computation_property()


@instruction("reduce-window")
class ReduceWindowOp(Instruction):
    """Each window folded by a computation."""

    window = value_or(Window(()))
    to_apply = computation_property()


@instruction("scan")
class ScanOp(Instruction):
    """A computation carried along a dimension, outputs stacked."""

    dimensions = ints_property()
    num_carries = int_property()
    is_reverse = bool_property()
    is_associative = bool_property()
    to_apply = computation_property()


@instruction("select-and-scatter")
class SelectAndScatterOp(Unary):
    """Source values added where the selected element of each window lies."""

    window = value_or(Window(()))
    select = computation_property()
    scatter = computation_property()

    @property
    def source(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]

    @property
    def init_value(self) -> SSAValue:
        """Operand 2."""
        return self._operands[2]


@instruction("sort")
class SortOp(Instruction):
    """Operands sorted together along a dimension by a comparator."""

    dimensions = ints_property()
    is_stable = bool_property()
    to_apply = computation_property()


@instruction("topk")
class TopkOp(Unary):
    """The k largest or smallest of the last dimension and their indices."""

    k = int_property()
    largest = bool_property(True)
    is_stable = bool_property()
