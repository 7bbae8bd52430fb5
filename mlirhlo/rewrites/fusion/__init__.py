"""Fusion: which instructions become one kernel.

`graph` reads a computation, `planning` walks it from the end and grows groups, `joining` holds the
rules for each kind of kernel, `order` keeps them free of cycles, `cost` has the numbers, `building`
makes the fusions. `priority` and `regrouping` are for the passes that grow groups in other ways.
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass

from mlirhlo.analysis.call_graph import call_graph_of
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import AsyncStartOp, ComputationOp
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.rewrites.cloning import clone_module
from mlirhlo.rewrites.defuser import drop_uncalled
from mlirhlo.rewrites.fusion.building import Builder
from mlirhlo.rewrites.fusion.graph import Roles, graph_of, meeting
from mlirhlo.rewrites.fusion.joining import Kinds
from mlirhlo.rewrites.fusion.merging import Bodies, Meetings
from mlirhlo.rewrites.fusion.planning import Planner
from mlirhlo.rewrites.fusion.priority import PriorityQueue
from mlirhlo.rewrites.fusion.regrouping import take_apart
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
    moves: bool = False
    """Fuses transposes, reshapes, reversals, concatenations, pads and gathers into what reads them."""
    fuel: int | None = None
    """At most so many instructions are fused into their readers."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Fuses in every computation that runs as a whole; whether anything was fused."""
        kinds = Kinds(self.rows, self.columns, self.products, moves=self.moves)
        builder = Builder(module)
        changed = False
        fuel = self.fuel

        def planner_of(computation: ComputationOp) -> Planner:
            return Planner(
                computation.computation_name,
                kinds,
                multi_output=self.multi_output,
                is_scheduled=module.is_scheduled,
                fuel=fuel,
                remarks=trace.remarks,
            )

        for computation in module.known(running):
            roles: Roles = {}
            if trace.remarks is None:
                met = meeting(computation, roles, moves=self.moves, siblings=self.multi_output)
                if _is_small_part(met, computation):
                    nodes = graph_of(computation, moves=self.moves, among=met, roles=roles)
                    if not planner_of(computation).joins_any(nodes):
                        continue
            planner = planner_of(computation)
            groups = planner.plan(graph_of(computation, moves=self.moves, roles=roles))
            fuel = None if fuel is None else fuel - planner.joined
            trace.rule_counts[self.name, "joined"] += planner.joined
            changed |= builder.build(computation, groups)
        return changed


@dataclass(frozen=True)
class MultiOutputFusionPass(HloPass):
    """Merges fusions and instructions that read the same array, or one of which reads the other.

    Before and after:

        %e = f32[4] exponential(%x)
        %n = f32[4] negate(%e)
        ROOT %t = (f32[4], f32[4]) tuple(%e, %n)
            =>   %f = (f32[4], f32[4]) fusion(%x), kind=kLoop, calls=%fused_negate

    All that the parts wrote is still written. Fusions that this compiler would not have formed stay as
    they are. Source: reference of the passes, "Multi-output fusion".
    """

    name = "multi_output_fusion"

    columns: bool = True
    """Merges reduces of columns."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Merges; whether anything was merged."""
        bodies = module.known(Bodies.of)
        if trace.remarks is None and not any(
            Meetings(module, bodies, computation).any() for computation in module.known(running)
        ):
            return False
        # Merging takes fusions apart, and puts them together under new names: on a copy, which is
        # the module from then on where any was merged.
        probe = Trace(remarks=None if trace.remarks is None else [])
        copy = clone_module(module.op)
        merged = self._merge(HloModule(copy), probe)
        if merged:
            module.op.detach_region(0)
            module.op.add_region(copy.detach_region(0))
            trace.rule_counts.update(probe.rule_counts)
        if trace.remarks is not None:
            trace.remarks += probe.remarks or []
        return merged

    def _merge(self, module: HloModule, trace: Trace) -> bool:
        """Takes fusions apart, and makes others of them; whether any was merged."""
        kinds = Kinds(columns=self.columns)
        builder = Builder(module)
        changed = False
        for computation in running(module):
            tags = take_apart(module, computation, kinds, builder.instructions)
            planner = Planner(
                computation.computation_name,
                kinds,
                multi_output=True,
                is_scheduled=module.is_scheduled,
                tags=tags,
                remarks=trace.remarks,
            )
            groups = planner.plan(graph_of(computation))
            builder.build(computation, groups)
            merged = sum(len({tags.get(o.op, o.op) for o in g.outputs}) - 1 for g in groups)
            trace.rule_counts[self.name, "merged"] += merged
            changed |= merged > 0
        drop_uncalled(module)
        return changed


@dataclass(frozen=True)
class PriorityFusionPass(HloPass):
    """Fuses the producer that saves most first, into all that read it or none.

    Before and after:

        %m = f32[4] multiply(%y, %z)
        ROOT %s = f32[4] add(%x, %m)
            =>   ROOT %r = f32[4] fusion(%y, %z, %x), kind=kLoop, calls=%fused_add

    The rules are those of `fusion`; what is different is the order, which matters where one fusion
    rules out another. Source: reference of the passes, "PriorityFusion".
    """

    name = "priority-fusion"

    moves: bool = False
    """Fuses transposes, reshapes, reversals, concatenations, pads and gathers into what reads them."""
    fuel: int | None = None
    """At most so many producers are fused."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Fuses in every computation that runs as a whole; whether anything was fused."""
        builder = Builder(module)
        changed = False
        fuel = self.fuel
        kinds = Kinds(moves=self.moves)
        for computation in module.known(running):
            name = computation.computation_name
            roles: Roles = {}
            if trace.remarks is None:
                met = meeting(computation, roles, moves=self.moves)
                if _is_small_part(met, computation):
                    first = PriorityQueue(name, kinds, 1 if fuel is None else min(fuel, 1), None)
                    first.plan(graph_of(computation, moves=self.moves, among=met, roles=roles))
                    if not first.fused:
                        continue
            queue = PriorityQueue(name, kinds, fuel, trace.remarks)
            groups = queue.plan(graph_of(computation, moves=self.moves, roles=roles))
            fuel = None if fuel is None else fuel - queue.fused
            trace.rule_counts[self.name, "fused"] += queue.fused
            changed |= builder.build(computation, groups)
        return changed


def _is_small_part(met: Sized, computation: ComputationOp) -> bool:
    """Whether a plan of these alone is worth a try; where most is in question, all is planned at once."""
    return 2 * len(met) < len(instruction_list(computation))


def running(module: HloModule) -> tuple[ComputationOp, ...]:
    """Computations whose instructions are kernels: no reducers, no fusions, nothing asynchronous."""
    embedded = module.known(call_graph_of).embedded()
    asynchronous = {
        name for op in module.candidates(AsyncStartOp) for name in op.called_computations
    }
    return tuple(
        computation
        for computation in module.computations
        if computation.computation_name not in embedded
        and computation.computation_name not in asynchronous
    )
