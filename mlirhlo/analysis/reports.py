"""Analyses as text and as JSON, for `hlo-opt --print-analysis`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.alias import aliases
from mlirhlo.analysis.buffer_assignment import assign_buffers
from mlirhlo.analysis.call_graph import call_graph
from mlirhlo.analysis.cost import Options, analyse
from mlirhlo.analysis.dataflow import Position, ShapeIndex, dataflow, indices
from mlirhlo.analysis.liveness import Liveness
from mlirhlo.analysis.schedules import ALGORITHMS, schedules
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import printed_names
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.order import instruction_list

Report: TypeAlias = Mapping[str, Any]
"""What `json` can write."""


def _cost(module: ModuleOp) -> Report:
    """Totals by XLA's keys, then every instruction that costs anything."""
    found = analyse(module)
    aware = analyse(module, Options(trip_counts=True))
    names = _Names(HloModule(module))
    instructions = {
        names.of(op): dict(counts.nonzero())
        for op, counts in found.instructions.items()
        if counts.nonzero()
    }
    return {
        "total": dict(found.total),
        "total with known trip counts": dict(aware.total),
        "instructions": instructions,
    }


def _call_graph(module: ModuleOp) -> Report:
    """Computations, callees first, with the way each is run and who calls it."""
    graph, names = call_graph(module), _Names(HloModule(module))
    return {
        computation.computation_name: {
            "context": graph.context(computation.computation_name).value,
            "callers": [
                f"{site.caller.computation_name}/{names.of(site.instruction)}"
                for site in graph.sites_of[computation.computation_name]
            ],
            "callees": list(graph.callees(computation.computation_name)),
        }
        for computation in graph.post_order()
    }


def _dataflow(module: ModuleOp) -> Report:
    """Every value with the places where it stands and the operands that read it."""
    flow, names = dataflow(HloModule(module)), _Names(HloModule(module))
    return {
        names.at(value): {
            "positions": [names.at(p) for p in positions[1:]],
            "uses": [f"{names.of(op)}.{at}" for op, at, _ in flow.uses(value)],
        }
        for value, positions in flow.positions.items()
    }


def _alias(module: ModuleOp) -> Report:
    """Every buffer with its values; those of more than one must share memory."""
    found, names = aliases(HloModule(module)), _Names(HloModule(module))
    return {
        f"buffer {number}": [names.at(value) for value in values]
        for number, values in enumerate(found.buffers)
    }


def _liveness(module: ModuleOp) -> Report:
    """Parts of values that nothing depends on, by computation."""
    hlo = HloModule(module)
    live, names = Liveness.of(hlo), _Names(hlo)
    return {
        computation.computation_name: {
            "instructions": len(instruction_list(computation)),
            "dead": [
                names.at((op, index))
                for op in computation.instructions
                for index in indices(op.shape)
                if not live.is_live(op.output, index)
            ],
        }
        for computation in hlo.computations
    }


def _buffers(module: ModuleOp) -> Report:
    """Where values are in memory: allocations by number, and the values in them by offset."""
    found, names = assign_buffers(HloModule(module)), _Names(HloModule(module))
    return {
        **{
            f"allocation {k}": {
                "size": a.bytes,
                "kind": a.kind,
                "values": [
                    f"{names.at(value)} at {b.offset}" for b in a.buffers for value in b.values
                ],
            }
            for k, a in enumerate(found.allocations)
        },
        "total": found.total_bytes,
        "temporary": found.temporary_bytes,
    }


def _schedules(module: ModuleOp) -> Report:
    """Bytes that each computation needs as its instructions stand, and in the orders there are."""
    given = schedules(module, given=True)
    orders = {name: schedules(module, (name,)) for name in ALGORITHMS}
    return {
        computation.computation_name: {
            "peak": found.lives.peak,
            **{name: order[computation].lives.peak for name, order in orders.items()},
        }
        for computation, found in given.items()
    }


REPORTS: Mapping[str, Callable[[ModuleOp], Report]] = {
    "alias": _alias,
    "buffer-assignment": _buffers,
    "call-graph": _call_graph,
    "cost": _cost,
    "dataflow": _dataflow,
    "liveness": _liveness,
    "schedules": _schedules,
}
"""By the name that users give."""


def as_text(report: Report) -> str:
    """A report as an indented list."""
    return "\n".join(_lines(report, 0))


def _lines(report: Report, depth: int) -> list[str]:
    pad = "  " * depth
    found: list[str] = []
    for key, part in report.items():
        match part:
            case Mapping():
                found += [f"{pad}{key}:", *_lines(cast(Report, part), depth + 1)]
            case list():
                found.append(f"{pad}{key}: {', '.join(cast('list[str]', part)) or '-'}")
            case float() if part.is_integer():
                found.append(f"{pad}{key}: {part:.0f}")
            case _:
                found.append(f"{pad}{key}: {part}")
    return found


class _Names:
    """Instructions by the names that the module's text gives them: some have none, or that of another."""

    def __init__(self, module: HloModule) -> None:
        ops = [op for c in module.by_name().values() for op in instruction_list(c)]
        names = printed_names([(op.instruction_name, op.opcode.name) for op in ops])
        self._of = dict(zip(ops, names, strict=True))

    def of(self, op: Instruction) -> str:
        """The name of an instruction."""
        return self._of[op]

    def at(self, position: Position) -> str:
        """The name, with the shape index of a part: `x{0,1}`."""
        op, index = position
        return f"{self._of[op]}{_index(index)}"


def _index(index: ShapeIndex) -> str:
    return "{" + ",".join(map(str, index)) + "}" if index else ""
