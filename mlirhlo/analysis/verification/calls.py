"""Checks of calls: that callees exist, form no cycle, and are called in one way."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.call_graph import CallGraph
from mlirhlo.analysis.shape_inference.base import declare
from mlirhlo.analysis.verification.report import CALLS, Report
from mlirhlo.dialects.hlo.attributes.base import str_of, symbols_of
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction

declare(
    "call_graph",
    c1="called computations are in the module",
    c2="calls form no cycle",
    c3="nobody calls the entry",
    c4="a fused computation is called by its one fusion only",
    c5="a computation is wrapped by one async-start only",
    c6="a called computation runs in the caller's thread, a wrapped one in its start's",
    c7="fused computations do not send, receive, feed or start anything",
)


def unknown_callees(op: Instruction, known: CallGraph, report: Report) -> bool:
    """Whether `op` calls a computation that is not in the module; reports it."""
    missing = [name for name in op.called_computations if name not in known.computations]
    for name in missing:  # call_graph_c1
        key = next(k for k in op.calling_keys if name in symbols_of(op.properties.get(k)))
        report.add(
            CALLS,
            "call_graph_c1",
            f"{op.opcode.name}: computation does not exist: {name}",
            op,
            attribute=key,
        )
    return bool(missing)


def check_calls(module: ModuleOp, graph: CallGraph, report: Report) -> None:
    """Adds to the report what is wrong between computations."""
    cycle = graph.cycle()
    if cycle is not None:  # call_graph_c2
        report.add(
            CALLS,
            "call_graph_c2",
            f"computations call each other in a cycle: {' -> '.join(cycle)}",
            graph.computations[cycle[0]],
        )
    for computation in HloModule(module).computations:
        name = computation.computation_name
        sites = graph.sites_of[name]
        if computation.is_entry is not None and sites:  # call_graph_c3
            report.add(
                CALLS,
                "call_graph_c3",
                f"the entry computation {name} is called",
                sites[0].instruction,
                attribute=sites[0].key,
            )
        for opcode, number in (("fusion", 4), ("async-start", 5)):
            mine = [s for s in sites if s.instruction.opcode.name == opcode]
            if mine and len(sites) > 1:  # call_graph_c4, call_graph_c5
                other = next(s for s in sites if s is not mine[0])
                report.add(
                    CALLS,
                    f"call_graph_c{number}",
                    f"computation {name} of a {opcode} is called twice",
                    other.instruction,
                    attribute=other.key,
                    note=(f"the {opcode} is", mine[0].instruction),
                )
        if any(s.instruction.opcode.name == "fusion" for s in sites):
            _check_fused(computation, report)
        _check_threads(computation, graph, report)


def _check_fused(computation: ComputationOp, report: Report) -> None:
    for op in computation.instructions:
        row = op.opcode
        if row.transfers or (row.is_asynchronous and not row.collective):  # call_graph_c7
            report.add(
                CALLS,
                "call_graph_c7",
                f"{op.opcode.name} cannot stand in the fused computation"
                f" {computation.computation_name}",
                op,
            )


def _check_threads(computation: ComputationOp, graph: CallGraph, report: Report) -> None:
    for site in graph.sites_in[computation.computation_name]:
        callee = graph.computations[site.callee]
        thread = computation.thread
        if site.instruction.opcode.name == "async-start":
            attribute = site.instruction.properties.get("async_execution_thread")
            thread = str_of(attribute, "main")
        if callee.thread != thread:  # call_graph_c6
            report.add(
                CALLS,
                "call_graph_c6",
                f"{site.instruction.opcode.name} in thread {thread!r} calls {site.callee}, which runs"
                f" in thread {callee.thread!r}",
                site.instruction,
                attribute=site.key,
            )
