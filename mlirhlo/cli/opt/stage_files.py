"""Files of later stages as input of `hlo-opt --platform=cpu --stage=…`: loops, llvm-dialect, llvm."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mlirhlo.cli.opt import gpu_stages
from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.cli.opt import stage_parsing
    from mlirhlo.lowering import llvm_text, loops, loops_to_llvm
    from mlirhlo.lowering.cpu import compiler, emit
    from mlirhlo.lowering.loops import passes
    from mlirhlo.runtime import jit


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.cli.opt.stage_parsing import Stage

_STAGES = ("structured", "scheduled", "loops", "llvm-dialect", "llvm", "asm", "obj")
_LLVM = re.compile(rb"^(define|declare) ", re.MULTILINE)
_PROGRAM = re.compile(rb"^\s*HloModule\b|(?<![a-z])(?:stablehlo|hlo)\.")
_DIALECT = re.compile(rb'^\s*"?llvm\.func"?\b', re.MULTILINE)
_LOOPS = re.compile(rb'^\s*"?func\.func"?\b', re.MULTILINE)


def stage_of(data: bytes) -> str | None:
    """The stage whose print this is, by its content; None for a program that is still HLO."""
    if gpu_stages.STRUCTURED_KERNEL.search(data):
        return "scheduled" if gpu_stages.SCHEDULE.search(data) else "structured"
    if _PROGRAM.search(data):
        return None
    if _DIALECT.search(data):
        return "llvm-dialect"
    if _LOOPS.search(data) and b"memref<" in data:
        return "loops"
    return "llvm" if _LLVM.search(data) and b"builtin.module" not in data else None


def continued(data: bytes, given: str, wanted: str, name: str) -> Stage:
    """The wanted stage of what was printed at a given one.

    Structured kernels become a module of their functions, without a `main` that calls them.

    Raises `HloError` HLO0430, HLO0431 and HLO0433 for what the following stages refuse, HLO0432 for kernels that
    have no loops, HLO0806 for schedules that are none of the CPU's, HLO0502 for a stage in front of the given one.
    """
    if _STAGES.index(wanted) < _STAGES.index(given):
        raise error("HLO0502", f"{name} is of stage '{given}': nothing makes '{wanted}' of it")
    text = data.decode()
    if given != "llvm":
        is_structured = given in ("structured", "scheduled")
        module = stage_parsing.parsed(
            text, name, gpu_stages.context() if is_structured else stage_parsing.context()
        )
        if is_structured:
            module, given = _without_structure(module, given, wanted)
        if given == "loops" and wanted != "loops":
            module = loops_to_llvm.convert_to_llvm(
                module, features=compiler.FEATURES, entry=emit.MAIN
            )
            given = "llvm-dialect"
        if wanted == given:
            return module
        text = llvm_text.print_llvm(module)
    if wanted == "llvm":
        return text
    return jit.compile_assembly(text) if wanted == "asm" else jit.compile_object(text)


def _without_structure(module: ModuleOp, given: str, wanted: str) -> tuple[ModuleOp, str]:
    """Structured kernels at the wanted stage, at the latest as loops; the module and its stage."""
    if given == "structured" and wanted != given:
        passes.schedule_all(module)
        given = "scheduled"
    if given == "scheduled" and wanted != given:
        return loops.loops_of(module), "loops"
    return module, given
