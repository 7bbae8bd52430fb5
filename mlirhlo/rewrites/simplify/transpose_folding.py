"""`transpose-folding`: dots and convolutions read their operands where they lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.attributes.dimensions import ConvolutionDimensionNumbersAttr
from mlirhlo.dialects.hlo.ops import ConvolutionOp, DotOp, TransposeOp
from mlirhlo.rewrites.algsimp.common import Builder
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(DotOp)
def dot_of_transpose(op: DotOp, rewriter: Rewriter) -> None:
    """dot(transpose(a), b) => dot(a, b) with a's own dimension numbers, the free dimensions keeping their order"""
    properties = dict(op.properties)
    operands = list(op.inputs)
    changed = False
    sides = (
        ("lhs", op.lhs_batch_dims, op.lhs_contracting_dims),
        ("rhs", op.rhs_batch_dims, op.rhs_contracting_dims),
    )
    for number, (side, batch, contracting) in enumerate(sides):
        transpose = op.inputs[number].owner
        if not isinstance(transpose, TransposeOp) or transpose.control_predecessors:
            continue
        order = transpose.dimensions
        free = [order[d] for d in range(len(order)) if d not in (*batch, *contracting)]
        if free != sorted(free):
            continue
        for key, dims in (("batch", batch), ("contracting", contracting)):
            if dims:
                properties[f"{side}_{key}_dims"] = integers(tuple(order[d] for d in dims))
        operands[number] = transpose.operand
        changed = True
    if changed:
        b = Builder(op, rewriter)
        b.like(DotOp, *operands, **properties)
        b.done()


@rule(ConvolutionOp, needs=("!dots_only",))
def convolution_of_transpose(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(transpose(x), transpose(k)) => convolution(x, k), the labels permuted"""
    labels = op.dim_labels
    if labels is None:
        return
    operands = list(op.inputs)
    lhs, rhs = (v.owner for v in op.inputs[:2])
    if isinstance(lhs, TransposeOp) and not lhs.control_predecessors:
        order = lhs.dimensions
        labels = replace(
            labels,
            input_batch_dimension=order[labels.input_batch_dimension],
            input_feature_dimension=order[labels.input_feature_dimension],
            input_spatial_dimensions=tuple(order[d] for d in labels.input_spatial_dimensions),
        )
        operands[0] = lhs.operand
    if isinstance(rhs, TransposeOp) and not rhs.control_predecessors:
        order = rhs.dimensions
        labels = replace(
            labels,
            kernel_input_feature_dimension=order[labels.kernel_input_feature_dimension],
            kernel_output_feature_dimension=order[labels.kernel_output_feature_dimension],
            kernel_spatial_dimensions=tuple(order[d] for d in labels.kernel_spatial_dimensions),
        )
        operands[1] = rhs.operand
    if labels is op.dim_labels:
        return
    properties = {**op.properties, "dim_labels": ConvolutionDimensionNumbersAttr(labels)}
    b = Builder(op, rewriter)
    b.like(ConvolutionOp, *operands, **properties)
    b.done()


@dataclass(frozen=True)
class TransposeFoldingPass(RulePass):
    """Lets dots and convolutions read the operands of transposes.

    Before and after:

        %t = f32[3,2] transpose(%a), dimensions={1,0}
        %d = f32[3,4] dot(%t, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          =>   %d = f32[3,4] dot(%a, %b), lhs_contracting_dims={0}, rhs_contracting_dims={0}

    Source: reference of the passes, "Other simplifiers".
    """

    name = "transpose-folding"
    rules: ClassVar[tuple[Rule, ...]] = (dot_of_transpose, convolution_of_transpose)

    dots_only: bool = False
    """Leaves convolutions in the order that they have, as XLA:CPU does, whose kernels want features last."""
