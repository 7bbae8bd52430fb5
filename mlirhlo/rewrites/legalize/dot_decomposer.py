"""`dot_decomposer`: dots with batch dimensions first, one free and one contracting dimension a side."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import DotOp, Instruction, ReshapeOp
from mlirhlo.rewrites.algsimp.common import Builder, array, sized
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(DotOp)
def dot_of_any_dimensions(op: DotOp, rewriter: Rewriter) -> None:
    """dot(a, b) => reshape(dot(reshape(transpose(a)), reshape(transpose(b)))), canonical"""
    lhs, rhs = op.inputs[:2]
    if len(op.inputs) != 2 or any(array(v).is_dynamic for v in (lhs, rhs, op.output)):
        return
    batch = len(op.lhs_batch_dims)
    if _is_canonical(op):
        return
    b = Builder(op, rewriter)
    # [batch…, free, contracting] on the left, [batch…, contracting, free] on the right.
    left = _arranged(b, lhs, op.lhs_batch_dims, op.lhs_contracting_dims, contracting_first=False)
    right = _arranged(b, rhs, op.rhs_batch_dims, op.rhs_contracting_dims, contracting_first=True)
    leading = tuple(range(batch))
    properties = {k: v for k, v in op.properties.items() if k not in ("metadata", "sharding")}
    properties["lhs_contracting_dims"] = integers((batch + 1,))
    properties["rhs_contracting_dims"] = integers((batch,))
    if batch:
        properties["lhs_batch_dims"] = properties["rhs_batch_dims"] = integers(leading)
    sizes = [*array(left).dimensions[: batch + 1], array(right).dimensions[batch + 1]]
    result = array(op)
    dot = b(DotOp, left, right, shape=sized(result, sizes), **properties)
    if dot.shape != result:
        b.like(ReshapeOp, dot)
    b.done()


def _is_canonical(op: DotOp) -> bool:
    batch = len(op.lhs_batch_dims)
    leading = tuple(range(batch))
    return (
        op.lhs_batch_dims == leading
        and op.rhs_batch_dims == leading
        and len(op.lhs_contracting_dims) == 1
        and op.lhs_contracting_dims[0] >= batch
        and array(op.inputs[0]).rank <= batch + 2
        and array(op.inputs[1]).rank <= batch + 2
        and array(op.inputs[0]).rank + array(op.inputs[1]).rank >= 2 * batch + 3 - (batch == 0)
    )


def _arranged(
    b: Builder,
    value: SSAValue,
    batch: tuple[int, ...],
    contracting: tuple[int, ...],
    *,
    contracting_first: bool,
) -> SSAValue | Instruction:
    """A side's dimensions in canonical order, free ones as one and contracting ones as one."""
    shape = array(value)
    free = tuple(d for d in range(shape.rank) if d not in (*batch, *contracting))
    groups = (contracting, free) if contracting_first else (free, contracting)
    order = (*batch, *groups[0], *groups[1])
    arranged: SSAValue | Instruction = value
    if order != tuple(range(shape.rank)):
        arranged = b.transpose(value, order)
    sizes = [shape.dimensions[d] for d in batch]
    sizes += [prod(shape.dimensions[d] for d in group) for group in groups]
    if tuple(sizes) != array(arranged).dimensions:
        arranged = b.reshape(arranged, sized(shape, sizes))
    return arranged


@dataclass(frozen=True)
class DotDecomposerPass(RulePass):
    """Brings dots into canonical form by transposes and reshapes.

    Before and after:

        %d = f32[2,4] dot(%a, %b), lhs_contracting_dims={0,2}, rhs_contracting_dims={1,0}
          =>   %d = f32[2,4] dot(%a', %b'), lhs_contracting_dims={1}, rhs_contracting_dims={0}

    Canonical: batch dimensions first and in order, then one free and one contracting dimension on the left,
    one contracting and one free on the right; a side of a dot without batch may be a vector.
    Source: reference of the passes, "Other simplifiers", `dot_decomposer`.
    """

    name = "dot_decomposer"
    rules: ClassVar[tuple[Rule, ...]] = (dot_of_any_dimensions,)
