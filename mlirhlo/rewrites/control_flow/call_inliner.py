"""`call-inliner`: replaces calls by the bodies of what they call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import AsyncStartOp, CallOp, ComputationOp, Instruction, ParameterOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS
from mlirhlo.dialects.quick import replace
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.control_flow.flatten_call_graph import unshare
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit
from mlirhlo.rewrites.simplify.dce import DcePass, call_sites, live_callers_first


@dataclass(frozen=True)
class CallInlinerPass(HloPass):
    """Replaces each call by a copy of the computation it calls, outermost first; then runs dce.

    Before and after:

        %f { %p = f32[] parameter(0)  ROOT %n = f32[] negate(%p) }
        ROOT %c = f32[] call(%x), to_apply=%f      =>   ROOT %n = f32[] negate(%x)

    Not inlined: calls with a backend_config, calls in asynchronous computations, calls with the
    frontend attribute `inlineable="false"`, composites named in `composites_to_preserve`.
    Source: reference of the passes, "CallInliner".
    """

    name = "call-inliner"

    single_call_site: bool = False
    """Inlines only computations that are called once."""
    composites_to_preserve: tuple[str, ...] = ()
    """`composite.name` values of composite calls that stay calls."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Inlines; whether any call was inlined."""
        if not module.candidates(CallOp):
            return False
        computations = module.by_name()
        sites = module.known(call_sites)
        asynchronous = {
            name for op in module.candidates(AsyncStartOp) for name in op.called_computations
        }
        names = NameUniquer(
            op.instruction_name for op in module.instructions if op.instruction_name
        )
        changed = False
        for computation in live_callers_first(module):
            name = computation.computation_name
            calls = [op for op in computation.instructions if isinstance(op, CallOp)][::-1]
            while calls and name not in asynchronous:
                op = calls.pop()
                if self._inlinable(op, sites):
                    calls += reversed(_inline(op, computations[op.to_apply], names))
                    changed = True
        if changed:
            DcePass().run(module.afresh(), trace)
            unshare(module.afresh())
        return changed

    def _inlinable(self, op: CallOp, sites: Mapping[str, list[Instruction]]) -> bool:
        if op.backend_config:
            return False
        if self.single_call_site and len(sites[op.to_apply]) != 1:
            return False
        attributes = (
            dict(op.frontend_attributes.entries) if op.frontend_attributes is not None else {}
        )
        if attributes.get("inlineable") == "false":
            return False
        return not (
            op.is_composite and attributes.get("composite.name") in self.composites_to_preserve
        )


def _inline(call: CallOp, callee: ComputationOp, names: NameUniquer) -> list[CallOp]:
    """Puts a copy of the callee in the place of a call; the calls in it."""
    before = call.prev_op
    root = insert_body(call, callee, call.inputs, names)
    calls: list[CallOp] = []
    op = call.prev_op
    while op is not before:
        assert op is not None
        if isinstance(op, CallOp):
            calls.append(op)
        op = op.prev_op
    # Control successors of the call read its result as an operand, so they move to the root.
    replace(call.output, root)
    call.detach()
    call.erase()
    return calls[::-1]


def insert_body(
    call: Instruction, callee: ComputationOp, inputs: Sequence[SSAValue], names: NameUniquer
) -> SSAValue:
    """Puts a copy of what `callee` does with `inputs` before `call`; gives the result."""
    values: dict[SSAValue, SSAValue] = {}
    block = call.parent
    assert block is not None
    for op in callee.instructions:
        if isinstance(op, ParameterOp):
            values[op.output] = inputs[op.parameter_number]
            continue
        old = op.instruction_name
        copy = clone_instruction(op, values, names.unique(old) if old else None)
        if call.control_predecessors:
            before = (*copy.control_predecessors, *call.control_predecessors)
            copy.operands = [*copy.inputs, *before]
            copy.properties[CONTROL_PREDECESSORS] = integer(len(before))
        inherit(copy, call)
        values[op.output] = copy.output
        block.insert_op_before(copy, call)
    return values[callee.terminator.root]
