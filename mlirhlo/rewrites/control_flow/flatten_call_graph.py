"""`flatten-call-graph`: gives every call site a computation of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr

from mlirhlo.dialects.hlo.attributes.base import symbol, symbol_of, symbols_of
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import AsyncStartOp, FusionOp, Instruction
from mlirhlo.rewrites.cloning import clone_computation
from mlirhlo.rewrites.passes import HloPass, Trace


@dataclass(frozen=True)
class FlattenCallGraphPass(HloPass):
    """Clones computations until each is called from at most one place.

    Reducers, comparators and other embedded computations are cloned as well.

    Before and after:

        %a = f32[] call(%x), to_apply=%f
        %b = f32[] call(%a), to_apply=%f      =>   %b = f32[] call(%a), to_apply=%f.clone

    Source: what XLA of jaxlib 0.10.2 dumps after its pass of this name.
    """

    name = "flatten-call-graph"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Clones; whether anything was cloned."""
        return _flatten(module, {c.computation_name for c in module.computations})


def unshare(module: HloModule) -> bool:
    """Gives fusions and asynchronous starts computations of their own again after instructions were copied.

    Whether any computation was cloned.
    """
    owners = module.candidates(FusionOp, AsyncStartOp)
    return _flatten(module, {name for op in owners for name in op.called_computations})


def _flatten(module: HloModule, single: set[str]) -> bool:
    """Clones the computations `single` until each has one call site; whether anything was cloned."""
    entry = module.entry.computation_name
    uses = Counter([entry, *(n for op in module.calling() for n in op.called_computations)])
    if all(uses[name] < 2 for name in single):
        return False
    computations = module.by_name()
    uniquer = NameUniquer(computations)
    called = {entry}
    changed = False
    # Callers first, so that the calls of a clone are looked at like any other.
    callees = uses.keys() - called
    work = [c for c in module.computations if c.computation_name not in callees]
    for computation in work:  # grows while it is walked
        for op in tuple(computation.instructions):
            for key in op.calling_keys:
                names = symbols_of(op.properties.get(key))
                own: list[str] = []
                for name in names:
                    if name not in called:
                        called.add(name)
                        work.append(computations[name])
                    elif name in single:
                        clone = clone_computation(
                            computations[name], uniquer.unique(f"{name}.clone")
                        )
                        module.op.body.block.insert_op_before(clone, computation)
                        name = clone.computation_name
                        computations[name] = clone
                        called.add(name)
                        single.add(name)
                        work.append(clone)
                        changed = True
                    own.append(name)
                if own != list(names):
                    _set_callees(op, key, own)
    return changed


def _set_callees(op: Instruction, key: str, names: list[str]) -> None:
    old = op.properties[key]
    if isinstance(old, ArrayAttr):
        op.properties[key] = ArrayAttr([symbol(name) for name in names])
    else:
        assert symbol_of(old) != names[0]
        op.properties[key] = symbol(names[0])
