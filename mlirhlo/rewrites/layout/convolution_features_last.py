"""`convolution-features-last`: space stands in front of the last dimension of large convolutions' arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.dimensions import ConvolutionDimensionNumbers
from mlirhlo.dialects.hlo.ops import ConvolutionOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import array
from mlirhlo.rewrites.layout.convolution_canonicalization import in_orders
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule

_FEWEST_OUTPUTS = 16
"""Features of the output that fill a vector."""
_LEAST_WORK = 16
"""Products for each element that would be moved."""


@rule(ConvolutionOp, contract="rounding")
def space_is_last(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(x, w), bf01_oi01->bf01 => transpose(convolution(transpose(x), transpose(w))), b01f_01io->b01f"""
    labels = op.dim_labels
    if labels is None or op.window is None or len(op.inputs) != 2:
        return
    shapes = [array(v) for v in (*op.inputs, op.output)]
    if op.feature_group_count > 1 or op.batch_group_count > 1:
        return
    if not labels.input_spatial_dimensions or not all(map(_is_plain, shapes)):
        return
    left, right, own = shapes
    spaces = (
        labels.input_spatial_dimensions,
        labels.kernel_spatial_dimensions,
        labels.output_spatial_dimensions,
    )
    moved = [s.element_count for s, d in zip(shapes, spaces, strict=True) if s.rank - 1 in d]
    if left.rank - 1 not in spaces[0] and own.rank - 1 not in spaces[2]:
        return
    taps = prod(right.dimensions[d] for d in spaces[1])
    depth = taps * right.dimensions[labels.kernel_input_feature_dimension]
    outputs = right.dimensions[labels.kernel_output_feature_dimension]
    if taps == 1 or outputs < _FEWEST_OUTPUTS:
        return
    if own.element_count * depth < _LEAST_WORK * sum(moved):
        return
    x, y = labels.input_batch_dimension, labels.input_feature_dimension
    x_order = (min(x, y), *spaces[0], max(x, y))
    i, o = labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension
    w_order = (i, *spaces[1], o) if i < o else (*spaces[1], i, o)
    b, f = labels.output_batch_dimension, labels.output_feature_dimension
    y_order = (b, *spaces[2], f) if b < f else (*spaces[2], b, f)

    def places(order: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
        return tuple(order.index(d) for d in dims)

    found = ConvolutionDimensionNumbers(
        x_order.index(x),
        x_order.index(y),
        places(x_order, spaces[0]),
        w_order.index(i),
        w_order.index(o),
        places(w_order, spaces[1]),
        y_order.index(b),
        y_order.index(f),
        places(y_order, spaces[2]),
    )
    in_orders(op, rewriter, (x_order, w_order, y_order), found)


def _is_plain(shape: ArrayShape) -> bool:
    """Whether an array's dimensions have one size each, and stand in memory as they are written."""
    order = tuple(range(shape.rank))[::-1]
    plain = shape.layout is None or shape.layout.minor_to_major == order
    return plain and not shape.is_dynamic


@dataclass(frozen=True)
class ConvolutionFeaturesLastPass(RulePass):
    """Puts space before the last dimension of convolutions' arrays, where they have work enough.

    Before and after:

        %c = f32[4,32,9,9] convolution(%x, %w), dim_labels=bf01_oi01->bf01
          =>   %c = f32[4,32,9,9] transpose(convolution(transpose(%x), transpose(%w))), dim_labels=b01f_01io->b01f

    Neighbours in memory then have the same place in space, and are multiplied by the same, or with the
    same: vectors read them. Batches and features keep their order, so that several convolutions of an array (its
    gradients) read one transpose. Groups, single taps and fewer than 16 output features stay.
    """

    name = "convolution-features-last"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (space_is_last,)
