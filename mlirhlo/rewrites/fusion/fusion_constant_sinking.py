"""`fusion_constant_sinking`: scalar constants inside of the fusions that read them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import append, make
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import ComputationOp, ConstantOp, FusionOp, Instruction, ParameterOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS
from mlirhlo.dialects.quick import readers_of
from mlirhlo.rewrites.algsimp.common import array, is_array
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.computations import add_computation
from mlirhlo.rewrites.control_flow.flatten_call_graph import unshare
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter


@dataclass(frozen=True)
class FusionConstantSinkingPass(HloPass):
    """Moves scalar constants into the fusions that read them.

    Before and after:

        %f { %p, %q = f32[] parameter(1), … }   %c = f32[] constant(2)   %r = f32[4] fusion(%x, %c), calls=%f
          =>   %f { %p, %c = f32[] constant(2), … }   %r = f32[4] fusion(%x), calls=%f

    Loop and output fusions keep one operand at least, and so do the fusions in them that read the constant. The
    frontend attribute `FUSE_LIMIT` keeps a constant outside; custom fusions take those with `MUST_FUSE`.
    Source: XLA's pass of this name.
    """

    name = "fusion_constant_sinking"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Moves; whether there were any."""
        if not module.candidates(FusionOp):
            return False
        fused, computations = module.known(HloModule.fused_computations), module.by_name()
        stack = [c for c in module.computations if c.computation_name not in fused]
        seen, moved = set(stack), 0
        while stack:
            for op in tuple(stack.pop().instructions):
                if not isinstance(op, FusionOp):
                    continue
                callee = computations[op.calls]
                count, callee = _sink(op, callee)
                computations[callee.computation_name] = callee
                moved += count
                if callee not in seen:
                    seen.add(callee)
                    stack.append(callee)
        if moved:
            unshare(module.afresh())
        trace.rule_counts[self.name, "fusion_constant_sinking"] += moved
        return moved > 0


def _may_sink(constant: ConstantOp, op: FusionOp) -> bool:
    """Loop and output fusions take scalars but those marked as a limit, custom ones those that must be fused."""
    attributes = constant.frontend_attributes
    marks = {key for key, _ in attributes.entries} if attributes is not None else set[str]()
    if not is_array(constant) or array(constant).rank or "FUSE_LIMIT" in marks:
        return False
    return op.kind in ("kLoop", "kOutput") or (op.kind == "kCustom" and "MUST_FUSE" in marks)


def _sink(op: FusionOp, callee: ComputationOp) -> tuple[int, ComputationOp]:
    """Moves constants into a fusion; how many operands went, and the computation that it calls then."""
    parameters = callee.parameters
    sunk = {
        number: value.owner
        for number, value in enumerate(op.inputs)
        if isinstance(value.owner, ConstantOp)
        and _may_sink(value.owner, op)
        and not any(
            isinstance(user, FusionOp) and len(user.inputs) == 1
            for user in readers_of(parameters[number].output)
        )
    }
    if sunk and len(sunk) == len(op.inputs):
        sunk.popitem()
    if not sunk:
        return 0, callee
    block, values = Block(), dict[SSAValue, SSAValue]()
    kept = 0
    root: Instruction | None = None
    numbers: dict[int, int] = {}
    for number in range(len(op.inputs)):
        if number not in sunk:
            numbers[number] = kept
            kept += 1
    for inner in callee.instructions:
        if isinstance(inner, ParameterOp) and inner.parameter_number in sunk:
            copy = clone_instruction(sunk[inner.parameter_number], {}, inner.instruction_name)
        else:
            copy = clone_instruction(inner, values, inner.instruction_name)
            if isinstance(inner, ParameterOp):
                copy.properties["parameter_number"] = integer(numbers[inner.parameter_number])
        values[inner.output] = copy.output
        append(block, copy)
        root = copy if inner is callee.root else root
    assert root is not None
    made = add_computation(op, callee.computation_name, block, root)
    new = holder(op).prev_op
    assert isinstance(new, ComputationOp)
    properties = dict(op.properties) | {"calls": made}
    properties.pop("proto_id", None)
    operands = [value for number, value in enumerate(op.inputs) if number not in sunk]
    waits = op.control_predecessors
    properties.pop(CONTROL_PREDECESSORS, None)
    fused = make("fusion", operands, op.shape, properties, control_predecessors=waits)
    before = [value.owner for value in op.inputs]
    rewriter = Rewriter(op)
    rewriter.replace(op, fused)
    rewriter.erase_unread(*before)
    return len(sunk), new
