"""`layout-assignment`: an order in memory for the dimensions of every array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mlirhlo.analysis.dataflow import callers_of
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.rewrites.control_flow.flatten_call_graph import FlattenCallGraphPass
from mlirhlo.rewrites.layout_assignment.problem import Problem
from mlirhlo.rewrites.layout_assignment.settled import is_settled
from mlirhlo.rewrites.layout_assignment.tiles import write_tiles
from mlirhlo.rewrites.layout_assignment.writing import add_copies, complete_header, write_layouts
from mlirhlo.rewrites.passes import HloPass, Trace


@dataclass(frozen=True)
class LayoutAssignmentPass(HloPass):
    """Gives every array an order of its dimensions in memory; copies where two orders meet.

    Before and after, where the entry's parameter and result are row-major:

        %t = f32[3,2]{1,0} transpose(%x), dimensions={1,0}         %t = f32[3,2]{0,1} transpose(%x)
        %n = f32[3,2]{1,0} negate(%t)                         =>   %n = f32[3,2]{0,1} negate(%t)
        ROOT %r = f32[2,3]{1,0} transpose(%n)                      ROOT %r = f32[2,3]{1,0} transpose(%n)

    and no transpose moves an element. Layouts that the module has are forgotten, but for these: parameters and
    results of the entry, as the header says; operands and results of custom calls with
    `operand_layout_constraints`, of collectives with `constrain_layout`, of fusions and bitcasts, of what talks
    to hosts and of what runs asynchronously. Custom calls without constraints are row-major; for a CPU so are
    dots, convolutions and what else libraries compute.

    Given layouts spread first along ties: operands and results of most instructions are laid out alike, so are
    the first state, the state and the next one of a loop, arguments and parameters, results of branches and of
    the conditional. Then they spread to where transposes, reshapes, reductions and broadcasts have nothing to
    move; the largest arrays first. Where an operand still has another layout than it must, it is copied, once
    for all its readers; transposes and reshapes have no such wish, and move the elements themselves. What
    nothing reaches is row-major. Computations with several callers are cloned first. For a TPU every array is in
    tiles, of 8 by 128 words of 32 bits or less; in the header those that are in none. Source: reference of the
    passes, "LayoutAssignment".
    """

    name = "layout-assignment"

    target: Literal["cpu", "tpu", "any"] = "any"
    """`cpu`: dots, convolutions, factorisations and transforms read and write row-major arrays. `tpu`: arrays are
    in tiles, `f32[16,256]{1,0:T(8,128)}`."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Assigns; whether any layout is another, or anything was copied."""
        callers = callers_of(module.calling(), module.known(HloModule.by_name))
        libraries = self.target == "cpu"
        changed = False
        if any(len(found) > 1 for found in callers.values()):
            changed = FlattenCallGraphPass().run(module.afresh(), trace)
        elif is_settled(module, callers, row_major_libraries=libraries):
            complete_header(module)
            return self.target == "tpu" and write_tiles(module)
        problem = Problem.of(module, row_major_libraries=libraries)
        problem.solve()
        changed |= write_layouts(problem)
        copies = add_copies(problem)
        complete_header(module)
        trace.rule_counts[self.name, "copies"] += copies
        tiled = self.target == "tpu" and write_tiles(module)
        return changed or copies > 0 or tiled
