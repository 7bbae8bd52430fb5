"""`real_imag_expander`: parts of real numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.ops import ImagOp, RealOp
from mlirhlo.rewrites.algsimp.common import Builder, array, element, forward
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(RealOp)
def real_of_real(op: RealOp, rewriter: Rewriter) -> None:
    """real(x) => x, x no complex number"""
    if not element(op.inputs[0]).is_complex:
        forward(op, rewriter, op.inputs[0])


@rule(ImagOp)
def imag_of_real(op: ImagOp, rewriter: Rewriter) -> None:
    """imag(x) => 0, x no complex number"""
    if element(op.inputs[0]).is_complex or array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    b.splat(array(op), 0)
    b.done()


@dataclass(frozen=True)
class RealImagExpanderPass(RulePass):
    """Takes the real part of a real number to be itself, and its imaginary part to be 0.

    Before and after:

        %r = f32[4] real(%x)      =>   %x

    Source: reference of the passes, "Other expanders".
    """

    name = "real_imag_expander"
    rules: ClassVar[tuple[Rule, ...]] = (real_of_real, imag_of_real)
