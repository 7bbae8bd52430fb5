"""Passes over schedules: `hlo-trivial-scheduler`, `hlo-descheduler`, `instruction-hoister`, `control-dep-remover`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirhlo.dialects.hlo.attributes.base import boolean
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConstantOp,
    Instruction,
    ParameterOp,
)
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS
from mlirhlo.dialects.hlo.order import instruction_list, post_order
from mlirhlo.rewrites.memory.hlo_memory_scheduler import reorder
from mlirhlo.rewrites.passes import HloPass, Trace


def _unfused(module: HloModule) -> list[ComputationOp]:
    fused = module.known(HloModule.fused_computations)
    return [c for c in module.computations if c.computation_name not in fused]


@dataclass(frozen=True)
class HloTrivialSchedulerPass(HloPass):
    """Schedules every computation as it is: operands before users, from the root on.

    Before and after:

        HloModule m   …   =>   HloModule m, is_scheduled=true   …

    A module that is scheduled is scheduled anew. Source: XLA's pass of this name.
    """

    name = "hlo-trivial-scheduler"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Schedules; whether anything is another than before."""
        del trace
        moved = [reorder(c, post_order(instruction_list(c))) for c in _unfused(module)]
        was = module.is_scheduled
        module.set("is_scheduled", boolean(True))
        return any(moved) or not was


@dataclass(frozen=True)
class HloDeschedulerPass(HloPass):
    """Takes the schedule away, so that passes may change the order of instructions again.

    Before and after:

        HloModule m, is_scheduled=true   …   =>   HloModule m   …

    Source: XLA's pass of this name.
    """

    name = "hlo-descheduler"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Whether the module was scheduled."""
        del trace
        was = module.is_scheduled
        module.set("is_scheduled", None)
        return was


@dataclass(frozen=True)
class ControlDepRemoverPass(HloPass):
    """Lets no instruction wait for another one whose result it does not read.

    Before and after:

        %n = f32[4] negate(%x), control-predecessors={%a}   =>   %n = f32[4] negate(%x)

    Source: XLA's pass of this name; the order of side effects is then that of the module's text alone.
    """

    name = "control-dep-remover"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Removes; whether there were any."""
        del trace
        waiting = [op for op in module.instructions if op.control_predecessors]
        for op in waiting:
            _wait_no_more(op)
        return bool(waiting)


def _wait_no_more(op: Instruction) -> None:
    op.operands = list(op.inputs)
    del op.properties[CONTROL_PREDECESSORS]


@dataclass(frozen=True)
class InstructionHoisterPass(HloPass):
    """Schedules parameters and constants first, so that they can be fetched early.

    Before and after, in a schedule:

        %x = parameter(0)   %n = negate(%x)   %y = parameter(1)   %c = constant(1)
          =>   %c = constant(1)   %x = parameter(0)   %y = parameter(1)   %n = negate(%x)

    Parameters stay where only instructions without work stand between them, constants where one of them has control
    dependencies. A module without a schedule stays. Source: XLA's pass of this name.
    """

    name = "instruction-hoister"

    parameters: bool = True
    """Whether parameters move."""
    constants: bool = True
    """Whether constants move."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Moves; whether anything stands elsewhere."""
        del trace
        if not module.is_scheduled:
            return False
        changed = False
        for computation in _unfused(module):
            if self.parameters:
                changed |= _parameters_first(computation)
            if self.constants:
                changed |= _constants_first(computation)
        return changed


def _parameters_first(computation: ComputationOp) -> bool:
    listed = instruction_list(computation)
    missing = len(computation.parameters)
    for op in listed:
        if not missing or not op.opcode.free:
            break
        missing -= isinstance(op, ParameterOp)
    if not missing:
        return False
    first = sorted((op for op in listed if isinstance(op, ParameterOp)), key=_number)
    for op in first:
        if op.control_predecessors:
            _wait_no_more(op)
    return reorder(computation, _with_first(first, listed))


def _number(op: ParameterOp) -> int:
    return op.parameter_number


def _constants_first(computation: ComputationOp) -> bool:
    listed = instruction_list(computation)
    for op in listed:
        waits = op.control_predecessors
        if waits and (
            isinstance(op, ConstantOp) or any(isinstance(v.owner, ConstantOp) for v in waits)
        ):
            return False
    return reorder(
        computation, _with_first([op for op in listed if isinstance(op, ConstantOp)], listed)
    )


def _with_first(first: Sequence[Instruction], listed: Sequence[Instruction]) -> list[Instruction]:
    chosen = set(first)
    return [*first, *(op for op in listed if op not in chosen)]
