"""`while-loop-constant-sinking`: constants that pass round a loop are constants inside it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import BroadcastOp, ConstantOp, Instruction, TupleOp, WhileOp
from mlirhlo.dialects.quick import put_operand
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.control_flow.while_loops import Loop, count_calls, understood
from mlirhlo.rewrites.passes import HloPass, Trace


@dataclass(frozen=True)
class WhileLoopConstantSinkingPass(HloPass):
    """Replaces elements of the state that are constants by constants in body and condition.

    Before and after:

        %w = while(tuple(%i, %c)), %c a constant that the body hands on
          =>   reads of the second element in body and condition are copies of %c

    Broadcasts of scalar constants count with `sink_broadcast_of_constants`. What the body hands on stays, so
    that `simplify-while-loops` can drop the element. Source: reference of the passes, "Loops".
    """

    name = "while-loop-constant-sinking"

    sink_broadcast_of_constants: bool = False
    """Sinks broadcasts of scalar constants too."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Sinks; whether anything was."""
        del trace
        loops = module.candidates(WhileOp)
        if not loops:
            return False
        computations = module.by_name()
        calls = module.known(count_calls)
        changed = False
        for op in loops:
            loop = understood(op, computations, calls)
            start = None if loop is None else loop.op.inputs[0].owner
            if loop is None or not isinstance(start, TupleOp):
                continue
            for index, value in enumerate(start.inputs):
                if loop.is_invariant(index) and self._is_constant(value):
                    changed |= sink_value(loop, index, value)
        return changed

    def _is_constant(self, value: SSAValue) -> bool:
        owner = value.owner
        if self.sink_broadcast_of_constants and isinstance(owner, BroadcastOp):
            owner = owner.operand.owner
        return isinstance(owner, ConstantOp)


def sink_value(loop: Loop, index: int, value: SSAValue) -> bool:
    """Lets readers of an element read a copy of `value`; the body still hands it on."""
    changed = False
    for computation in (loop.body, loop.condition):
        for read in loop.reads(computation):
            if read.index != index:
                continue
            users = [u for u in read.output.uses if u.operation is not loop.root]
            if not users:
                continue
            made: SSAValue = _copied(value, read)
            for use in users:
                put_operand(use.operation, use.index, made)
            changed = True
    return changed


def _copied(value: SSAValue, before: Instruction) -> SSAValue:
    """A copy of a constant, or of a broadcast of one, before an instruction."""
    owner = value.owner
    assert isinstance(owner, Instruction)
    values = {v: _copied(v, before) for v in owner.inputs}
    copy = clone_instruction(owner, values)
    block = before.parent
    assert block is not None
    block.insert_op_before(copy, before)
    return copy.output
