"""`dot_dimension_merger`: batch dimensions of a dot that stand together as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlirhlo.dialects.hlo.ops import DotOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Layout
from mlirhlo.rewrites.algsimp.common import Builder, array
from mlirhlo.rewrites.algsimp.dot import batch_of, contracted_of, is_plain, numbers
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


def _stand_together(dims: Sequence[int], shape: ArrayShape) -> bool:
    """Whether dimensions follow on each other in order, and in memory too."""
    if tuple(dims) != tuple(range(dims[0], dims[0] + len(dims))):
        return False
    if shape.layout is None:
        return True
    if shape.layout.tiles:
        return False
    places = [shape.layout.minor_to_major.index(d) for d in dims]
    return places == list(range(places[0], places[0] - len(dims), -1))


def merged(shape: ArrayShape, first: int, count: int) -> ArrayShape:
    """The array with `count` dimensions from `first` on as one."""
    sizes = shape.dimensions
    size = prod(sizes[first : first + count])
    layout = shape.layout
    if layout is not None:
        kept = (d for d in layout.minor_to_major if not first < d < first + count)
        order = tuple(d if d <= first else d - count + 1 for d in kept)
        layout = Layout(order, memory_space=layout.memory_space)
    return ArrayShape(
        shape.element_type, (*sizes[:first], size, *sizes[first + count :]), (), layout
    )


@rule(DotOp)
def dot_of_several_batches(op: DotOp, rewriter: Rewriter) -> None:
    """dot(a, b), several batch dims => reshape(dot(reshape(a), reshape(b))), one batch dim"""
    count = len(op.lhs_batch_dims)
    shapes = [array(v) for v in (*op.inputs, op.output)]
    if count < 2 or not is_plain(op) or any(s.is_dynamic for s in shapes):
        return
    if not all(_stand_together(batch_of(op, side), shapes[side]) for side in (0, 1)):
        return
    if not _stand_together(range(count), shapes[2]):
        return
    firsts = [batch_of(op, side)[0] for side in (0, 1)]
    contracted = [
        [d if d < firsts[side] else d - count + 1 for d in contracted_of(op, side)]
        for side in (0, 1)
    ]
    b = Builder(op, rewriter)
    sides = [b.reshape(op.inputs[s], merged(shapes[s], firsts[s], count)) for s in (0, 1)]
    dims = numbers(op, ([firsts[0]], [firsts[1]]), (contracted[0], contracted[1]))
    b.reshape(b(DotOp, *sides, shape=merged(shapes[2], 0, count), **dims), op.shape)
    b.done()


@dataclass(frozen=True)
class DotDimensionMergerPass(RulePass):
    """Makes one batch dimension of the several that a dot has.

    Before and after:

        %d = f32[2,3,4,5] dot(%a, %b), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, …
          =>   %d = f32[6,4,5] dot(reshape(%a), reshape(%b)), lhs_batch_dims={0}, rhs_batch_dims={0}, …   reshape(%d)

    Batch dimensions follow on each other in every array, and in its memory, so that the reshapes move nothing.
    Source: XLA's pass of this name.
    """

    name = "dot_dimension_merger"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (dot_of_several_batches,)
