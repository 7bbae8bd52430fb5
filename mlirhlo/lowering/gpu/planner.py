"""Plans for a GPU: every kernel is code of the device; what has none is an error, not a call into Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.interp.plans import place_of
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.kernel import GpuKernel
from mlirhlo.lowering.gpu.kernels import build_kernel
from mlirhlo.lowering.plan.plan import Plan
from mlirhlo.lowering.plan.planner import Planner, Values
from mlirhlo.lowering.plan.steps import Site, Step

OF_THE_HOST = frozenset(
    {
        "all-gather",
        "all-gather-start",
        "all-reduce",
        "all-reduce-start",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "collective-permute-start",
        "collective-reduce",
        "partition-id",
        "ragged-all-to-all",
        "reduce-scatter",
        "replica-id",
        "rng",
        "rng-get-and-update-state",
    }
)
"""Opcodes of the host: they need values of other devices, as NCCL does, or keep a state between runs."""


@dataclass
class GpuPlan(Plan):
    """A plan with its kernels."""

    kernels: dict[str, GpuKernel] = field(default_factory=dict[str, GpuKernel])


def plan_module(module: ModuleOp, device: GpuDevice, values: Values | None = None) -> GpuPlan:
    """The plan of a module's entry for a device; `values` is filled, for reports.

    Raises `HloError` HLO0802 for what has no code, HLO0435 for arrays of unknown size.
    """
    planner = _GpuPlanner(HloModule(module), device, values)
    plan = planner.plan()
    return GpuPlan(**vars(plan), kernels=planner.kernels)


def _is_manual(op: Instruction) -> bool:
    """Whether a call cuts an array into the parts of devices, or joins them."""
    target = str(getattr(op, "custom_call_target", ""))
    return target.startswith(("xla.sdy.", "SPMDFullToShard", "SPMDShardToFull"))


class _GpuPlanner(Planner[GpuKernel]):
    target = "the GPU"

    def __init__(self, module: HloModule, device: GpuDevice, values: Values | None) -> None:
        super().__init__(module, values)
        self.device = device

    def build(self, name: str, op: Instruction) -> GpuKernel | None:
        if op.opcode.name in OF_THE_HOST or _is_manual(op):
            return None
        try:
            return build_kernel(name, op, self.computations, self.device)
        except HloError as problem:
            raise problem.at(place_of(op)) from None

    def workspaces(self, kernel: GpuKernel) -> Sequence[int]:
        return kernel.workspaces

    def pairs(self, kernel: GpuKernel) -> Sequence[tuple[int, int]]:
        del kernel
        return ()

    def call_back(self, site: Site, steps: list[Step]) -> None:
        op = site.op
        if op is None or op.opcode.name in OF_THE_HOST or _is_manual(op):
            super().call_back(site, steps)
            return
        raise error(
            "HLO0802",
            f"`{op.opcode.name}` %{op.instruction_name} of {op.shape} has no GPU code: only static sizes have",
            help="--platform=Interpreter runs it",
        )
