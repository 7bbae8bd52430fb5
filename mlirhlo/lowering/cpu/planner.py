"""Plans for the CPU: kernels as functions of loops, slices read in place, rounds of loops in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import WhileOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.lowering.builder import IN_PLACE, WORKSPACE
from mlirhlo.lowering.cpu.collective_plans import CollectivePlanner
from mlirhlo.lowering.cpu.from_structured import kernel_from_structured
from mlirhlo.lowering.cpu.strands import settle_strands, strands_of
from mlirhlo.lowering.cpu.views import read_in_place
from mlirhlo.lowering.hlo_to_loops.builders import build_kernel
from mlirhlo.lowering.plan.plan import Plan
from mlirhlo.lowering.plan.planner import Planner, Values
from mlirhlo.lowering.plan.spans import Spans
from mlirhlo.lowering.plan.steps import Buffer, Step, Strands, Tree


@dataclass
class CpuPlan(Plan):
    """A plan with its kernels."""

    kernels: dict[str, FuncOp] = field(default_factory=dict[str, FuncOp])


def plan_module(module: ModuleOp, values: Values | None = None) -> CpuPlan:
    """The plan of a module's entry; `values` is filled, for reports.

    Raises `HloError` HLO0435 or HLO0432 for what has no code.
    """
    planner = _CpuPlanner(HloModule(module), values)
    plan = planner.plan()
    return CpuPlan(**vars(plan), kernels=planner.kernels)


class _CpuPlanner(Planner[FuncOp]):
    target = "the CPU"

    def __init__(self, module: HloModule, values: Values | None = None) -> None:
        super().__init__(module, values)
        self.collectives = CollectivePlanner(self)

    def build(self, name: str, op: Instruction) -> FuncOp | None:
        try:
            function = kernel_from_structured(name, op, self.computations)
            return function or build_kernel(name, op, self.computations)
        except HloError as problem:
            if problem.code != "HLO0432":  # no machine code: it runs in Python
                raise
            return None

    def workspaces(self, kernel: FuncOp) -> Sequence[int]:
        size = kernel.attributes.get(WORKSPACE)
        return [size.value.data] if isinstance(size, IntegerAttr) else []

    def pairs(self, kernel: FuncOp) -> Sequence[tuple[int, int]]:
        said = cast("ArrayAttr[DenseArrayBase[Any]] | None", kernel.attributes.get(IN_PLACE))
        return [cast("tuple[int, int]", tuple(pair.get_values())) for pair in said or ()]

    def strands(self, op: WhileOp, state: Tree) -> Strands | None:
        return strands_of(op, state)

    def native(self, op: Instruction, operands: list[Tree], steps: list[Step]) -> Tree | None:
        """Collectives that machine code runs."""
        return self.collectives.plan(op, operands, steps)

    def settle(
        self, steps: list[Step], results: Sequence[Buffer]
    ) -> tuple[set[Buffer], list[Buffer]]:
        read_in_place(steps, self.instructions, self.computations, results)
        Spans().run(steps)
        return settle_strands(steps, self.kernels, results)
