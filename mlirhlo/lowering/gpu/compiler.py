"""From an HLO module to PTX for a device, stage by stage."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region

from mlirhlo.diagnostics import HloError, out_of_memory
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.shapes import MAX_BYTES
from mlirhlo.dialects.structured import KernelOp
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.kernel import GpuKernel
from mlirhlo.lowering.gpu.nvvm import to_nvvm
from mlirhlo.lowering.gpu.pipeline import optimize_in_place
from mlirhlo.lowering.gpu.planner import GpuPlan, plan_module
from mlirhlo.lowering.gpu.ptx import all_to_ptx, to_llvm_text
from mlirhlo.lowering.observer import SILENT, Observer
from mlirhlo.lowering.plan.passes import check_sizes
from mlirhlo.lowering.plan.planner import Values
from mlirhlo.lowering.schedule.passes import schedule
from mlirhlo.rewrites.cloning import clone_module

UNIT = "kernels"
"""Name of the one `gpu.module` with all kernels, where a stage is printed."""


@dataclass(slots=True)
class GpuProgram:
    """What runs a module on a GPU: steps, and the PTX of their kernels."""

    device: GpuDevice
    fused: ModuleOp
    """After the passes of `pipeline`."""
    plan: GpuPlan
    ptx: Mapping[str, str]
    """By kernel."""


@dataclass(frozen=True, slots=True)
class Edited:
    """Code that somebody dumped, changed, and hands back."""

    llvm: Sequence[str] = ()
    ptx: Sequence[str] = ()

    @staticmethod
    def in_place_of(kernel: GpuKernel, texts: Sequence[str]) -> str | None:
        """The text with an entry point of a kernel, by its name."""
        names = "|".join(re.escape(launch.entry) for launch in kernel.launches)
        entry = re.compile(
            rf"\.entry\s+({names})\b|^define ptx_kernel void @({names})\(", re.MULTILINE
        )
        return next((text for text in texts if entry.search(text)), None)


def plan_gpu(
    module: ModuleOp,
    device: GpuDevice,
    observer: Observer = SILENT,
    wanted: Callable[[str], bool] = lambda name: True,
) -> tuple[ModuleOp, GpuPlan]:
    """The module after its passes, and its plan with kernels; `wanted` says by name which passes run.

    Raises `HloError` HLO0802 and HLO0435 for what has no code, HLO0507 for what needs more than all memory.
    """
    with paused_gc():
        fused = clone_module(module)
        observer.given(fused)
        check_sizes(fused, "GPUs")
        values: Values = []
        optimize_in_place(fused, observer.passes(), wanted, device)
        plan = plan_module(fused, device, values)
        for buffer in (*plan.parameters, *plan.results):
            if buffer.size > MAX_BYTES:
                raise out_of_memory(f"no memory can hold {buffer.shape}")
        observer.planned(fused, plan, values)
        return fused, plan


def compile_gpu(
    module: ModuleOp,
    device: GpuDevice,
    observer: Observer = SILENT,
    wanted: Callable[[str], bool] = lambda name: True,
    edited: Edited | None = None,
) -> GpuProgram:
    """A module as steps and PTX; `edited` is taken for the code of the entry points that it has.

    Errors as of `plan_gpu`, HLO0803 where LLVM makes no PTX, and HLO076x for edited PTX that is wrong.
    """
    edited = edited or Edited()
    fused, plan = plan_gpu(module, device, observer, wanted)
    texts: list[str] = []
    for name, kernel in plan.kernels.items():
        nvvm = to_nvvm(kernel.module)
        if observer is not SILENT:
            observer.lowered(name, ModuleOp([kernel.module.clone()]), nvvm)
        texts.append(edited.in_place_of(kernel, edited.llvm) or to_llvm_text(nvvm, device))
    ptx = dict(zip(plan.kernels, all_to_ptx(texts, device), strict=True))
    for name, kernel in plan.kernels.items():
        if (text := edited.in_place_of(kernel, edited.ptx)) is not None:
            ptx[name] = verified(text, f"{name}.ptx")
    for text, (name, code) in zip(texts, ptx.items(), strict=True):
        observer.translated(name, text, code)
    return GpuProgram(device, fused, plan, ptx)


def verified(ptx: str, name: str) -> str:
    """PTX that was written or changed by hand. Raises `HloError` HLO076x for what is wrong with it."""
    from mlirhlo.formats.ptx import parse_ptx, verify_ptx

    if found := verify_ptx(parse_ptx(ptx, name), ptx):
        raise HloError(*found)
    return ptx


def schedule_all(structured: ModuleOp, device: GpuDevice) -> None:
    """Schedules every kernel of a module of `structured.kernel`s that has no schedule."""
    for op in structured.ops:
        if isinstance(op, KernelOp):
            schedule(op, device)


def built(structured: ModuleOp, device: GpuDevice) -> gpu.ModuleOp:
    """The kernels of a module of `structured.kernel`s in the gpu dialect."""
    from mlirhlo.lowering.gpu.kernels import kernel_of

    kernels = [op for op in structured.ops if isinstance(op, KernelOp)]
    return merged({op.kernel_name: kernel_of(op, device) for op in kernels})


def merged(kernels: Mapping[str, GpuKernel]) -> gpu.ModuleOp:
    """The kernels in one `gpu.module`, taken out of their own; helpers of one name are the same everywhere."""
    made = gpu.ModuleOp(StringAttr(UNIT), Region(Block()))  # type: ignore[arg-type]  # it wants a symbol
    helpers: set[str] = set()
    for kernel in kernels.values():
        for op in list(kernel.module.body.block.ops):
            op.detach()
            if isinstance(op, FuncOp | memref.GlobalOp):
                if op.sym_name.data in helpers:
                    continue
                helpers.add(op.sym_name.data)
            made.body.block.add_op(op)
    return made
