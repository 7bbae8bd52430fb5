"""`optimization_barrier_expander`: barriers go when there is nothing left to keep apart."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import OptBarrierOp
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter


@dataclass(frozen=True)
class OptimizationBarrierExpanderPass(HloPass):
    """Replaces optimization barriers by their operands.

    Before and after:

        %b = f32[4] opt-barrier(%x)   ROOT %r = f32[4] negate(%b)      =>   ROOT %r = f32[4] negate(%x)

    To run when nothing after it merges or moves what the barriers kept apart. Control dependencies move
    to the users. Source: reference of the passes, "Other expanders".
    """

    name = "optimization_barrier_expander"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Replaces; whether there was any."""
        del trace
        found = module.candidates(OptBarrierOp)
        for op in found:
            Rewriter(op).replace_by_value(op, op.inputs[0])
        return bool(found)
