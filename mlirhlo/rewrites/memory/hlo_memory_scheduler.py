"""`hlo-memory-scheduler`: the order of instructions that needs least memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mlirhlo.analysis.schedules import ALGORITHMS, schedules
from mlirhlo.dialects.hlo.attributes.base import boolean
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.rewrites.passes import HloPass, Trace


def reorder(computation: ComputationOp, order: Sequence[Instruction]) -> bool:
    """Puts the instructions of a computation in an order; whether any moved."""
    if list(order) == instruction_list(computation):
        return False
    block = computation.body.block
    for op in order:
        if op.parent is not None:
            op.detach()
        block.insert_op_before(op, computation.terminator)
    return True


@dataclass(frozen=True)
class HloMemorySchedulerPass(HloPass):
    """Orders the instructions of every computation so that they need least memory.

    Before and after:

        HloModule m   …   =>   HloModule m, is_scheduled=true   …

    Three orders are tried, and the one of the lowest peak is taken: the greedy one of what frees most, a
    depth-first one of operands with many readers first, and post-order. Loops and calls count what their
    computations need. Control dependencies are kept; the peak is counted under `--stats`. A module that is
    scheduled already stays. Source: reference of the passes, "Memory scheduler".
    """

    name = "hlo-memory-scheduler"

    algorithm: Literal["best", "list", "dfs", "postorder"] = "best"
    """Which order is taken."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Schedules; whether the module was not scheduled before."""
        if module.is_scheduled:
            return False
        algorithms = ALGORITHMS if self.algorithm == "best" else (self.algorithm,)
        for computation, schedule in schedules(module.op, algorithms).items():
            reorder(computation, schedule.order)
            if computation.is_entry is not None:
                trace.rule_counts[self.name, f"peak of {schedule.lives.peak} bytes"] += 1
        module.set("is_scheduled", boolean(True))
        return True
