"""A marked graph as parts that run one after another: each cluster, and what lies between clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlirhlo.diagnostics import error
from mlirhlo.formats.proto import tensorflow_graph_pb2 as tf_pb2
from mlirhlo.integrations.tensorflow.clustering.compilable import must_be_constant
from mlirhlo.integrations.tensorflow.clustering.graph import Graph, Node
from mlirhlo.integrations.tensorflow.clustering.marking import CLUSTER

FEEDS = ("Placeholder", "_Arg")


@dataclass(frozen=True)
class Segment:
    """Nodes that run together."""

    cluster: str
    """The name of the cluster; empty for nodes that TensorFlow runs."""
    nodes: Sequence[Node]
    inputs: Sequence[str]
    """Tensors of other segments and feeds that it reads: `name:0`."""
    outputs: Sequence[str]
    """Its tensors that others, or the caller, read."""

    def graph_def(self, library: tf_pb2.FunctionDefLibrary) -> tf_pb2.GraphDef:
        """The nodes as a graph; edges of control from other segments are left out, as those have run."""
        own = {node.name for node in self.nodes}
        result = tf_pb2.GraphDef()
        result.library.CopyFrom(library)
        for node in self.nodes:
            definition = result.node.add()
            definition.CopyFrom(node.definition)
            kept = [i for i in node.definition.input if not i.startswith("^") or i[1:] in own]
            del definition.input[:]
            definition.input.extend(kept)
        return result


def segments(graph: Graph, fetches: Sequence[str], targets: Iterable[str] = ()) -> list[Segment]:
    """The parts of a marked graph that compute `fetches` (tensors, `name:0`) and run the nodes `targets`.

    Raises `HloError` HLO0630 for fetches that are not in the graph, and for loops of `Enter` and `Exit`
    around clusters, which only TensorFlow's executor can run.
    """
    units = _Units(graph, fetches, targets)
    order: list[tuple[str, list[Node]]] = []
    while units.remaining:
        if rest := units.take_ready(""):
            order.append(("", rest))
        ready = sorted({u.cluster for u in units.ready() if u.cluster})
        if not rest and not ready:
            raise error(
                "HLO0630", "the graph has loops of single operations, which only TensorFlow can run"
            )
        order += [(name, units.take_ready(name)) for name in ready]
    return [_segment(graph, name, nodes, fetches) for name, nodes in order]


@dataclass(slots=True)
class _Unit:
    cluster: str
    nodes: list[Node]
    waits_for: set[int]
    """Numbers of nodes of other units that have not run."""


class _Units:
    """Clusters and single nodes that still have to run."""

    def __init__(self, graph: Graph, fetches: Sequence[str], targets: Iterable[str]) -> None:
        needed = _needed(graph, [*(name.partition(":")[0] for name in fetches), *targets])
        by_name: dict[str, _Unit] = {}
        feeds = {node.number for node in graph.nodes if node.op in FEEDS}
        for node in needed:
            if node.number in feeds:
                continue
            cluster = node.text_attribute(CLUSTER)
            key = f"cluster {cluster}" if cluster else f"node {node.name}"
            by_name.setdefault(key, _Unit(cluster, [], set())).nodes.append(node)
        for unit in by_name.values():
            own = {node.number for node in unit.nodes}
            producers = {p.number for node in unit.nodes for p in node.producers}
            unit.waits_for = producers - own - feeds
        self.remaining = list(by_name.values())

    def ready(self) -> list[_Unit]:
        """Units that wait for nothing."""
        return [unit for unit in self.remaining if not unit.waits_for]

    def take_ready(self, cluster: str) -> list[Node]:
        """Takes a cluster, or all single nodes that can run one after another."""
        taken: list[Node] = []
        while units := [unit for unit in self.ready() if unit.cluster == cluster]:
            nodes = [node for unit in units for node in unit.nodes]
            taken += nodes
            done = {node.number for node in nodes}
            gone = {id(unit) for unit in units}
            self.remaining = [unit for unit in self.remaining if id(unit) not in gone]
            for unit in self.remaining:
                unit.waits_for -= done
        return sorted(taken, key=lambda node: node.number)


def _needed(graph: Graph, names: Iterable[str]) -> list[Node]:
    by_name = {node.name: node for node in graph.nodes}
    work: list[Node] = []
    for name in names:
        if name not in by_name:
            raise error("HLO0630", f"'{name}', which is fetched, is no node of the graph")
        work.append(by_name[name])
    seen: set[int] = set()
    while work:
        node = work.pop()
        if node.number not in seen:
            seen.add(node.number)
            work += node.producers
    return [node for node in graph.nodes if node.number in seen]


def _segment(graph: Graph, name: str, nodes: list[Node], fetches: Sequence[str]) -> Segment:
    own = {node.number for node in nodes}
    inputs = {f"{p.name}:{n}" for node in nodes for p, n in node.inputs if p.number not in own}
    names = {node.name for node in nodes}
    read = {
        f"{p.name}:{n}"
        for node in graph.nodes
        if node.number not in own
        for p, n in node.inputs
        if p.number in own
    }
    read |= {tensor for tensor in fetches if tensor.partition(":")[0] in names}
    return Segment(name, nodes, sorted(inputs), sorted(read))


def constant_inputs(segment: Segment) -> list[int]:
    """Numbers of the inputs of a segment whose values are needed while it is compiled."""
    graph_def = segment.graph_def(tf_pb2.FunctionDefLibrary())
    for node in graph_def.node:
        for at, name in enumerate(node.input):
            full = name if ":" in name else f"{name}:0"
            if full in segment.inputs:
                node.input[at] = f"input/{segment.inputs.index(full)}"
    for number in range(len(segment.inputs)):
        graph_def.node.add(name=f"input/{number}", op="Placeholder")
    graph = Graph.of(graph_def)
    constant = must_be_constant(graph)
    first = len(segment.nodes)
    return [number for number in range(len(segment.inputs)) if number + first in constant]
