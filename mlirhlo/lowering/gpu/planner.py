"""Plans for a GPU: every kernel is code of the device; what has none is an error, not a call into Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.gpu import FuncOp
from xdsl.ir import Operation

from mlirhlo.analysis.trip_count import known_trip_count
from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import CustomCallOp, FusionOp, WhileOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import without_layout
from mlirhlo.dialects.hlo.table import opcodes
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.interp.plans import place_of
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.kernel import GpuKernel
from mlirhlo.lowering.gpu.kernels import build_kernel
from mlirhlo.lowering.gpu.library_calls import library_routine
from mlirhlo.lowering.gpu.mosaic_calls import is_mosaic_call, mosaic_kernel
from mlirhlo.lowering.plan.in_memory import is_held
from mlirhlo.lowering.plan.plan import Plan
from mlirhlo.lowering.plan.planner import Planner, Values
from mlirhlo.lowering.plan.steps import Buffer, Copy, Kernel, Site, Step, Tree, all_steps
from mlirhlo.lowering.structured.conversion import scalar_constant
from mlirhlo.rewrites.legalize.custom_call_expander import is_overwritten

OF_THE_HOST = opcodes(
    lambda row: (
        (row.collective and not row.name.endswith("-done")) or (row.varies and not row.transfers)
    )
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


_DYNAMIC = ("PadToStatic", "SliceToDynamic")
"""Calls of `dynamic-padder` around what it has made static: the host pads parameters and slices results."""
_ELSEWHERE = "--platform=Interpreter runs it"


def _is_manual(op: Instruction) -> bool:
    """Whether a call cuts an array into the parts of devices, or joins them."""
    target = str(getattr(op, "custom_call_target", ""))
    return target.startswith(("xla.sdy.", "SPMDFullToShard", "SPMDShardToFull"))


def _is_called(op: Instruction) -> bool:
    """Whether an instruction is no kernel: the host computes it, or a library."""
    if op.opcode.name in OF_THE_HOST or _is_manual(op) or library_routine(op) is not None:
        return True
    return isinstance(op, CustomCallOp) and op.custom_call_target in _DYNAMIC


def _mark_aliases(kernel: GpuKernel, step: Kernel) -> None:
    """Drops the promises of parameters that are one buffer in a step, which one of them writes: that no other
    parameter points there, and that nothing writes there."""
    buffers = [buffer.alias or buffer for buffer in (*step.reads, *step.writes)]
    operands = len(step.reads)
    for function in kernel.module.body.block.ops:
        launch = next((one for one in kernel.launches if one.entry == _name_of(function)), None)
        given = cast("ArrayAttr[DictionaryAttr] | None", function.attributes.get("arg_attrs"))
        if launch is None or given is None:
            continue
        counts = Counter(buffers[number] for number in launch.buffers)
        written = {buffers[number] for number in launch.buffers if number >= operands}
        promises = list(given)
        for at, number in enumerate(launch.buffers):
            if counts[buffers[number]] > 1 and buffers[number] in written:
                promises[at] = DictionaryAttr({})
        function.attributes["arg_attrs"] = ArrayAttr(promises)


def _name_of(function: Operation) -> str:
    name = function.attributes.get("sym_name") if isinstance(function, FuncOp) else None
    return name.data if isinstance(name, StringAttr) else ""


class _GpuPlanner(Planner[GpuKernel]):
    target = "the GPU"

    def __init__(self, module: HloModule, device: GpuDevice, values: Values | None) -> None:
        super().__init__(module, values)
        self.device = device

    def build(self, name: str, op: Instruction) -> GpuKernel | None:
        if _is_called(op):
            return None
        if is_mosaic_call(op):
            return mosaic_kernel(name, op, self.device)
        try:
            return build_kernel(name, op, self.computations, self.device)
        except HloError as problem:
            if problem.code != "HLO0790":
                raise problem.at(place_of(op)) from None
            why = problem.diagnostics[0].message
            if op.opcode.transfers:
                why = "the host hands over no data while a program runs"
            message = f"`{op.opcode.name}` %{op.instruction_name} has no GPU code: {why}"
            raise error("HLO0802", message, place_of(op), help=_ELSEWHERE) from None

    def key(self, op: Instruction) -> Hashable:
        if isinstance(op, FusionOp):
            return super().key(op)
        literals = map(scalar_constant, op.inputs)
        return super().key(op), tuple(v and v.array.tobytes() for v in literals)

    def native(self, op: Instruction, operands: list[Tree], steps: list[Step]) -> Tree | None:
        if not is_mosaic_call(op) or any(map(is_held, (*operands, op.shape))):
            return None
        shapes = [shape_of(v.type) for v in op.inputs]
        trees = {
            value: self._in_layout(tree, shape, without_layout(shape), steps)
            for value, tree, shape in zip(op.inputs, operands, shapes, strict=True)
        }
        result = cast(Tree, self._kernel(op, trees, steps))
        return self._in_layout(result, without_layout(op.shape), op.shape, steps)

    def is_unwritten(self, op: Instruction) -> bool:
        return isinstance(op, CustomCallOp) and is_overwritten(op)

    def workspaces(self, kernel: GpuKernel) -> Sequence[int]:
        return kernel.workspaces

    def pairs(self, kernel: GpuKernel) -> Sequence[tuple[int, int]]:
        return kernel.in_place

    def updates(self, kernel: GpuKernel) -> Sequence[tuple[int, int]]:
        return kernel.updates

    def rounds(self, op: WhileOp) -> int | None:
        return known_trip_count(op)

    def settle(
        self, steps: list[Step], results: Sequence[Buffer]
    ) -> tuple[set[Buffer], list[Buffer]]:
        # Results are always given the memory of the parameter that they may have.
        steps[:] = [s for s in steps if not (isinstance(s, Copy) and s.source is s.target.alias)]
        for step in all_steps(steps):
            if isinstance(step, Kernel):
                _mark_aliases(self.kernels[step.name], step)
        return super().settle(steps, results)

    def call_back(self, site: Site, steps: list[Step]) -> None:
        op = site.op
        if op is None or _is_called(op):
            super().call_back(site, steps)
            return
        raise error(
            "HLO0802",
            f"`{op.opcode.name}` of {op.shape} has no GPU code: only static sizes have",
            place_of(op),
            help=_ELSEWHERE,
        )
