"""`hlo-module-dce`: removes what loops carry round and nobody ever reads."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.analysis.liveness import Liveness
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp, GetTupleElementOp, TupleOp, WhileOp
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.simplify.dce import DcePass
from mlirhlo.rewrites.simplify.tuple_simplifier import TupleSimplifierPass


@dataclass(frozen=True)
class HloModuleDcePass(HloPass):
    """Stops loops from computing elements nobody reads; then simplifies tuples and removes the dead.

    An element of a `while` that is only passed round is replaced, in the root of the body, by the
    body's own parameter, so that what computed it dies. Shapes do not change.

    Before and after, in a body whose element 1 is never read:

        ROOT %t = (s32[], f32[4]) tuple(%i, %new)  =>  ROOT %t = (s32[], f32[4]) tuple(%i, %old)

    Source: reference of the passes, "HloModuleDCE".
    """

    name = "hlo-module-dce"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Removes what is dead across loops; whether anything was."""
        changed = False
        loops = module.candidates(WhileOp)
        if loops:
            liveness, computations = Liveness.of(module), module.by_name()
            for op in loops:
                assert isinstance(op, WhileOp)
                if not liveness.is_live(op.output):
                    continue  # a loop that stays though nothing depends on it still has to end
                changed |= _pass_dead_elements_round(op, computations[op.body], liveness)
        if changed:
            TupleSimplifierPass().run(module.afresh(), trace)
            module = module.afresh()
        return DcePass().run(module, trace) or changed


def _pass_dead_elements_round(op: WhileOp, body: ComputationOp, liveness: Liveness) -> bool:
    root, parameters = body.root, body.parameters
    if not isinstance(root, TupleOp) or len(parameters) != 1:
        return False
    carried = parameters[0].output
    operands: list[SSAValue] = list(root.operands)
    changed = False
    for index, value in enumerate(root.inputs):
        if liveness.is_live(op.output, (index,)) or liveness.is_live(root.output, (index,)):
            continue
        owner = value.owner
        if (
            isinstance(owner, GetTupleElementOp)
            and owner.operand is carried
            and owner.index == index
        ):
            continue
        kept = make("get-tuple-element", [carried], shape_of(value.type), {"index": integer(index)})
        body.block.insert_op_before(kept, root)
        operands[index] = kept.output
        changed = True
    if changed:
        root.operands = operands
    return changed
