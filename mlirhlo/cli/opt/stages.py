"""What a platform's compiler makes of a module, stage by stage, for `hlo-opt --platform --stage`; the CPU's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from mlirhlo.cli import inputs
from mlirhlo.cli.opt.gpu_stages import STAGES as GPU_STAGES
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug import options
    from mlirhlo.lowering import observer as lowering_observer
    from mlirhlo.lowering import stage_text, structured
    from mlirhlo.lowering.cpu import compiler
    from mlirhlo.lowering.cpu import pipeline as cpu
    from mlirhlo.lowering.gpu import pipeline as gpu
    from mlirhlo.lowering.loops import passes
    from mlirhlo.runtime import jit
    from mlirhlo.runtime.cuda import devices


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.cli.opt.stage_parsing import Stage
    from mlirhlo.debug.options import Flags
    from mlirhlo.formats import Loaded
    from mlirhlo.lowering.observer import Observer
    from mlirhlo.rewrites.passes import Trace
    from mlirhlo.rewrites.pipeline import Instrumentation

HLO = "hlo"
"""The module itself, after the passes; every platform has this stage."""

FUSED = "fused"
"""HLO as it is planned."""

CPU_STAGES = (HLO, FUSED, "structured", "scheduled", "loops", "llvm-dialect", "llvm", "asm", "obj")
"""From the module to a relocatable object file, in order."""


def stages_of(platform: str) -> tuple[str, ...]:
    """Names of a platform's stages; the default comes first."""
    if platform.lower() in ("cpu", "host"):
        return CPU_STAGES
    return (HLO, FUSED, *GPU_STAGES) if is_gpu(platform) else (HLO,)


def is_gpu(platform: str) -> bool:
    """Whether this is a name of the platform of NVIDIA's GPUs."""
    return platform.lower() in ("gpu", "cuda")


def is_text(stage: str) -> bool:
    """Whether several modules of a stage may stand in one file."""
    return stage != "obj"


def fused(
    loaded: Loaded,
    platform: str,
    watchers: Sequence[Instrumentation],
    flags: Flags,
    trace: Trace,
    gpu_name: str = "",
) -> Loaded:
    """The module as the platform's compiler plans it, for the device of that name; `trace` is told what passes did."""
    loaded = inputs.as_hlo(loaded)
    inputs.check_entry(loaded)
    wanted = options.wanted_passes(flags)
    if is_gpu(platform):
        device = devices.device_of(gpu_name, flags)
        module = gpu.optimize(loaded.module, watchers, wanted, trace, device)
    else:
        module = cpu.optimize(loaded.module, watchers, wanted, trace)
    return replace(loaded, module=module)


def remarks(trace: Trace, *, as_json: bool) -> bytes:
    """What was not fused and why: a line each, or a JSON list."""
    found = trace.remarks or []
    if as_json:
        text = json.dumps([asdict(remark) for remark in found], indent=2) + "\n"
    else:
        text = "".join(f"{remark}\n" for remark in found)
    trace.remarks = []
    return text.encode()


def lowered(loaded: Loaded, stage: str, observer: Observer | None, flags: Flags) -> Stage:
    """An HLO module at a stage of the CPU compiler after `fused`; `observer` is told of the stages.

    Raises `HloError` HLO0432 and HLO0435 for what has no code, HLO079x for what has no structured form.
    """
    observer = lowering_observer.SILENT if observer is None else observer
    loaded = inputs.as_hlo(loaded)
    inputs.check_entry(loaded)
    if stage in ("structured", "scheduled"):
        fused, plan = compiler.plan_cpu(loaded.module, observer, options.wanted_passes(flags))
        kernels = structured.structured_module(fused, plan.instructions, plan.kernels)
        if stage == "scheduled":
            passes.schedule_all(kernels)
        return kernels
    stages = compiler.lower(loaded.module, observer, options.wanted_passes(flags))
    if stage == "loops":
        return stages.loops
    if stage == "llvm-dialect":
        return stages.llvm
    if stage == "llvm":
        return stages.text

    if stage == "asm":
        return jit.compile_assembly(stages.text)
    code = jit.compile_object(stages.text)
    observer.compiled(compiler.UNIT, stages.text, code)
    return code


def render(value: Stage, *, is_generic: bool = False) -> bytes:
    """A program as the file of its stage holds it; of modules the generic form on request."""
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else render_module(value, is_generic)


def render_module(module: ModuleOp, is_generic: bool = False) -> bytes:
    """A module of a stage as its file holds it."""
    return stage_text.print_stage(module, is_generic=is_generic).encode("utf-8", "surrogateescape")
