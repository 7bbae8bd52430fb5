"""The verifier: everything that must hold of a module, each rule under a number.

`docs/constraints.md` lists the rules. One pass over the module; instructions that differ from an
earlier one in nothing that matters are not checked again.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.call_graph import call_graph
from mlirhlo.analysis.verification.calls import check_calls, unknown_callees
from mlirhlo.analysis.verification.computations import check_computation
from mlirhlo.analysis.verification.groups import check_groups
from mlirhlo.analysis.verification.header import check_header, check_names
from mlirhlo.analysis.verification.instructions import InstructionChecks
from mlirhlo.analysis.verification.pairs import (
    check_channels,
    check_constrained_layouts,
    check_pair,
)
from mlirhlo.analysis.verification.report import Authors, Report
from mlirhlo.diagnostics import Diagnostic
from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction

LAYOUT_NOTE = (
    "Layouts, and the precision of floating point where an opcode computes, do not matter when a"
    " declared shape is compared."
)
"""What the page of constraints says of comparisons."""

MOST_DIAGNOSTICS = 100
"""A module that breaks more rules than this is not looked at any further."""


def verify_module(
    module: ModuleOp,
    *,
    file: str = "<module>",
    layout_sensitive: bool = False,
    limit: int = MOST_DIAGNOSTICS,
    authors: Authors | None = None,
) -> list[Diagnostic]:
    """What is wrong with `module`, in program order; empty when it is sound.

    `file` stands in places of instructions that were not read from text. `layout_sensitive` also
    holds layouts of values that are passed through (after layout assignment). At most `limit`
    diagnostics are given. `authors`: who wrote an instruction, for notes.
    """
    report = Report(file, limit, authors or {})
    with paused_gc():
        _verify(HloModule(module), report, layout_sensitive)
    return report.found


def _verify(view: HloModule, report: Report, layout_sensitive: bool) -> None:
    entry = check_names(view, report)
    graph = call_graph(view.op)
    broken: set[str] = set()
    for name, computation in graph.computations.items():
        before = len(report.found)
        is_fused = any(s.instruction.opcode.name == "fusion" for s in graph.sites_of[name])
        check_computation(computation, is_fused, report)
        if len(report.found) > before:
            broken.add(name)
    if entry is None or entry.computation_name in broken or report.is_full:
        return
    check_header(view, entry, report)
    check_calls(view.op, graph, report)
    signatures = {
        name: ProgramLayout(tuple(p.shape for p in c.parameters), c.root.shape)
        for name, c in graph.computations.items()
        if name not in broken
    }
    devices = view.replica_count * view.num_partitions
    checks = InstructionChecks(report, signatures, devices, layout_sensitive)
    for name, computation in graph.computations.items():
        if name in broken:
            continue
        for op in computation.instructions:
            if op.calling_keys and unknown_callees(op, graph, report):
                continue
            if op.calling_keys and broken and not signatures.keys() >= set(op.called_computations):
                continue
            if not checks.check(op):
                continue
            check_pair(op, report)
            if op.opcode.collective and op.operands:
                check_groups(op, view, report)
            if report.is_full:
                return
    check_channels(view.instructions, report)
    check_constrained_layouts(view.instructions, report)


def verify_bodies(module: ModuleOp, file: str) -> list[Diagnostic]:
    """What is wrong with the instructions in kernels: the first rule of its opcode that each breaks."""
    report = Report(file, MOST_DIAGNOSTICS)
    checks = InstructionChecks(report, {}, 1, False)
    for op in module.walk():
        if isinstance(op, Instruction) and not report.is_full:
            checks.check(op)
    return report.found


def verify_instruction(op: Instruction) -> list[Diagnostic]:
    """The first rule of its opcode that an instruction of a module breaks; empty when it keeps all."""
    report = Report("<module>", 1)
    module = op.get_toplevel_object()
    if not isinstance(module, ModuleOp):
        return []
    view = HloModule(module)
    computations = view.by_name()
    if any(name not in computations for name in op.called_computations):
        return []
    signatures = {
        name: ProgramLayout(
            tuple(p.shape for p in computations[name].parameters), computations[name].root.shape
        )
        for name in op.called_computations
    }
    InstructionChecks(report, signatures, view.replica_count * view.num_partitions, False).check(op)
    return report.found
