"""The terms that a tile of a ragged product needs: those that are in its group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.arith import MaxSIOp

from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.element_ops import factor_inputs
from mlirhlo.lowering.schedule.group_ranges import group_range_of

if TYPE_CHECKING:
    from mlirhlo.lowering.gpu.kinds.contraction import Block


def terms_of_groups(block: Block) -> tuple[Index, Index] | None:
    """The first term and the end of those that are not zeros, the first at a multiple of the tile's; None where all are
    needed, or the tile cannot tell."""
    found, product, b = group_range_of(block.op), block.product, block.b
    if found is None or product.terms != (found.position,) or found.group not in product.batch:
        return None
    e, op, dims = b.e, block.op, block.indices((0, 0), 0)
    arguments = factor_inputs(e, op, dims, found.inputs)
    (start,), (end,) = e.values(op.body, arguments, dims, [found.start, found.end])
    start, end = (b.cast_index(bound, INDEX) for bound in (start, end))
    return b.mul(b.div(start, block.depth), block.depth), b.minimum(end, block.terms)


def within(
    block: Block, terms: tuple[Index, Index], first: Index, count: int
) -> tuple[Index, Index]:
    """The first of some terms that are in a part of `count` from `first` on, and how many there are."""
    b = block.b
    low = b.integer(MaxSIOp, b.index(terms[0]), b.index(first))
    high = b.index(b.minimum(terms[1], b.add(first, count)))
    return low, b.integer(MaxSIOp, b.subi(high, low), b.index(0))
