"""`defuser`: replaces fusions by the instructions in them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.quick import replace
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit
from mlirhlo.rewrites.simplify.dce import called_from_entry, live_callers_first


@dataclass(frozen=True)
class DefuserPass(HloPass):
    """Replaces each fusion by a copy of its computation's instructions.

    Before and after:

        %f { %p = f32[4] parameter(0)  ROOT %n = f32[4] negate(%p) }
        ROOT %r = f32[4] fusion(%x), kind=kLoop, calls=%f      =>   ROOT %r = f32[4] negate(%x)

    Fusions in fusions are taken apart too. Those with control dependencies and those of the kinds
    in `keep` stay. Names of computations that nobody calls any more go with them.
    Source: behaviour of XLA's `Defuser`.
    """

    name = "defuser"

    keep: tuple[str, ...] = ()
    """Kinds of fusions to leave: `kCustom`."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Takes fusions apart; whether there were any."""
        del trace
        if not module.candidates(FusionOp):
            return False
        computations = module.by_name()
        names = NameUniquer(n for op in module.instructions if (n := op.instruction_name))
        changed = False
        for computation in live_callers_first(module):
            controlling = {v for op in computation.instructions for v in op.control_predecessors}
            fusions = [op for op in computation.instructions if isinstance(op, FusionOp)]
            while fusions:
                op = fusions.pop()
                if op.kind in self.keep or CONTROL_PREDECESSORS in op.properties:
                    continue
                if op.output in controlling:
                    continue
                for copy in defuse(op, computations[op.calls], names):
                    controlling.update(copy.control_predecessors)
                    if isinstance(copy, FusionOp):
                        fusions.append(copy)
                changed = True
            if changed:
                computation.properties.pop("storage_order", None)
        if changed:
            drop_uncalled(module)
        return changed


def defuse(fusion: FusionOp, body: ComputationOp, names: NameUniquer) -> list[Instruction]:
    """Puts copies of a computation's instructions in the place of a fusion; returns them."""
    made: list[Instruction] = []
    block = fusion.parent
    assert block is not None
    values: dict[SSAValue, SSAValue] = {}
    root = body.root
    parts: tuple[SSAValue, ...] | None = None
    for op in body.instructions:
        if isinstance(op, ParameterOp):
            values[op.output] = fusion.inputs[op.parameter_number]
            continue
        if op is root and is_taken_by_parts(fusion, body):
            parts = tuple(values[v] for v in op.inputs)
            break
        old = op.instruction_name
        copy = clone_instruction(op, values, names.unique(old) if old else None)
        inherit(copy, fusion)
        values[op.output] = copy.output
        block.insert_op_before(copy, fusion)
        made.append(copy)
    if root.output in values:
        replace(fusion.output, values[root.output])
    else:
        assert parts is not None
        for user in [use.operation for use in fusion.output.uses]:
            assert isinstance(user, GetTupleElementOp)
            replace(user.output, parts[user.index])
            user.detach()
            user.erase()
    fusion.detach()
    fusion.erase()
    return made


def is_taken_by_parts(fusion: FusionOp, body: ComputationOp) -> bool:
    """Whether the body gives a tuple of which nobody reads but the parts: no tuple is left of it."""
    return isinstance(body.root, TupleOp) and all(
        _is_plain_part(use.operation) for use in fusion.output.uses
    )


def _is_plain_part(user: Operation) -> bool:
    return isinstance(user, GetTupleElementOp) and CONTROL_PREDECESSORS not in user.properties


def drop_uncalled(module: HloModule) -> None:
    """Erases computations that the entry does not reach."""
    called = called_from_entry(module.afresh())
    for computation in tuple(module.computations):
        if computation not in called:
            computation.detach()
            computation.erase(safe_erase=False)
