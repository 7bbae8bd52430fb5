"""`batch-dot-simplification`: dots without batch dimensions of size 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.ops import DotOp
from mlirhlo.rewrites.algsimp.common import Builder, array, sized
from mlirhlo.rewrites.algsimp.dot import contracted_of, is_plain, numbers
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(DotOp)
def dot_of_batches_of_one(op: DotOp, rewriter: Rewriter) -> None:
    """dot(a, b), batch dims of size 1 => reshape(dot(reshape(a), reshape(b))), without them"""
    batch = op.lhs_batch_dims
    if batch != op.rhs_batch_dims or batch != tuple(range(len(batch))) or not is_plain(op):
        return
    if len(op.lhs_contracting_dims) != 1:
        return
    shapes = [array(v) for v in (*op.inputs, op.output)]
    gone = [d for d in batch if shapes[0].dimensions[d] == 1]
    if not gone or any(s.is_dynamic for s in shapes):
        return
    smaller = [sized(s, [n for d, n in enumerate(s.dimensions) if d not in gone]) for s in shapes]
    left = tuple(range(len(batch) - len(gone)))
    lhs, rhs = ([d - len(gone) for d in contracted_of(op, side)] for side in (0, 1))
    b = Builder(op, rewriter)
    sides = [b.reshape(v, shape) for v, shape in zip(op.inputs, smaller, strict=False)]
    b.reshape(b(DotOp, *sides, shape=smaller[2], **numbers(op, (left, left), (lhs, rhs))), op.shape)
    b.done()


@dataclass(frozen=True)
class BatchDotSimplificationPass(RulePass):
    """Takes batch dimensions of size 1 out of dots.

    Before and after:

        %d = f32[1,4,5] dot(f32[1,4,3] %a, f32[1,3,5] %b), lhs_batch_dims={0}, rhs_batch_dims={0}, …
          =>   %d = f32[4,5] dot(reshape(%a), reshape(%b)), …   reshape(%d)

    Batch dimensions come first on both sides, and one dimension is summed over. Source: XLA's pass of this name.
    """

    name = "batch-dot-simplification"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (dot_of_batches_of_one,)
