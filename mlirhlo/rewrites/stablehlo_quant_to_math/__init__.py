"""Quantized programs as arithmetic of integers and floats.

`legalize_quantized` is the whole of it: values of quantized types become the integers that are
stored, and ops on them integer or float arithmetic with scales and zero points. Source: StableHLO's
specification of quantized types and its pass of the same name; `driver` says what is done with
which op.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.rewrites.stablehlo_quant_to_math.driver import legalize

__all__ = ["StablehloLegalizeQuantToMathPass", "legalize_quantized"]


def legalize_quantized(module: ModuleOp) -> bool:
    """Rewrites every quantized type and op of `module`, in place; whether there were any.

    Raises `HloError` HLO0423 for what cannot be said in integers.
    """
    return legalize(module)


@dataclass(frozen=True)
class StablehloLegalizeQuantToMathPass(ModulePass):
    """
    Writes quantized programs as arithmetic of integers and floats.

    Before:  `%1 = stablehlo.uniform_dequantize %x : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4xf32>`
    After:   `(convert(x) - 3) * 0.5` on a `tensor<4xi8>`
    Functions take and return the integers that are stored. Sums keep the scale of their result,
    products of matrices and convolutions are accumulated in 32 bits, all other arithmetic is done on
    dequantized numbers, and its results are quantized again.
    Needs: known sizes (`stablehlo-refine-shapes`).
    """

    name = "stablehlo-legalize-quant-to-math"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites `op` in place."""
        legalize_quantized(op)
