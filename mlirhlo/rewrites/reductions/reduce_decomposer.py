"""`reduce-decomposer`: reductions that leave the remaining dimensions in their order in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.ops import CopyOp, GetTupleElementOp, Instruction, ReduceOp, TupleOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Layout, TupleShape
from mlirhlo.rewrites.algsimp.common import Builder, array, own_properties
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


def _order(shape: ArrayShape) -> tuple[int, ...] | None:
    """Minor to major; None where tiles or the like say more."""
    layout = shape.layout
    if layout is None or shape.is_dynamic or layout != Layout(layout.minor_to_major):
        return None
    return layout.minor_to_major


def _in_order(shape: ArrayShape, order: tuple[int, ...]) -> ArrayShape:
    return ArrayShape(shape.element_type, shape.dimensions, (), Layout(order))


@rule(ReduceOp)
def reduce_in_other_layout(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(x){other order} => copy(reduce(x)), the remaining dimensions as they lie in x; of several arrays too"""
    count = len(op.inputs) // 2
    xs, inits = op.inputs[:count], op.inputs[count:]
    results = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
    arrays = [s for s in results if isinstance(s, ArrayShape)]
    orders = [_order(s) for s in (*arrays, *(array(x) for x in xs))]
    if len(arrays) != count or None in orders:
        return
    order = orders[count]
    assert order is not None
    kept = [d for d in range(array(xs[0]).rank) if d not in op.dimensions]
    wanted = tuple(kept.index(d) for d in order if d in kept)
    if all(o == wanted for o in orders[:count]) and all(o == order for o in orders[count:]):
        return
    b = Builder(op, rewriter)
    alike: list[SSAValue | Instruction] = [
        x if o == order else b(CopyOp, x, shape=_in_order(array(x), order))
        for x, o in zip(xs, orders[count:], strict=True)
    ]
    shapes = tuple(_in_order(s, wanted) for s in arrays)
    single = isinstance(op.shape, ArrayShape)
    made = b(
        ReduceOp,
        *alike,
        *inits,
        shape=shapes[0] if single else TupleShape(shapes),
        **own_properties(op),
    )
    if made.shape != op.shape:
        parts: list[Instruction] = [made]
        if not single:
            parts = [
                b(GetTupleElementOp, made, shape=s, index=integer(k)) for k, s in enumerate(shapes)
            ]
        copies = [
            part if part.shape == s else b(CopyOp, part, shape=s)
            for part, s in zip(parts, arrays, strict=True)
        ]
        if not single:
            b.like(TupleOp, *copies)
    b.done()


@dataclass(frozen=True)
class ReduceDecomposerPass(RulePass):
    """Lets reductions leave dimensions in the order of memory that they have, and copies after.

    Before and after:

        %r = f32[3,4]{0,1} reduce(f32[3,4,5]{2,1,0} %x, %zero), dimensions={2}, …
          =>   %r = f32[3,4]{1,0} reduce(%x, %zero), …   f32[3,4]{0,1} copy(%r)

    Of several arrays all are copied into the order of the first one before. Tiled arrays stay. Source: XLA's pass
    of this name.
    """

    name = "reduce-decomposer"
    rules: ClassVar[tuple[Rule, ...]] = (reduce_in_other_layout,)
