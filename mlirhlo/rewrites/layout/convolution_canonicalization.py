"""`convolution-canonicalization`: convolutions with features last, as CPU libraries want them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    ConvolutionDimensionNumbersAttr,
)
from mlirhlo.dialects.hlo.ops import ConvolutionOp, TransposeOp
from mlirhlo.rewrites.algsimp.common import Builder, array, sized
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(ConvolutionOp, contract="rounding")
def convolution_of_other_order(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(x, w) => transpose(convolution(transpose(x), transpose(w))), b01f_01io->b01f"""
    labels = op.dim_labels
    if labels is None or any(array(v).is_dynamic for v in (*op.inputs, op.output)):
        return
    x_order = (
        labels.input_batch_dimension,
        *labels.input_spatial_dimensions,
        labels.input_feature_dimension,
    )
    w_order = (
        *labels.kernel_spatial_dimensions,
        labels.kernel_input_feature_dimension,
        labels.kernel_output_feature_dimension,
    )
    y_order = (
        labels.output_batch_dimension,
        *labels.output_spatial_dimensions,
        labels.output_feature_dimension,
    )
    rank = len(x_order)
    given = tuple(range(rank))
    if x_order == w_order == y_order == given:
        return
    spatial = given[1:-1]
    canonical = ConvolutionDimensionNumbers(
        0, rank - 1, spatial, rank - 2, rank - 1, given[:-2], 0, rank - 1, spatial
    )
    in_orders(op, rewriter, (x_order, w_order, y_order), canonical)


def in_orders(
    op: ConvolutionOp,
    rewriter: Rewriter,
    orders: tuple[Sequence[int], Sequence[int], Sequence[int]],
    labels: ConvolutionDimensionNumbers,
) -> None:
    """A convolution of arrays whose dimensions stand in other `orders`, input, kernel and output: they are
    transposed. `labels`: what they are there."""
    b = Builder(op, rewriter)
    x_order, w_order, y_order = map(tuple, orders)
    kept = {k: v for k, v in op.properties.items() if k not in ("metadata", "sharding", "origin")}
    kept["dim_labels"] = ConvolutionDimensionNumbersAttr(labels)
    kept.pop("control_predecessors", None)
    shape = sized(array(op), [array(op).dimensions[d] for d in y_order])
    given = tuple(range(len(y_order)))
    left, right = (
        v if order == given else b.transpose(v, order)
        for v, order in zip(op.inputs, (x_order, w_order), strict=True)
    )
    made = b(ConvolutionOp, left, right, shape=shape, **kept)
    back = tuple(y_order.index(d) for d in given)
    b.like(TransposeOp, made, dimensions=integers(back))
    b.done()


@dataclass(frozen=True)
class ConvolutionCanonicalizationPass(RulePass):
    """Puts batch first and features last in convolutions.

    Before and after:

        %c = f32[2,5,4,3] convolution(%x, %w), dim_labels=bf01_oi01->bf01
          =>   %c = f32[2,5,4,3] transpose(convolution(transpose(%x), transpose(%w))), dim_labels=b01f_01io->b01f

    The window stays as it is, having the spatial dimensions in their order. Source: XLA:CPU's pass.
    """

    name = "convolution-canonicalization"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (convolution_of_other_order,)
