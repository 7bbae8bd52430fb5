"""`dynamic-index-splitter`: a scalar for each dimension instead of a vector of starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.ops import DynamicSliceOp, DynamicUpdateSliceOp, SliceOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array, own_properties, sized, slices
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(DynamicSliceOp, DynamicUpdateSliceOp)
def dynamic_slice_at_vector(op: DynamicSliceOp | DynamicUpdateSliceOp, rewriter: Rewriter) -> None:
    """dynamic-slice(x, v), v a vector => dynamic-slice(x, v[0], v[1], …); updates too"""
    before = 1 if isinstance(op, DynamicSliceOp) else 2
    if len(op.inputs) != before + 1 or array(op.inputs[before]).rank != 1:
        return
    starts = op.inputs[before]
    shape = array(starts)
    b = Builder(op, rewriter)
    scalar = ArrayShape(shape.element_type, ())
    scalars = [
        b.reshape(
            b(SliceOp, starts, shape=sized(shape, [1]), slice=slices([(k, k + 1, 1)])), scalar
        )
        for k in range(shape.dimensions[0])
    ]
    b.like(type(op), *op.inputs[:before], *scalars, **own_properties(op))
    b.done()


@dataclass(frozen=True)
class DynamicIndexSplitterPass(RulePass):
    """Gives dynamic slices and updates their starts as scalars, one for each dimension.

    Before and after:

        %d = f32[2,2] dynamic-slice(%x, s32[2] %v), dynamic_slice_sizes={2,2}
          =>   %d = f32[2,2] dynamic-slice(%x, s32[] reshape(slice(%v)), s32[] reshape(slice(%v))), …

    Source: XLA's pass of this name; the vector is how old programs say it.
    """

    name = "dynamic-index-splitter"
    rules: ClassVar[tuple[Rule, ...]] = (dynamic_slice_at_vector,)
