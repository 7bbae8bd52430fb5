"""`while-loop-unroller`: short loops of cheap arithmetic become straight code."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.analysis.trip_count import counter_of
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import ComputationOp, ConstantOp, ParameterOp, WhileOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.table import Movement, opcodes
from mlirhlo.dialects.quick import replace
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit
from mlirhlo.rewrites.simplify.dce import DcePass

_CHEAP = opcodes(
    lambda row: row.is_index_map or row.free or row.movement in (Movement.SLICE, Movement.JOIN)
)
"""Opcodes besides elementwise ones that may stand in an unrolled body."""


@dataclass(frozen=True)
class WhileLoopUnrollerPass(HloPass):
    """Replaces loops that run a few times through elementwise arithmetic by their rounds.

    Before and after:

        %w = while(%s), condition=%c, body=%b
          =>   rounds of %b, one after the other, when %c holds so often and no more

    So that fusion sees through them: the rounds of a random number generator are one kernel, not
    one each. Loops of anything else (dots, reduces, other loops) stay loops.
    """

    name = "while-loop-unroller"

    rounds: int = 8
    """Loops that run more often stay."""
    instructions: int = 400
    """Loops that would become longer stay."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Unrolls; whether any loop was."""
        if not module.candidates(WhileOp):
            return False
        computations = module.by_name()
        names = NameUniquer(n for op in module.instructions if (n := op.instruction_name))
        changed = False
        for op in tuple(module.instructions):
            if not isinstance(op, WhileOp) or CONTROL_PREDECESSORS in op.properties:
                continue
            body = computations[op.body]
            counter = counter_of(op, computations)
            if counter is None or counter.trip_count is None or not _is_cheap(body):
                continue
            length = counter.trip_count * sum(1 for _ in body.instructions)
            if counter.trip_count <= self.rounds and length <= self.instructions:
                _unroll(op, body, counter.trip_count, names)
                changed = True
        if changed:
            DcePass().run(module.afresh(), trace)
        return changed


def _is_cheap(body: ComputationOp) -> bool:
    return all(
        isinstance(op, ParameterOp | ConstantOp)
        or op.opcode.elementwise
        or op.opcode.name in _CHEAP
        for op in body.instructions
    ) and not any(CONTROL_PREDECESSORS in op.properties for op in body.instructions)


def _unroll(loop: WhileOp, body: ComputationOp, rounds: int, names: NameUniquer) -> None:
    block = loop.parent
    assert block is not None
    state = loop.inputs[0]
    for _ in range(rounds):
        values: dict[SSAValue, SSAValue] = {}
        for op in body.instructions:
            if isinstance(op, ParameterOp):
                values[op.output] = state
                continue
            copy = _copy(op, values, names)
            inherit(copy, loop)
            values[op.output] = copy.output
            block.insert_op_before(copy, loop)
        state = values[body.terminator.root]
    replace(loop.output, state)
    loop.detach()
    loop.erase()


def _copy(op: Instruction, values: dict[SSAValue, SSAValue], names: NameUniquer) -> Instruction:
    old = op.instruction_name
    return clone_instruction(op, values, names.unique(old) if old else None)
