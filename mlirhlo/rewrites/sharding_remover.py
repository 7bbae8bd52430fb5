"""`sharding-remover`: marks for the partitioner go when there is one device."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.shapes import compatible
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter

_TARGETS = frozenset(
    {
        *("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"),
        *("ShardBarrierFrom", "ShardBarrierTo"),
        *("xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier"),
    }
)


@dataclass(frozen=True)
class ShardingRemoverPass(HloPass):
    """Removes sharding annotations of a module that is not partitioned.

    Before and after:

        %s = f32[8] custom-call(%x), custom_call_target="Sharding", sharding={devices=[2]0,1}      =>   %x

    The operand stands for the annotation when their shapes are the same, layouts aside. As in XLA,
    the attribute `sharding` of other instructions stays. Source: reference of the passes,
    "Partitioning"; XLA's dumps around the pass.
    """

    name = "sharding-remover"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Removes; whether there was any."""
        del trace
        changed = False
        for op in module.candidates(CustomCallOp):
            if isinstance(op, CustomCallOp) and op.custom_call_target in _TARGETS:
                if op.inputs and compatible(op.input_shapes[0], op.shape):
                    Rewriter(op).replace_by_value(op, op.inputs[0])
                    changed = True
        return changed
