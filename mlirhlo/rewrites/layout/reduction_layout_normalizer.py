"""`reduction-layout-normalizer`: reduces of arrays in the order of their memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import BitcastOp, CopyOp, ReduceOp
from mlirhlo.rewrites.algsimp.common import Builder, array, is_array, own_properties
from mlirhlo.rewrites.algsimp.movement.physical import is_plain, order_of, with_order
from mlirhlo.rewrites.layout.layout_normalization import finish, is_descending, normal, normalised
from mlirhlo.rewrites.legalize.expander import ExpanderPass
from mlirhlo.rewrites.rules import Rewriter, Rule, rule


@rule(ReduceOp)
def reduce_in_order(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(bitcast(x), c) => bitcast(reduce(x, c)), with a copy where the result has another order"""
    if not is_array(op) or len(op.inputs) != 2:
        return
    source, result = array(op.inputs[0]), array(op)
    if is_descending(source) or not (is_plain(source) and is_plain(result)):
        return
    order = order_of(source)
    dims = sorted(order.index(d) for d in op.dimensions)
    kept = [d for d in range(source.rank) if d not in op.dimensions]
    # The order in which the result comes, of its own dimensions.
    come = [kept.index(d) for d in order if d in kept]
    found = with_order(result, result.dimensions, come)
    b = Builder(op, rewriter)
    own = {**own_properties(op), "dimensions": integers(tuple(dims))}
    made = b(ReduceOp, normalised(b, op.inputs[0]), op.inputs[1], shape=normal(found), **own)
    if found == result:
        finish(b, made)
        return
    moved = made if made.shape == found else b(BitcastOp, made, shape=found)
    b.like(CopyOp, moved)
    b.done()


@dataclass(frozen=True)
class ReductionLayoutNormalizerPass(ExpanderPass):
    """Reduces arrays in the order of their memory, so that operands are row-major.

    Before and after:

        %r = f32[3]{0} reduce(%x, %c), dimensions={1}, %x = f32[3,2]{0,1}
          =>   %b = f32[2,3]{1,0} bitcast(%x)
               %r = f32[3]{0} reduce(%b, %c), dimensions={0}

    Where the result is wanted in another order than it comes in, it is copied. Reduces of several arrays, and what
    is fused, stay. Needs: layouts are assigned. Source: the pass of XLA:GPU.
    """

    name = "reduction-layout-normalizer"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (reduce_in_order,)
