"""Fusion: which instructions become one kernel.

`graph` reads a computation, `planning` walks it from the end and grows groups, `joining` holds the
rules for each kind of kernel, `order` keeps them free of cycles, `cost` has the numbers, `building`
makes the fusions, `remarks` says what was not fused and why.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.analysis.call_graph import call_graph
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import AsyncStartOp
from mlirhlo.rewrites.fusion.building import Builder
from mlirhlo.rewrites.fusion.graph import graph_of
from mlirhlo.rewrites.fusion.joining import Kinds
from mlirhlo.rewrites.fusion.planning import Planner
from mlirhlo.rewrites.passes import HloPass, Trace


@dataclass(frozen=True)
class FusionPass(HloPass):
    """Computes instructions together that would only hand arrays to each other through memory.

    Before and after:

        %m = f32[4] multiply(%y, %z)
        %s = f32[4] add(%x, %m)
        ROOT %r = f32[] reduce(%s, %zero), dimensions={0}, to_apply=%sum
            =>   ROOT %r = f32[] fusion(%y, %z, %x, %zero), kind=kInput, calls=%fused_reduce

    Loops (`kLoop`), rows and reduces (`kInput`), dots and convolutions with what is computed from
    their elements (`kOutput`). Nothing expensive is computed twice; what is cheap is, where that
    takes less memory traffic. Kept apart: side effects, control dependencies, different shardings.
    In a scheduled module what is left of the instructions keeps its order.
    """

    name = "fusion"

    multi_output: bool = False
    """Lets a fusion write several arrays."""
    rows: bool = True
    """Fuses values of rows with what uses them along their rows: softmax, layer norm."""
    columns: bool = True
    """Lets reduces of columns share a fusion with other outputs."""
    products: bool = True
    """Fuses dots and convolutions with what is computed from their elements."""
    fuel: int | None = None
    """At most so many instructions are fused into their readers."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Fuses in every computation that runs as a whole; whether anything was fused."""
        kinds = Kinds(self.rows, self.columns, self.products)
        embedded = call_graph(module.op).embedded()
        asynchronous = {
            name
            for op in module.instructions
            if isinstance(op, AsyncStartOp)
            for name in op.called_computations
        }
        builder = Builder(module)
        changed = False
        fuel = self.fuel
        for computation in tuple(module.computations):
            name = computation.computation_name
            if name in embedded or name in asynchronous:
                continue
            planner = Planner(
                name, kinds, self.multi_output, module.is_scheduled, fuel, trace.remarks
            )
            groups = planner.plan(graph_of(computation))
            fuel = None if fuel is None else fuel - planner.joined
            trace.rule_counts[self.name, "joined"] += planner.joined
            changed |= builder.build(computation, groups)
        return changed
