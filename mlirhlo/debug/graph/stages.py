"""What the html knows of a module: each instruction once, and which of them stand in which stage.

An instruction that several stages share, text and all, is one record; a computation whose list of
records stays the same is stored once too. So a slider over a hundred passes costs what they changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from mlirhlo.debug.graph.colors import Scheme
from mlirhlo.debug.graph.costs import Cost, costs_of
from mlirhlo.debug.graph.model import Graph, Node, byte_size
from mlirhlo.debug.graph.texts import scheme_of, trivial_word
from mlirhlo.debug.match import (
    Interner,
    Kind,
    Listing,
    ListingBuilder,
    Row,
    Structure,
    label_of,
    match,
)

Record: TypeAlias = tuple[object, ...]

FIELDS = (
    "name", "opcode", "text", "shape", "operands", "control", "calls", "opName", "source",
    "sharding", "category", "bytes", "flops", "accessed", "unknown", "note",
)  # fmt: skip
"""Fields of a record, in order; the viewer reads this list."""

KINDS = tuple(kind.value for kind in Kind)
"""What the numbers of differences mean; the viewer reads this list too."""


@dataclass(slots=True)
class StageWriter:
    """Collects stages."""

    records: list[Record] = field(default_factory=list[Record])
    computations: list[Record] = field(default_factory=list[Record])
    stages: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    compares: bool = True
    """Whether stages are compared, each with the one before."""
    _latest: Structure | None = None
    _interner: Interner = field(default_factory=Interner)
    _record_numbers: dict[Record, int] = field(default_factory=dict[Record, int])
    _computation_numbers: dict[Record, int] = field(default_factory=dict[Record, int])

    def add(self, graph: Graph, label: str, file: str) -> None:
        """Adds the module at one stage, with what is different from the stage before."""
        numbers: list[int] = []
        texts = [graph.text(node) for node in graph.nodes]
        by_index: dict[int, int] = {}
        fresh: list[tuple[int, Node, Record]] = []
        for computation in graph.computations:
            # What an instruction costs depends on what it calls, though its text be the same.
            places = tuple(
                self._number(graph, graph.nodes[index], texts, by_index, fresh)
                for index in computation.nodes
            )
            shape = (
                computation.name,
                int(computation.is_entry),
                computation.root - computation.nodes[0] if computation.nodes else 0,
                trivial_word(graph, computation) or "",
                places,
            )
            number = _intern(shape, self._computation_numbers, self.computations)
            by_index[computation.index] = number
            numbers.append(number)
        costs = costs_of(graph) if fresh else {}
        shapes: dict[int, tuple[str, int]] = {}
        for place, node, key in fresh:
            self.records[place] = _record(graph, node, key, costs, shapes)
        self.stages.append(
            {
                "label": label,
                "file": file,
                "computations": numbers,
                "differences": self._differences(graph, texts),
            }
        )

    def _differences(self, graph: Graph, texts: Sequence[str]) -> list[tuple[int, int, int]]:
        """Kind and positions in the stage before and in this one of what is not the same; -1 for nowhere."""
        if not self.compares:
            return []
        before, now = self._latest, Structure(_listing(graph, texts), self._interner)
        self._latest = now
        if before is None:
            return []
        return [
            (
                KINDS.index(row.kind.value),
                -1 if row.before is None else row.before,
                -1 if row.after is None else row.after,
            )
            for row in match(before, now).differences
        ]

    def _number(
        self,
        graph: Graph,
        node: Node,
        texts: Sequence[str],
        called: dict[int, int],
        fresh: list[tuple[int, Node, Record]],
    ) -> int:
        """The number of an instruction's record; the record of a new one is written later."""
        key = (
            texts[node.index],
            graph.source(node),
            _category(graph, node),
            *(called.get(index, -1) for index in node.calls),
        )
        number = self._record_numbers.setdefault(key, len(self.records))
        if number == len(self.records):
            self.records.append(())
            fresh.append((number, node, key))
        return number

    def data(self, title: str, module: str) -> dict[str, object]:
        """What the page carries."""
        return {
            "title": title,
            "module": module,
            "fields": FIELDS,
            "kinds": KINDS,
            "records": self.records,
            "computations": self.computations,
            "stages": self.stages,
        }


def _listing(graph: Graph, texts: Sequence[str]) -> Listing:
    """The graph as the matcher takes it."""
    builder = ListingBuilder()
    for computation in graph.computations:
        rows = [
            Row(
                node.name,
                label_of(texts[node.index].partition(" = ")[2]),
                node.operands,
                computation.index,
                node.calls,
            )
            for node in (graph.nodes[index] for index in computation.nodes)
        ]
        builder.computation(computation.name, rows, computation.root, is_entry=computation.is_entry)
    return builder.build()


_UNKNOWN = Cost()


def _record(
    graph: Graph,
    node: Node,
    key: Record,
    costs: Mapping[int, Cost],
    shapes: dict[int, tuple[str, int]],
) -> Record:
    """Fields of an instruction; `shapes` has the texts and sizes of types that were met before, by `id`."""
    text, source, category = key[:3]
    cost = costs.get(node.index, _UNKNOWN)
    type_ = node.op.output.type
    shape = shapes.get(id(type_))
    if shape is None:
        shape = shapes[id(type_)] = str(node.shape), byte_size(node.shape)
    nodes, computations, op = graph.nodes, graph.computations, node.op
    return (
        node.name,
        node.opcode,
        text,
        shape[0],
        [nodes[index].name for index in node.operands],
        [nodes[index].name for index in node.control],
        [computations[index].name for index in node.calls],
        node.metadata.op_name,
        source,
        "" if op.sharding is None else str(op.sharding),
        category,
        shape[1],
        cost.operations,
        cost.accessed,
        cost.unknown,
        _note(node),
    )


_CATEGORIES = {scheme: scheme.name.lower().replace("_", "-") for scheme in Scheme}


def _category(graph: Graph, node: Node) -> str:
    return _CATEGORIES[scheme_of(graph, node)]


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
    writer = StageWriter(compares=len(graphs) > 1)
    for graph, label, file in graphs:
        writer.add(graph, label, file)
    return writer.data(title, module)
