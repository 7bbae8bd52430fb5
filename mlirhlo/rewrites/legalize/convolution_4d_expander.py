"""`convolution_4d_expander`: convolutions of four spatial dimensions without those of size 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    ConvolutionDimensionNumbersAttr,
    Window,
    WindowAttr,
)
from mlirhlo.dialects.hlo.ops import ConvolutionOp
from mlirhlo.rewrites.algsimp.common import Builder, array, own_properties, sized
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(ConvolutionOp)
def convolution_of_four_dimensions(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(x, w), 4 spatial dims => reshape(convolution(reshape(x), reshape(w))), without those of size 1"""
    labels, window = op.dim_labels, op.window
    if labels is None or window is None or len(labels.input_spatial_dimensions) != 4:
        return
    shapes = [array(v) for v in (*op.inputs, op.output)]
    if len(shapes) != 3 or any(s.is_dynamic for s in shapes):
        return
    spatial = (
        labels.input_spatial_dimensions,
        labels.kernel_spatial_dimensions,
        labels.output_spatial_dimensions,
    )
    trivial = [
        k
        for k, part in enumerate(window.dimensions)
        if all(s.dimensions[dims[k]] == 1 for s, dims in zip(shapes, spatial, strict=True))
        and not (part.padding_low or part.padding_high)
    ]
    if not trivial:
        return
    gone = [[dims[k] for k in trivial] for dims in spatial]

    def place(side: int, dim: int) -> int:
        return dim - sum(g < dim for g in gone[side])

    def left(side: int) -> tuple[int, ...]:
        return tuple(place(side, d) for d in spatial[side] if d not in gone[side])

    smaller = [
        sized(s, [n for d, n in enumerate(s.dimensions) if d not in gone[side]])
        for side, s in enumerate(shapes)
    ]
    numbers = ConvolutionDimensionNumbers(
        place(0, labels.input_batch_dimension),
        place(0, labels.input_feature_dimension),
        left(0),
        place(1, labels.kernel_input_feature_dimension),
        place(1, labels.kernel_output_feature_dimension),
        left(1),
        place(2, labels.output_batch_dimension),
        place(2, labels.output_feature_dimension),
        left(2),
    )
    kept = own_properties(op)
    kept["dim_labels"] = ConvolutionDimensionNumbersAttr(numbers)
    parts = tuple(part for k, part in enumerate(window.dimensions) if k not in trivial)
    del kept["window"]
    if parts:
        kept["window"] = WindowAttr(Window(parts))
    b = Builder(op, rewriter)
    sides = [b.reshape(v, shape) for v, shape in zip(op.inputs, smaller, strict=False)]
    b.reshape(b(ConvolutionOp, *sides, shape=smaller[2], **kept), op.shape)
    b.done()


@dataclass(frozen=True)
class Convolution4DExpanderPass(RulePass):
    """Takes spatial dimensions of size 1 out of convolutions of four, which libraries do not know.

    Before and after:

        %c = f32[2,1,9,1,7,5] convolution(f32[2,1,10,1,10,3] %x, f32[1,2,1,4,3,5] %w), window={size=1x2x1x4}, …
          =>   %c = f32[2,9,7,5] convolution(reshape(%x), reshape(%w)), window={size=2x4}, …   reshape(%c)

    A dimension goes where input, kernel and output are of size 1 along it and nothing is padded. Source: XLA's
    pass of this name.
    """

    name = "convolution_4d_expander"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (convolution_of_four_dimensions,)
