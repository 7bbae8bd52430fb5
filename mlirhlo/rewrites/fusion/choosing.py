"""Products of which a `select` takes a part: the kernel of the product then need not make the rest."""

from __future__ import annotations

from math import prod
from typing import cast

from mlirhlo.dialects.hlo.ops import DotOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.fusion.graph import Node, Role

LEAST_DEPTH = 32
"""Products of an element that take longer than asking whether it is wanted."""


def chosen_product(node: Node) -> Node | None:
    """The dot of which a select takes elements where a mask says so, through elementwise instructions that
    nothing else reads; None for all else."""
    if node.opcode != "select" or node.operands[0].from_product or len(node.operands) != 3:
        return None
    taken = [n for n in node.operands[1:] if _leads_on(n, node)]
    if len(taken) != 1:
        return None
    found = taken[0]
    while found.role is not Role.PRODUCT:
        following = [n for n in dict.fromkeys(found.operands) if _leads_on(n, found)]
        if len(following) != 1:
            return None
        found = following[0]
    op = found.op
    if not isinstance(op, DotOp):
        return None
    lhs = cast(ArrayShape, shape_of(op.inputs[0].type))
    depth = prod(lhs.dimensions[d] for d in op.lhs_contracting_dims)
    return found if depth >= LEAST_DEPTH else None


def _leads_on(node: Node, user: Node) -> bool:
    """Whether an operand comes from a product and is read here alone."""
    return node.from_product and node.space == user.space and len(node.users) == 1
