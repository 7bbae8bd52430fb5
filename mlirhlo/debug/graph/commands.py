"""What `hlo-view` answers in text: listings, facts, neighbourhoods, paths. One function a command.

Source of the commands: XLA's interactive_graphviz.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mlirhlo.debug.graph.costs import analyse_with_libraries
from mlirhlo.debug.graph.filters import Filter, Show
from mlirhlo.debug.graph.model import Computation, Graph, Node, byte_size, node_of
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text.options import PrintOptions
from mlirhlo.formats.hlo_text.printer import (
    ModulePrinter,
    print_computation,
    print_instruction,
)

FIELDS = ("name", "op_name", "op_type", "opcode", "source")
"""What `list` can look at."""


def listing(graph: Graph, pattern: str, field: str = "") -> list[Node]:
    """Instructions whose name, op_name, op_type, opcode or source line has `pattern`, in any case."""
    lowered = pattern.lower().removeprefix("%")
    found: list[Node] = []
    for node in graph.nodes:
        texts = {
            "name": node.name,
            "op_name": node.metadata.op_name,
            "op_type": node.metadata.op_type,
            "opcode": node.opcode,
            "source": graph.source(node),
        }
        looked_at = [texts[field]] if field else texts.values()
        if any(lowered in text.lower() for text in looked_at):
            found.append(node)
    return found


def summary(graph: Graph, node: Node) -> str:
    """One line of a listing."""
    parts = [f"{node.name}: {node.opcode} {node.shape.to_string(False)}"]
    parts += [f"op_name '{node.metadata.op_name}'"] if node.metadata.op_name else []
    source = graph.source(node)
    return ", ".join([*parts, source] if source else parts)


def facts(graph: Graph, node: Node) -> dict[str, object]:
    """Everything known of one instruction."""
    metadata = node.metadata
    found: dict[str, object] = {
        "name": node.name,
        "opcode": node.opcode,
        "computation": graph.computations[node.computation].name,
        "shape": str(node.shape),
        "bytes": byte_size(node.shape),
        "op_name": metadata.op_name,
        "op_type": metadata.op_type,
        "source": graph.source(node),
        "attributes": graph.attributes(node),
        "backend_config": node.op.backend_config,
        "operands": [summary(graph, graph.nodes[index]) for index in node.operands],
        "users": [summary(graph, graph.nodes[index]) for index in node.users],
        "calls": [graph.computations[index].name for index in node.calls],
    }
    return {key: value for key, value in found.items() if value not in ("", [])}


def computation_facts(graph: Graph, computation: Computation) -> dict[str, object]:
    """Everything known of one computation."""
    found: dict[str, object] = {
        "computation": computation.name,
        "is_entry": computation.is_entry,
        "instructions": len(computation.nodes),
        "root": graph.nodes[computation.root].name,
        "callers": [graph.nodes[index].name for index in computation.callers],
    }
    return {key: value for key, value in found.items() if value != []}


def statistics(graph: Graph) -> dict[str, object]:
    """Sizes, costs and opcodes of the module."""
    opcodes = Counter(node.opcode for node in graph.nodes)
    found: dict[str, object] = {
        "module": graph.module.name,
        "computations": len(graph.computations),
        "instructions": len(graph.nodes),
        "entry": graph.entry.name,
        "entry_instructions": len(graph.entry.nodes),
        "edges": sum(len(node.operands) for node in graph.nodes),
        "opcodes": dict(sorted(opcodes.items(), key=lambda row: (-row[1], row[0]))),
    }
    try:
        costs, unknown = analyse_with_libraries(graph.module.op)
    except (HloError, ValueError):
        return found
    if unknown:
        found["custom_calls_of_unknown_cost"] = len(unknown)
    return {
        **found,
        "flops": costs.flops,
        "transcendentals": costs.transcendentals,
        "bytes_accessed": costs.bytes_accessed,
    }


def text_of(graph: Graph, name: str) -> str:
    """HLO text of an instruction or a computation. Raises `HloError` HLO0541."""
    key = name.removeprefix("%")
    if key in graph.computation_by_name and key not in graph.node_by_name:
        return print_computation(graph.computation_by_name[key].op)
    return print_instruction(node_of(graph, name).op)


def part_text(graph: Graph, shown: Filter) -> Iterator[str]:
    """A neighbourhood or paths as lines of HLO text; `*` marks what was asked for, `~` the border."""
    printer = ModulePrinter(graph.module, PrintOptions(metadata=False, backend_config=False))
    for index, show in sorted(shown.shown.items()):
        node = graph.nodes[index]
        border = show not in (Show.NORMAL, Show.HIGHLIGHTED)
        mark = "*" if show is Show.HIGHLIGHTED else "~" if border else " "
        yield f"{mark} {printer.instruction_text(node.op, 0)}"
