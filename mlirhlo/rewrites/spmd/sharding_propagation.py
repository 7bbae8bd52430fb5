"""`sharding-propagation`: annotations of some values become shardings of all that should follow."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter
from mlirhlo.rewrites.spmd.grid import Grids
from mlirhlo.rewrites.spmd.partitions import partitions_of, shardings_of
from mlirhlo.rewrites.spmd.propagation import Propagation


@dataclass(frozen=True)
class ShardingPropagationPass(HloPass):
    """Gives instructions without a sharding the one that follows from their operands and users.

    Before and after, on 4 partitions:

        %x = f32[8,6] parameter(0), sharding={devices=[4,1]<=[4]}
        %t = f32[8,6] tanh(%x)                  =>   %t = f32[8,6] tanh(%x), sharding={devices=[4,1]<=[4]}
        %s = f32[8] reduce(%t, %zero), …        =>   %s = f32[8] reduce(%t, %zero), …, sharding={devices=[4]<=[4]}

    What is annotated stays. Parameters and results of the entry are given one only where the module's header allows
    it (`allow_spmd_sharding_propagation_to_parameters`, `…_to_output`). Dimensions go through instructions by their
    part in them: a dot's batch and free dimensions, the kept ones of a reduce, the major ones of a reshape, those of
    a slice, pad or window with the borders left to the partitioner; while loops, branches, calls and tuples hand
    them on. Axes that are manual in an operand are manual in the result, up to the end of the region. `Sharding`
    custom calls become copies. Where two proposals conflict, the larger array's wins, in the last sweeps. A module
    for one partition stays.
    Source: reference of the passes, "ShardingPropagation".
    """

    name = "sharding-propagation"

    num_partitions: int = 0
    """Partitions; 0: as many as the module's header says."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Propagates; whether any sharding changed."""
        del trace
        count = partitions_of(module, self.num_partitions)
        if count == 1:
            return False
        propagation = Propagation(module, Grids(count, shardings_of(module)))
        propagation.run()
        changed = propagation.write()
        for op in tuple(module.instructions):
            if isinstance(op, CustomCallOp) and op.custom_call_target == "Sharding":
                copy = make("copy", op.inputs, op.shape)
                for key in ("sharding", "metadata"):
                    if key in op.properties:
                        copy.properties[key] = op.properties[key]
                Rewriter(op).replace(op, copy)
                changed = True
        return changed
