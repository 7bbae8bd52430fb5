"""From an HLO module to object code for this machine, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import out_of_memory
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.shapes import MAX_BYTES
from mlirhlo.lowering.checking import add_checks
from mlirhlo.lowering.cpu.emit import MAIN, emit_module
from mlirhlo.lowering.cpu.pipeline import optimize_in_place
from mlirhlo.lowering.cpu.planner import CpuPlan, plan_module
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.lowering.observer import SILENT, Observer
from mlirhlo.lowering.plan.passes import check_sizes
from mlirhlo.lowering.plan.planner import Values
from mlirhlo.rewrites.cloning import clone_module

FEATURES = {"prefer-vector-width": "512"}
"""Function attributes of generated code."""

UNIT = "part_00"
"""Name of what is compiled at once, as XLA calls such parts in its dumps."""


@dataclass(slots=True)
class Stages:
    """A module on its way to the processor."""

    fused: ModuleOp
    """After the passes of `pipeline`."""
    plan: CpuPlan
    loops: ModuleOp
    llvm: ModuleOp
    text: str
    """LLVM assembly."""
    sites: Sequence[str] = ()
    """Accesses that are checked, by number."""


def plan_cpu(
    module: ModuleOp,
    observer: Observer = SILENT,
    wanted: Callable[[str], bool] = lambda name: True,
) -> tuple[ModuleOp, CpuPlan]:
    """The module after its passes, and its plan with kernels; arguments and errors as of `lower`."""
    # What observers see first is what passes change: a dump prints what is unchanged once.
    fused = clone_module(module)
    observer.given(fused)
    check_sizes(fused, "the CPU")
    values: Values = []
    optimize_in_place(fused, observer.passes(), wanted)
    plan = plan_module(fused, values)
    for buffer in (*plan.parameters, *plan.results):
        if buffer.size > MAX_BYTES:
            raise out_of_memory(f"no memory can hold {buffer.shape}")
    observer.planned(fused, plan, values)
    return fused, plan


def lower(
    module: ModuleOp,
    observer: Observer = SILENT,
    wanted: Callable[[str], bool] = lambda name: True,
    *,
    checked: bool = False,
) -> Stages:
    """All stages of an HLO module; `wanted` says by name which passes run.

    `checked`: every access of a buffer is tested before it is made (`checking.py`).

    Raises `HloError` HLO0432 or HLO0435 for what has no code, HLO0507 for what needs more than all memory.
    """
    with paused_gc():
        fused, plan = plan_cpu(module, observer, wanted)
        loops = emit_module(plan)
        sites = add_checks(loops) if checked else []
        llvm = convert_to_llvm(loops, features=FEATURES, entry=MAIN)
        observer.lowered(UNIT, loops, llvm)
        text = print_llvm(llvm)
        observer.assembled(UNIT, text)
        return Stages(fused, plan, loops, llvm, text, sites)
