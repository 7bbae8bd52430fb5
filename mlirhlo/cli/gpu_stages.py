"""Stages of the GPU compiler for `hlo-opt --platform=gpu --stage=…`, and their files as input."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mlirhlo.cli import inputs
from mlirhlo.diagnostics import error

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.cli.stages import Stage
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
    from mlirhlo.debug.options import wanted_passes
    from mlirhlo.lowering.gpu.compiler import merged, plan_gpu
    from mlirhlo.lowering.gpu.host import whole_program
    from mlirhlo.lowering.observer import SILENT
    from mlirhlo.lowering.structured import structured_module
    from mlirhlo.runtime.cuda.devices import device_of

    observer = SILENT if observer is None else observer
    loaded = inputs.as_hlo(loaded)
    inputs.check_entry(loaded)
    device, wanted = device_of(gpu, flags), wanted_passes(flags)
    fused, plan = plan_gpu(loaded.module, device, observer, wanted)
    if stage in ("structured", "scheduled"):
        kernels = structured_module(fused, plan.instructions, plan.kernels, constants=True)
        return _continued(kernels, "structured", stage, device)
    return _continued(whole_program(merged(plan.kernels), plan), "gpu", stage, device)


def continued(data: bytes, given: str, wanted: str, name: str, gpu: str, flags: Flags) -> Stage:
    """The wanted stage of what was printed at a given one.

    Raises `HloError` HLO0430 for text that does not parse, HLO0502 for a stage in front of the given one, and
    what the following stages raise.
    """
    from mlirhlo.cli.stage_files import parsed
    from mlirhlo.runtime.cuda.devices import device_of

    if STAGES.index(wanted) < STAGES.index(given):
        raise error("HLO0502", f"{name} is of stage '{given}': nothing makes '{wanted}' of it")
    text = data.decode()
    is_module = given in ("structured", "scheduled", "gpu", "nvvm")
    value = parsed(text, name, context()) if is_module else text
    return _continued(value, given, wanted, device_of(gpu, flags))


def _continued(value: ModuleOp | str, given: str, wanted: str, device: GpuDevice) -> Stage:
    """Stage after stage from a module or a text to the wanted one."""
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.lowering.gpu.compiler import built, schedule_all
    from mlirhlo.lowering.gpu.host import code_of, kernels_in, with_code
    from mlirhlo.lowering.gpu.nvvm import to_nvvm
    from mlirhlo.lowering.gpu.ptx import optimized_llvm, to_llvm_text, to_ptx
    from mlirhlo.lowering.gpu.sass import to_sass

    stage = given
    while stage != wanted:
        if isinstance(value, ModuleOp):
            if stage == "structured":
                schedule_all(value, device)
                stage = "scheduled"
            elif stage == "scheduled":
                value, stage = ModuleOp([built(value, device)]), "gpu"
            elif stage == "gpu":
                value, stage = with_code(value, to_nvvm(kernels_in(value))), "nvvm"
            else:
                value, stage = to_llvm_text(code_of(value), device), "llvm"
        elif stage == "llvm" and wanted == "llvm-opt":
            value, stage = optimized_llvm(value, device), "llvm-opt"
        elif stage in ("llvm", "llvm-opt"):
            value, stage = to_ptx(value, device, optimize=stage == "llvm"), "ptx"
        else:
            value, stage = to_sass(value, device), "sass"
    return value


def context() -> Context:
    """The dialects of the stages of GPUs."""
    from mlirhlo.cli import stage_files
    from mlirhlo.dialects.gpu import GPU
    from mlirhlo.dialects.hlo import HLO
    from mlirhlo.dialects.nvgpu import NVGPU
    from mlirhlo.dialects.nvvm import NVVM
    from mlirhlo.dialects.structured import STRUCTURED

    made = stage_files.context()
    for dialect in (GPU, NVGPU, NVVM, HLO, STRUCTURED):
        made.load_dialect(dialect)
    return made
