"""`flatten-call-graph`: gives every call site a computation of its own."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr

from mlirhlo.dialects.hlo.attributes.base import symbol, symbol_of, symbols_of
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import (
    CallOp,
    ComputationOp,
    ConditionalOp,
    Instruction,
    WhileOp,
)
from mlirhlo.rewrites.cloning import clone_computation
from mlirhlo.rewrites.passes import HloPass, Trace

_CONTROL_FLOW = (CallOp, ConditionalOp, WhileOp)


@dataclass(frozen=True)
class FlattenCallGraphPass(HloPass):
    """Clones computations until each is reached by at most one call, loop or branch.

    Reducers, comparators and other embedded computations stay shared; one that is called as well
    gets a clone for each call.

    Before and after:

        %a = f32[] call(%x), to_apply=%f
        %b = f32[] call(%a), to_apply=%f      =>   %b = f32[] call(%a), to_apply=%f.clone

    Source: reference of the passes, "FlattenCallGraph".
    """

    name = "flatten-call-graph"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Clones; whether anything was cloned."""
        computations = module.by_name()
        uniquer = NameUniquer(computations)
        used: set[str] = {module.entry.computation_name}
        embedded = {
            name
            for op in module.instructions
            if not isinstance(op, _CONTROL_FLOW)
            for name in op.called_computations
        }
        changed = False
        work = [module.entry]
        visited: set[str] = set()
        while work:
            computation = work.pop()
            if computation.computation_name in visited:
                continue
            visited.add(computation.computation_name)
            for op in tuple(computation.instructions):
                for key in op.calling_keys:
                    names = symbols_of(op.properties.get(key))
                    renamed = list(names)
                    for place, name in enumerate(names):
                        if isinstance(op, _CONTROL_FLOW):
                            if name in used or name in embedded:
                                original = computations[name]
                                clone = clone_computation(original, uniquer.unique(f"{name}.clone"))
                                module.op.body.block.insert_op_before(
                                    clone, _place(computation, original)
                                )
                                computations[clone.computation_name] = clone
                                renamed[place] = clone.computation_name
                                changed = True
                            used.add(renamed[place])
                        work.append(computations[renamed[place]])
                    if renamed != list(names):
                        _set_callees(op, key, renamed)
        return changed


def _place(caller: ComputationOp, original: ComputationOp) -> ComputationOp:
    """Callees stand before their callers; a clone goes where its original stands, or before the caller."""
    return original if original.parent is caller.parent and original is not caller else caller


def _set_callees(op: Instruction, key: str, names: list[str]) -> None:
    old = op.properties[key]
    if isinstance(old, ArrayAttr):
        op.properties[key] = ArrayAttr([symbol(name) for name in names])
    else:
        assert symbol_of(old) != names[0]
        op.properties[key] = symbol(names[0])
