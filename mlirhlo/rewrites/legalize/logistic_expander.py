"""`logistic-expander`: the logistic function by exponentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.ops import AddOp, DivideOp, ExponentialOp, LogisticOp, NegateOp
from mlirhlo.rewrites.algsimp.common import Builder, array, element
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(LogisticOp, contract="rounding")
def logistic_function(op: LogisticOp, rewriter: Rewriter) -> None:
    """logistic(x) => 1 / (1 + exp(-x))"""
    if element(op).bits < 16:
        return
    b = Builder(op, rewriter)
    one = b.splat(array(op), 1)
    power = b.like(ExponentialOp, b.like(NegateOp, op.inputs[0]))
    b.like(DivideOp, one, b.like(AddOp, one, power))
    b.done()


@dataclass(frozen=True)
class LogisticExpanderPass(RulePass):
    """Writes the logistic function by exponentials.

    Before and after:

        %l = f32[4] logistic(%x)      =>   %l = f32[4] divide(%one, add(%one, exponential(negate(%x))))

    Floats of less than 16 bits stay: they lack the negatives, or the infinity, that this counts on.
    Source: reference of the passes, "Other expanders".
    """

    name = "logistic-expander"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (logistic_function,)
