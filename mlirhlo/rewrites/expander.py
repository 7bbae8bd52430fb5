"""What expanders share: they write one instruction by many, and leave fused computations alone."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import FusionOp
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.rules import RulePass, apply_rules


@dataclass(frozen=True)
class ExpanderPass(RulePass):
    """A list of rules that adds computations, which a fusion may not call."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Applies the rules outside of fusions; whether anything changed."""
        fused = {op.calls for op in module.instructions if isinstance(op, FusionOp)}
        rules = self.selected()
        changed = False
        for computation in tuple(module.computations):
            if computation.computation_name not in fused:
                changed |= apply_rules(
                    computation, rules, fuel=self.fuel, trace=trace, name=self.name
                )
        return changed
