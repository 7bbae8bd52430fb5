"""`broadcast_canonicalizer`: dimensions of broadcasts in rising order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import BroadcastOp, TransposeOp
from mlirhlo.rewrites.algsimp.common import Builder, array, sized
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(BroadcastOp)
def broadcast_of_unsorted_dimensions(op: BroadcastOp, rewriter: Rewriter) -> None:
    """broadcast(x, dims) => transpose(broadcast(x, sorted(dims))), dims not rising"""
    dims, shape = op.dimensions, array(op)
    rising = tuple(sorted(dims))
    if dims == rising or shape.is_dynamic:
        return
    # Result dimension d of the broadcast below is dimension `order[d]` of the result.
    order = list(range(shape.rank))
    for wanted, found in zip(dims, rising, strict=True):
        order[found] = wanted
    b = Builder(op, rewriter)
    below = b.broadcast(op.operand, rising, sized(shape, [shape.dimensions[d] for d in order]))
    back = tuple(order.index(d) for d in range(shape.rank))
    b.like(TransposeOp, below, dimensions=integers(back))
    b.done()


@dataclass(frozen=True)
class BroadcastCanonicalizerPass(RulePass):
    """Sorts the dimensions of broadcasts; a transpose puts the result in order.

    Before and after:

        %b = f32[3,2] broadcast(%x), dimensions={1,0}   =>   %b = f32[3,2] transpose(broadcast(%x), dimensions={0,1})

    Source: reference of the passes, "Other simplifiers".
    """

    name = "broadcast_canonicalizer"
    rules: ClassVar[tuple[Rule, ...]] = (broadcast_of_unsorted_dimensions,)
