"""`copy-insertion`: copies where values that must share memory would be alive at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.analysis.dataflow import callers_of
from mlirhlo.analysis.single_values import single_values
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.rewrites.copy_insertion.adding import add_copies, add_copies_of_results
from mlirhlo.rewrites.copy_insertion.removal import remove_copies
from mlirhlo.rewrites.dce import DcePass
from mlirhlo.rewrites.flatten_call_graph import FlattenCallGraphPass
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.tuple_simplifier import TupleSimplifierPass


@dataclass(frozen=True)
class CopyInsertionPass(HloPass):
    """Adds the copies that memory needs: what shares a buffer is never alive twice; drops all others.

    Before and after, where a loop counts from a value that is read again:

        %w = while((%n, %x))                %n.copy = copy(%n)
        %r = add(%n, gte(%w, 0))      =>    %w = while((%n.copy, %x))

    Values share a buffer around loops (first state, state, next state, result), at the end of branches, where an
    instruction writes in place (dynamic-update-slice, scatter, fusions of them, custom calls that alias), and by
    the module's `input_output_alias`. First every one of those places gets copies; then each copy of the module
    goes that no live range needs, whatever order operands and control dependencies, or the schedule, allow.
    Parameters that are not given away and constants are never written: they are copied into shared buffers, and
    so they are where they are results; a buffer that is a result twice is copied once. Copies of a state
    element's old and new value are held in order by a control dependency.

    Computations that run as a whole are cloned until each has one caller; tuples are simplified and dead code is
    removed, as in XLA's pass. Copies that were there before count like new ones. Source: reference of the passes,
    "CopyInsertion".
    """

    name = "copy-insertion"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Adds, then removes; whether anything changed."""
        callers = callers_of(module.calling(), module.known(HloModule.by_name))
        changed = False
        if any(len(found) > 1 for found in callers.values()):
            changed = FlattenCallGraphPass().run(module, trace)
            module = module.afresh() if changed else module
        values = single_values(module)
        added = add_copies(module, values)
        if added:
            module = _tidied(module, trace)
            values = single_values(module)
        removed = remove_copies(module, values, added)
        if removed:
            module = module.afresh()
            values = single_values(module)
        results = add_copies_of_results(module, values)
        if removed or results:
            _tidied(module, trace)
        trace.rule_counts[self.name, "copies_added"] += len(added) + results
        trace.rule_counts[self.name, "copies_removed"] += removed
        return changed or bool(added) or removed > 0 or results > 0


def _tidied(module: HloModule, trace: Trace) -> HloModule:
    """Takes away what copies left: tuples taken apart, and what nobody reads; a view of what is left."""
    view = module.afresh()
    if TupleSimplifierPass().run(view, trace):
        view = module.afresh()
    return module.afresh() if DcePass().run(view, trace) else view
