"""`all-reduce-contiguous`: an all-reduce of several arrays as one of all their elements."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import AllReduceOp, BitcastOp, ConcatenateOp, SliceOp, TupleOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array, own_properties, sized, slices
from mlirhlo.rewrites.collectives.common import Surroundings
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.rules import Rewriter, Rule, RuleDriver, RulePass, rule


@rule(AllReduceOp)
def reduction_of_several(op: AllReduceOp, rewriter: Rewriter) -> None:
    """all-reduce(x, y) => tuple(x', y'), parts of all-reduce(concatenate(bitcast(x), bitcast(y)))"""
    shapes = op.input_shapes
    if len(shapes) < 2 or "sharding" in op.properties:
        return
    if any(not isinstance(s, ArrayShape) or s.is_dynamic for s in shapes):
        return
    first = array(op.inputs[0])
    if any(array(v).element_type is not first.element_type for v in op.inputs):
        return
    b = Builder(op, rewriter)
    counts = [prod(array(v).dimensions) for v in op.inputs]
    flat = [
        b(BitcastOp, v, shape=sized(first, (n,))) for v, n in zip(op.inputs, counts, strict=True)
    ]
    whole = sized(first, (sum(counts),))
    joined = b(ConcatenateOp, *flat, shape=whole, dimensions=integers((0,)))
    kept = {k: v for k, v in own_properties(op).items() if k != "constrain_layout"}
    reduced = b(AllReduceOp, joined, shape=whole, **kept)
    parts: list[BitcastOp] = []
    start = 0
    for value, count in zip(op.inputs, counts, strict=True):
        cut = slices(((start, start + count, 1),))
        part = b(SliceOp, reduced, shape=sized(first, (count,)), slice=cut)
        parts.append(b(BitcastOp, part, shape=array(value)))
        start += count
    b.like(TupleOp, *parts)
    b.done()


@dataclass(frozen=True)
class AllReduceContiguousPass(RulePass):
    """Reduces several arrays as one array of all their elements, in memory one behind the other.

    Before and after:

        %r = (f32[4], f32[2,3]) all-reduce(%x, %y), to_apply=%add, …
          =>   %c = f32[10] concatenate(f32[4] bitcast(%x), f32[6] bitcast(%y))   %a = f32[10] all-reduce(%c), …
               %r = (f32[4], f32[2,3]) tuple(bitcast(slice(%a)), bitcast(slice(%a)))

    Arrays of several element types stay, and so does a module with an all-reduce whose layout is constrained.
    Source: XLA's pass of this name.
    """

    name = "all-reduce-contiguous"
    rules: ClassVar[tuple[Rule, ...]] = (reduction_of_several,)

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Joins outside of async computations; whether there was any."""
        if any(getattr(op, "constrain_layout", False) for op in module.candidates(AllReduceOp)):
            return False
        driver = RuleDriver(module.op, self.selected(), trace=trace, name=self.name)
        found = Surroundings.of(module).collectives(AllReduceOp)
        return driver.apply_to(found, self.fuel) > 0
