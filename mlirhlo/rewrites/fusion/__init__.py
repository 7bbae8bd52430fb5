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
from mlirhlo.dialects.hlo.ops import AsyncStartOp, ComputationOp, FusionOp
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.rewrites.control_flow.defuser import drop_uncalled
from mlirhlo.rewrites.fusion.building import Builder
from mlirhlo.rewrites.fusion.graph import Node, Opened, Roles, graph_of, meeting
from mlirhlo.rewrites.fusion.groups import Group
from mlirhlo.rewrites.fusion.joining import Kinds
from mlirhlo.rewrites.fusion.merging import Bodies, Meetings
from mlirhlo.rewrites.fusion.planning import Planner
from mlirhlo.rewrites.fusion.priority import PriorityQueue
from mlirhlo.rewrites.fusion.regrouping import openable, take_apart
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
    """Fuses transposes, reshapes, reversals, concatenations and pads into what reads them."""
    operands: bool = False
    """Fuses transposes and slices into the dots that read them, which read their operands as well."""
    fuel: int | None = None
    """At most so many instructions are fused into their readers."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Fuses in every computation that runs as a whole; whether anything was fused."""
        kinds = Kinds(
            self.rows, self.columns, self.products, moves=self.moves, operands=self.operands
        )
        builder = Builder(module)
        changed = False
        fuel = self.fuel
        # Where nothing is fused yet, it is not asked what little there may be left to fuse.
        is_fused = bool(module.candidates(FusionOp))

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
            if is_fused and trace.remarks is None:
                met = meeting(
                    computation,
                    roles,
                    moves=self.moves,
                    siblings=self.multi_output,
                    operands=self.operands,
                )
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
        computations = module.known(running)
        plans: dict[ComputationOp, _Merging] = {}
        for computation in computations:
            met = Meetings(module, bodies, computation, columns=self.columns)
            if trace.remarks is not None or met.any():
                plans[computation] = self._plan(module, computation, trace)
        if not any(plan.merged for plan in plans.values()):
            return False
        for computation in computations:
            if computation not in plans:
                plans[computation] = self._plan(module, computation, trace)
        # What was opened is put together under new names: everywhere, so that these follow each other.
        builder = Builder(module)
        for computation in computations:
            plan = plans[computation]
            take_apart(plan.opened, plan.nodes, builder.instructions)
            builder.build(computation, plan.groups)
            trace.rule_counts[self.name, "merged"] += plan.merged
        drop_uncalled(module)
        return True

    def _plan(self, module: HloModule, computation: ComputationOp, trace: Trace) -> _Merging:
        """What becomes of a computation; nothing is changed yet."""
        kinds = Kinds(columns=self.columns)
        roles: Roles = {}
        opened = openable(module, computation, kinds, roles)
        planner = Planner(
            computation.computation_name,
            kinds,
            multi_output=True,
            is_scheduled=module.is_scheduled,
            only_merges=True,
            remarks=trace.remarks,
        )
        nodes = graph_of(computation, roles=roles, opened=opened)
        return _Merging(opened, nodes, planner.plan(nodes))


@dataclass(frozen=True, slots=True)
class _Merging:
    """How the kernels of a computation are merged."""

    opened: Opened
    nodes: list[Node]
    groups: list[Group]

    @property
    def merged(self) -> int:
        """How many kernels became part of another one."""
        return sum(
            len({o if o.fusion is None else o.fusion for o in group.outputs}) - 1
            for group in self.groups
        )


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
    """Fuses transposes, reshapes, reversals, concatenations and pads into what reads them."""
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
