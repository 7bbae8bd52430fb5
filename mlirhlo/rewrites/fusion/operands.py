"""Operands of dots that are read where they are: transposes and slices, which only say where elements stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from mlirhlo.dialects.hlo.ops import DotOp, SliceOp, TransposeOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.fusion.graph import Node, Role
from mlirhlo.rewrites.fusion.groups import readers_in
from mlirhlo.rewrites.fusion.spaces import major_to_minor

_LINE_BYTES = 64
"""Neighbours in memory that a slice has to keep together: less would be read in parts of lines."""


def leads_to(members: Mapping[Node, object], node: Node, product: Node) -> bool:
    """Whether `node` is an operand of the product, or of what is computed before it."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        readers = readers_in(members, stack.pop())
        if product in readers:
            return True
        moves = [r for r in readers if r.role in (Role.MOVE, Role.VIEW) and r not in seen]
        seen.update(moves)
        stack += moves
    return False


def is_read_in_place(members: Mapping[Node, object], node: Node, product: Node) -> bool:
    """Whether a dot reads `node` as well where the node's operand stands, and nothing else of the group does."""
    if not isinstance(product.op, DotOp):
        return False
    if not all(r is product or leads_to(members, r, product) for r in readers_in(members, node)):
        return False
    return _keeps_lines(node)


def _keeps_lines(node: Node) -> bool:
    """Whether it moves neighbours in memory together, a reshape with what it is of."""
    while node.role is Role.VIEW:
        if not node.operands or node.operands[0].role is Role.OTHER:
            return False
        (node,) = node.operands
    op = node.op
    if (
        node.role is not Role.MOVE
        or node.shape is None
        or not isinstance(op, SliceOp | TransposeOp)
    ):
        return False
    inner, before = _innermost(node.shape), _innermost(cast(ArrayShape, shape_of(op.operand.type)))
    if inner is None or before is None:
        return False
    if isinstance(op, TransposeOp):
        return op.dimensions[inner] == before
    assert op.slices is not None
    size = node.shape.dimensions[inner] * node.shape.element_type.byte_size
    return inner == before and op.slices.dimensions[inner].stride == 1 and size >= _LINE_BYTES


def _innermost(shape: ArrayShape) -> int | None:
    """The dimension that neighbours in memory differ by."""
    return next((d for d in reversed(major_to_minor(shape)) if shape.dimensions[d] != 1), None)
