"""`copy-insertion`: copies where values that must share memory would be alive at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.analysis.dataflow import callers_of
from mlirhlo.analysis.single_values import running
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.rewrites.control_flow.flatten_call_graph import FlattenCallGraphPass
from mlirhlo.rewrites.copy_insertion.adding import add_copies
from mlirhlo.rewrites.copy_insertion.buffers import sharing
from mlirhlo.rewrites.copy_insertion.proposing import propose_copies
from mlirhlo.rewrites.copy_insertion.removal import Needed, replace_by_operand
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.simplify.dce import DcePass
from mlirhlo.rewrites.simplify.tuple_simplifier import TupleSimplifierPass


@dataclass(frozen=True)
class CopyInsertionPass(HloPass):
    """Adds the copies that memory needs: what shares a buffer is never alive twice; drops all others.

    Before and after, where a loop counts from a value that is read again:

        %w = while((%n, %x))                %n.copy = copy(%n)
        %r = add(%n, gte(%w, 0))      =>    %w = while((%n.copy, %x))

    Values share a buffer around loops (first state, state, next state, result), at the end of branches, where an
    instruction writes in place (dynamic-update-slice, scatter, fusions of them, custom calls that alias), and by
    the module's `input_output_alias`. Every one of those places is thought of as having copies; then each copy of
    the module, thought of or there already, goes that no live range needs, whatever order operands and control
    dependencies, or the schedule, allow. What is left of them is added: a module that has its copies stays.
    Parameters that are not given away and constants are never written: they are copied into shared buffers, and
    so they are where they are results; a buffer that is a result twice is copied once. Copies of a state
    element's old and new value are held in order by a control dependency.

    Computations that run as a whole are cloned until each has one caller; where there are such places, tuples
    are simplified and dead code is removed, as in XLA's pass. Source: reference of the passes, "CopyInsertion".
    """

    name = "copy-insertion"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Decides, then changes what is decided; whether anything changed."""
        callers = callers_of(running(module), module.known(HloModule.by_name))
        changed = False
        if any(len(found) > 1 for found in callers.values()):
            changed = FlattenCallGraphPass().run(module, trace)
            module = module.afresh() if changed else module
        places = sharing(module)
        if places.any() and (tidied := _tidied(module, trace)) is not module:
            changed, module = True, tidied
            places = sharing(module)
        values = propose_copies(module, places)
        needed = Needed(module, places, values)
        removed, results = needed.decide()
        for copy in removed:
            replace_by_operand(copy)
        added = add_copies(module, values, needed.kept, results)
        trace.rule_counts[self.name, "copies_added"] += added
        trace.rule_counts[self.name, "copies_removed"] += len(removed)
        if removed or added:
            _tidied(module.afresh(), trace)
            return True
        return changed


def _tidied(module: HloModule, trace: Trace) -> HloModule:
    """Simplifies tuples, and takes away what nobody reads; a view of what is left, or the same one."""
    if TupleSimplifierPass().run(module, trace):
        module = module.afresh()
    return module.afresh() if DcePass().run(module, trace) else module
