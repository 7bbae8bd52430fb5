"""Stages of the GPU compiler for `hlo-opt --platform=gpu --stage=…`, and their files as input."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mlirhlo.cli import inputs
from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.cli.opt import kernel_context, stage_parsing
    from mlirhlo.debug import options
    from mlirhlo.dialects import gpu as dialects_gpu
    from mlirhlo.dialects import hlo, nvgpu
    from mlirhlo.dialects import nvvm as dialects_nvvm
    from mlirhlo.dialects import structured as dialects_structured
    from mlirhlo.dialects.mosaic_gpu import dialect as mosaic_gpu
    from mlirhlo.lowering import observer as lowering_observer
    from mlirhlo.lowering import structured
    from mlirhlo.lowering.gpu import compiler, host, nvvm, ptx, sass
    from mlirhlo.runtime.cuda import devices


if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.cli.opt.stage_parsing import Stage
    from mlirhlo.debug.options import Flags
    from mlirhlo.formats import Loaded
    from mlirhlo.lowering.gpu.devices import GpuDevice
    from mlirhlo.lowering.observer import Observer

STAGES = ("structured", "scheduled", "gpu", "nvvm", "llvm", "llvm-opt", "ptx", "sass")
"""After the fused module: from ops over iteration spaces to machine code, in order."""

STRUCTURED_KERNEL = re.compile(
    rb'^\s*"?structured\.kernel"?\b|\A\s*builtin\.module \{\s*\}\s*\Z', re.MULTILINE
)
"""Stands in files of structured kernels, of which programs without any are empty modules."""

SCHEDULE = re.compile(rb"^(?!\s*//).*\bstructured\.schedule ?=", re.MULTILINE)
"""Stands in files of kernels with schedules."""

_SIGNS = (
    ("ptx", re.compile(rb"^\s*\.version\s+\d+\.\d+", re.MULTILINE)),
    ("scheduled", SCHEDULE),
    ("structured", STRUCTURED_KERNEL),
    ("nvvm", re.compile(rb'^\s*"?llvm\.func"?\b', re.MULTILINE)),
    ("gpu", re.compile(rb'^\s*"?gpu\.module"?\b', re.MULTILINE)),
    ("llvm-opt", re.compile(rb"^; ModuleID = ", re.MULTILINE)),
    ("llvm", re.compile(rb"^(define|declare|target triple) ", re.MULTILINE)),
)


def stage_of(data: bytes) -> str | None:
    """The stage whose print this is, by its content; None for a program that is still HLO."""
    return next((stage for stage, sign in _SIGNS if sign.search(data)), None)


def lowered(loaded: Loaded, stage: str, observer: Observer | None, flags: Flags, gpu: str) -> Stage:
    """An HLO module at one of `STAGES`, for the device `gpu`; `observer` is told of the stages before.

    Raises `HloError` HLO0802 and HLO0435 for what has no code, HLO0800 and HLO0801 for devices.
    """
    observer = lowering_observer.SILENT if observer is None else observer
    loaded = inputs.as_hlo(loaded)
    inputs.check_entry(loaded)
    device, wanted = devices.device_of(gpu, flags), options.wanted_passes(flags)
    fused, plan = compiler.plan_gpu(loaded.module, device, observer, wanted)
    if stage in ("structured", "scheduled"):
        kernels = structured.structured_module(
            fused, plan.instructions, plan.kernels, constants=True
        )
        return _continued(kernels, "structured", stage, device)
    return _continued(host.whole_program(compiler.merged(plan.kernels), plan), "gpu", stage, device)


def continued(data: bytes, given: str, wanted: str, name: str, gpu: str, flags: Flags) -> Stage:
    """The wanted stage of what was printed at a given one.

    Raises `HloError` HLO0430 for text that does not parse, HLO0502 for a stage in front of the given one, and
    what the following stages raise.
    """
    if STAGES.index(wanted) < STAGES.index(given):
        raise error("HLO0502", f"{name} is of stage '{given}': nothing makes '{wanted}' of it")
    text = data.decode()
    is_module = given in ("structured", "scheduled", "gpu", "nvvm")
    value = stage_parsing.parsed(text, name, context()) if is_module else text
    return _continued(value, given, wanted, devices.device_of(gpu, flags))


def _continued(value: ModuleOp | str, given: str, wanted: str, device: GpuDevice) -> Stage:
    """Stage after stage from a module or a text to the wanted one."""
    from xdsl.dialects.builtin import ModuleOp

    stage = given
    while stage != wanted:
        if isinstance(value, ModuleOp):
            if stage == "structured":
                compiler.schedule_all(value, device)
                stage = "scheduled"
            elif stage == "scheduled":
                value, stage = ModuleOp([compiler.built(value, device)]), "gpu"
            elif stage == "gpu":
                value, stage = host.with_code(value, nvvm.to_nvvm(host.kernels_in(value))), "nvvm"
            else:
                value, stage = ptx.to_llvm_text(host.code_of(value), device), "llvm"
        elif stage == "llvm" and wanted == "llvm-opt":
            value, stage = ptx.optimized_llvm(value, device), "llvm-opt"
        elif stage in ("llvm", "llvm-opt"):
            value, stage = ptx.to_ptx(value, device, optimize=stage == "llvm"), "ptx"
        else:
            value, stage = sass.to_sass(value, device), "sass"
    return value


def context() -> Context:
    """The dialects of the stages of GPUs."""
    ctx = kernel_context.KernelContext()
    for dialect in stage_parsing.dialects():
        ctx.load_dialect(dialect)
    for dialect in (
        dialects_gpu.GPU,
        nvgpu.NVGPU,
        dialects_nvvm.NVVM,
        hlo.HLO,
        dialects_structured.STRUCTURED,
        mosaic_gpu.MOSAIC_GPU,
    ):
        ctx.load_dialect(dialect)
    return ctx
