"""What the kernels of a computation do and how long they take on the modelled device, those that are candidates too."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, SSAValue

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConstantOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, OP_CLASSES, Instruction
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves
from mlirhlo.dialects.hlo.table import Movement, opcodes
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.joined import (
    Joined,
    is_in_parts,
    join,
)
from mlirhlo.lowering.gpu.model import KernelCost, kernel_cost
from mlirhlo.lowering.plan.in_memory import is_same_memory
from mlirhlo.lowering.schedule.passes import schedule
from mlirhlo.lowering.structured import optimize_kernel, to_structured
from mlirhlo.rewrites.fusion.graph import INNER, barrier_of

MAX_CODE = 160
"""Instructions of a fusion."""
MAX_OPERANDS, MAX_OUTPUTS = 32, 8
"""Arrays that a kernel reads and writes."""
_WRITERS = opcodes(lambda row: row.movement is Movement.UPDATE) | {"scatter", "select-and-scatter"}
"""Opcodes that write into an array: they stay with what they are fused with already."""
_KERNELS = frozenset({*INNER, FusionOp, OP_CLASSES["reduce-window"], OP_CLASSES["reshape"]})


@dataclass(slots=True, kw_only=True)
class KernelTimes:
    """The kernels of one computation."""

    bodies: dict[str, ComputationOp]
    """By name; fusions that are put in join them."""
    computation: ComputationOp
    gpu: GpuDevice
    kernels: dict[Instruction, tuple[KernelCost, float] | None] = field(
        default_factory=dict[Instruction, "tuple[KernelCost, float] | None"]
    )
    """What kernels do, and modelled nanoseconds; None for what is no kernel that may become one with others."""
    effort: int = 0
    """Instructions of candidates that may be looked at yet."""
    joins: dict[object, tuple[Joined, float] | None] = field(
        default_factory=dict[object, "tuple[Joined, float] | None"]
    )
    """Candidates that were looked at."""
    controlling: set[SSAValue] = field(default_factory=set[SSAValue])

    def __post_init__(self) -> None:
        self.controlling = {
            value
            for op in self.computation.instructions
            if CONTROL_PREDECESSORS in op.properties
            for value in op.control_predecessors
        }

    def _kernel(self, op: Instruction) -> tuple[KernelCost, float] | None:
        if op not in self.kernels:
            self.kernels[op] = self._judged(op)
        return self.kernels[op]

    def _time(self, op: Instruction) -> float | None:
        found = self._kernel(op)
        return None if found is None else found[1]

    def _judged(self, op: Instruction) -> tuple[KernelCost, float] | None:
        if type(op) not in _KERNELS or isinstance(op, ConstantOp) or not is_in_parts(op):
            return None
        if CONTROL_PREDECESSORS in op.properties or op.output in self.controlling:
            return None
        if op.opcode.name in _WRITERS or (isinstance(op, FusionOp) and self._stays(op)):
            return None
        cost = self.cost(op)
        return None if cost is None else (cost, cost.time(self.gpu))

    def _stays(self, op: FusionOp) -> bool:
        inside = self.bodies[op.calls].instructions
        return op.kind == "kCustom" or any(i.opcode.name in _WRITERS for i in inside)

    def cost(self, op: Instruction) -> KernelCost | None:
        """What the kernel of an instruction does; None where there is none, or none of the structured stage."""
        if isinstance(op, ConstantOp | GetTupleElementOp | ParameterOp | TupleOp):
            return None
        shapes = [part for _, part in leaves(op.shape)]
        if not all(
            isinstance(s, ArrayShape) and not s.is_dynamic and s.element_count for s in shapes
        ):
            return None
        if op.opcode.keeps_bytes and is_same_memory(op):
            return KernelCost()
        return self._kernel_cost(op, self.bodies)

    def _kernel_cost(
        self, op: Instruction, bodies: Mapping[str, ComputationOp]
    ) -> KernelCost | None:
        try:
            kernel = to_structured(op, bodies, "candidate", constants=True)
            optimize_kernel(kernel)
            schedule(kernel, self.gpu)
        except HloError:
            return None
        return kernel_cost(kernel, self.gpu)

    def _joined(
        self, members: tuple[Instruction, ...], outputs: Sequence[SSAValue]
    ) -> tuple[Joined, float] | None:
        """The fusion of kernels and its time; None where there is none."""
        key = (members, tuple(outputs))
        if key not in self.joins:
            self.joins[key] = self._built(members, outputs)
        return self.joins[key]

    def _built(
        self, members: tuple[Instruction, ...], outputs: Sequence[SSAValue]
    ) -> tuple[Joined, float] | None:
        code = sum(map(self._code, members))
        if not 0 < len(outputs) <= MAX_OUTPUTS or code > MAX_CODE or self.effort < code:
            return None
        if any(barrier_of(op) != barrier_of(members[0]) for op in members):
            return None
        self.effort -= code
        found = join(self.bodies, members, outputs)
        if len(found.operands) > MAX_OPERANDS:
            return None
        arguments = Block(arg_types=[v.type for v in found.operands]).args
        bodies = ChainMap({found.body.computation_name: found.body}, self.bodies)
        cost = self._kernel_cost(found.fusion(arguments), bodies)
        return None if cost is None else (found, cost.time(self.gpu))

    def _code(self, op: Instruction) -> int:
        return len(instruction_list(self.bodies[op.calls])) if isinstance(op, FusionOp) else 1
