"""`convolution-pred-expander`: convolutions of truth values in f16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import ConvertOp, ConvolutionOp
from mlirhlo.rewrites.algsimp.common import Builder, array, element, own_properties, typed
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule

_F16 = PRIMITIVE_TYPES["f16"]


@rule(ConvolutionOp)
def convolution_of_pred(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(p, q), all pred => convert(convolution(convert(p), convert(q))), in f16"""
    if any(element(v).name != "pred" for v in (*op.inputs, op.output)):
        return
    b = Builder(op, rewriter)
    sides = [b(ConvertOp, v, shape=typed(array(v), _F16)) for v in op.inputs]
    b.like(ConvertOp, b(ConvolutionOp, *sides, shape=typed(array(op), _F16), **own_properties(op)))
    b.done()


@dataclass(frozen=True)
class ConvolutionPredExpanderPass(RulePass):
    """Computes convolutions of truth values in f16: an element is true where its sum is not 0.

    Before and after:

        %c = pred[2,4] convolution(%p, %q), …
          =>   %c = pred[2,4] convert(f16[2,4] convolution(f16[2,3] convert(%p), f16[3,4] convert(%q)), …)

    Sums of ones and zeros are 0 only where every product is, also where they round or overflow. Source: XLA's pass
    of this name.
    """

    name = "convolution-pred-expander"
    rules: ClassVar[tuple[Rule, ...]] = (convolution_of_pred,)
