"""When `reduce` is printed with the op it applies instead of a region."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.stablehlo.op_classes import TableOp


def applied_op(op: Operation) -> Operation | None:
    """The op a reduce applies, where its region is nothing but that op on both arguments."""
    if len(op.operands) != 2 or len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return None
    block = op.regions[0].blocks[0]
    inner, last = block.first_op, block.last_op
    if inner is None or last is None or inner.next_op is not last or len(block.args) != 2:
        return None
    if not isinstance(inner, TableOp) or not inner.name.startswith("stablehlo."):
        return None
    if "commutative" not in inner.row.traits or inner.regions:
        return None
    # As in MLIR, attributes of the inner op do not count, and are lost.
    if tuple(inner.operands) != tuple(block.args):
        return None
    if tuple(last.operands) != tuple(inner.results):
        return None
    if last.name != "stablehlo.return":
        return None
    types = [v.type for v in (*inner.operands, *inner.results)]
    if any(t != types[0] for t in types) or not isinstance(types[0], TensorType):
        return None
    scalar = cast("TensorType[Attribute]", types[0])
    operand = op.operands[0].type
    if not isinstance(operand, TensorType) or scalar.get_num_dims():
        return None
    if cast("TensorType[Attribute]", operand).element_type != scalar.element_type:
        return None
    return inner
