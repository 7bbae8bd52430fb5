"""What the html knows of a module: each instruction once, and which of them stand in which stage.

An instruction that several stages share, text and all, is one record; a computation whose list of
records stays the same is stored once too. So a slider over a hundred passes costs what they changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from mlirhlo.analysis.cost import analyse
from mlirhlo.debug.graph.model import Graph, Node, byte_size
from mlirhlo.debug.graph.texts import scheme_of, trivial_word
from mlirhlo.diagnostics import HloError

Record: TypeAlias = tuple[object, ...]

FIELDS = (
    "name", "opcode", "text", "shape", "operands", "control", "calls", "opName", "source",
    "sharding", "category", "bytes", "flops", "accessed", "note",
)  # fmt: skip
"""Fields of a record, in order; the viewer reads this list."""


@dataclass(slots=True)
class StageWriter:
    """Collects stages."""

    records: list[Record] = field(default_factory=list[Record])
    computations: list[Record] = field(default_factory=list[Record])
    stages: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    _record_numbers: dict[Record, int] = field(default_factory=dict[Record, int])
    _computation_numbers: dict[Record, int] = field(default_factory=dict[Record, int])

    def add(self, graph: Graph, label: str, file: str) -> None:
        """Adds the module at one moment."""
        numbers: list[int] = []
        by_index: dict[int, int] = {}
        fresh: list[tuple[int, Node]] = []
        for computation in graph.computations:
            # What an instruction costs depends on what it calls, though its text be the same.
            places = tuple(
                self._number(graph, graph.nodes[index], by_index, fresh)
                for index in computation.nodes
            )
            key = (
                computation.name,
                int(computation.is_entry),
                computation.nodes.index(computation.root) if computation.nodes else 0,
                trivial_word(graph, computation) or "",
                places,
            )
            number = _intern(key, self._computation_numbers, self.computations)
            by_index[computation.index] = number
            numbers.append(number)
        costs = _costs(graph) if fresh else {}
        for place, node in fresh:
            self.records[place] = _record(graph, node, costs)
        self.stages.append({"label": label, "file": file, "computations": numbers})

    def _number(
        self, graph: Graph, node: Node, called: dict[int, int], fresh: list[tuple[int, Node]]
    ) -> int:
        """The number of an instruction's record; the record of a new one is written later."""
        key = (
            graph.text(node),
            graph.source(node),
            _category(graph, node),
            *(called.get(index, -1) for index in node.calls),
        )
        number = self._record_numbers.setdefault(key, len(self.records))
        if number == len(self.records):
            self.records.append(())
            fresh.append((number, node))
        return number

    def data(self, title: str, module: str) -> dict[str, object]:
        """What the page carries."""
        return {
            "title": title,
            "module": module,
            "fields": FIELDS,
            "records": self.records,
            "computations": self.computations,
            "stages": self.stages,
        }


def _record(graph: Graph, node: Node, costs: Costs) -> Record:
    flops, accessed = costs.get(node.index, (0, 0))
    return (
        node.name,
        node.opcode,
        graph.text(node),
        str(node.shape),
        tuple(graph.nodes[index].name for index in node.operands),
        tuple(graph.nodes[index].name for index in node.control),
        tuple(graph.computations[index].name for index in node.calls),
        node.metadata.op_name,
        graph.source(node),
        str(node.op.sharding) if node.op.sharding is not None else "",
        _category(graph, node),
        byte_size(node.shape),
        flops,
        accessed,
        _note(node),
    )


def _category(graph: Graph, node: Node) -> str:
    return scheme_of(graph, node).name.lower().replace("_", "-")


Costs: TypeAlias = dict[int, tuple[float, float]]
"""Operations and bytes accessed, by node."""


def _costs(graph: Graph) -> Costs:
    try:
        counted = analyse(graph.module.op).instructions
    except (HloError, ValueError):
        return {}  # a graph of a module that is not whole is still worth looking at
    found: Costs = {}
    for node in graph.nodes:
        counts = counted.get(node.op)
        if counts is not None:
            flops = counts.get("flops") + counts.get("transcendentals")
            accessed = counts.get("bytes accessed")
            # A custom call counts -1: nobody knows.
            found[node.index] = (max(flops, 0), max(accessed, 0))
    return found


def _note(node: Node) -> str:
    """The one word about an instruction that its label has room for."""
    op = cast(Any, node.op)
    match node.opcode:
        case "parameter":
            return str(op.parameter_number)
        case "fusion":
            return str(op.kind)
        case "get-tuple-element":
            return str(op.index)
        case "compare":
            return str(op.direction)
        case "custom-call":
            return str(op.custom_call_target)
        case _:
            return ""


def _intern(key: Record, numbers: dict[Record, int], table: list[Record]) -> int:
    number = numbers.setdefault(key, len(table))
    if number == len(table):
        table.append(key)
    return number


def write_stages(
    graphs: Sequence[tuple[Graph, str, str]], title: str, module: str
) -> dict[str, object]:
    """Data of a page about `graphs`: graph, label and file name of each stage, oldest first."""
    writer = StageWriter()
    for graph, label, file in graphs:
        writer.add(graph, label, file)
    return writer.data(title, module)
