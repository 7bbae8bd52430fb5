"""From an HLO module to object code for this machine, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.lowering.cpu.emit import emit_module
from mlirhlo.lowering.cpu.planner import Plan, plan_module
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm

FEATURES = {"prefer-vector-width": "512"}
"""Function attributes of generated code."""


@dataclass(slots=True)
class Stages:
    """A module on its way to the processor."""

    plan: Plan
    loops: ModuleOp
    llvm: ModuleOp
    text: str
    """LLVM assembly."""


def lower(module: ModuleOp) -> Stages:
    """All stages of an HLO module. Raises `HloError` HLO0432 or HLO0435 for what has no code."""
    with paused_gc():
        plan = plan_module(module)
        loops = emit_module(plan)
        llvm = convert_to_llvm(loops, features=FEATURES)
        return Stages(plan, loops, llvm, print_llvm(llvm))
