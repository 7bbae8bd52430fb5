"""Marks the clusters of a graph, as TensorFlow's auto-clustering does.

    marking = mark(read_graph(Path("before_mark_for_compilation.pbtxt")), parse_flags("--tf_xla_auto_jit=2 …"))
    marking.clusters          # {"cluster_0": ["matmul", "Relu", …]}
    marking.reasons["Print"]  # why a node is not compiled

A node may be compiled when XLA has code for it, by its operation and types; single nodes become
clusters, which join along edges while nothing forbids it: a cycle through a node outside, other
devices, conditions or scopes, the order of reads and writes of variables, the greatest size. Clusters
below the smallest size are left to TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from mlirhlo.analysis.clustering import Clustering, OrderedGraph
from mlirhlo.formats.proto import tensorflow_graph_pb2 as tf_pb2
from mlirhlo.integrations.tensorflow.clustering.compilable import (
    Compilability,
    calls_functions,
    must_be_constant,
)
from mlirhlo.integrations.tensorflow.clustering.deadness import (
    TRUE,
    Predicate,
    loop_frames,
    predicates,
)
from mlirhlo.integrations.tensorflow.clustering.devices import device_for, device_type
from mlirhlo.integrations.tensorflow.clustering.flags import Flags
from mlirhlo.integrations.tensorflow.clustering.graph import Graph, Node, signature
from mlirhlo.integrations.tensorflow.clustering.resources import unsafe_pairs
from mlirhlo.integrations.tensorflow.clustering.table import table

CLUSTER = "_XlaCluster"
"""The attribute with the name of a node's cluster."""
_ALREADY = "_XlaAlreadyClustered"
_SHAPE_READERS = ("Shape", "Rank", "Size")
_FIRST = 2
"""Node 0 of the graph that finds cycles is the source of all nodes, node 1 their sink."""


@dataclass(slots=True)
class Cluster:
    """A cluster while it grows."""

    nodes: list[Node]
    effective_size: int
    has_control_flow: bool
    devices: frozenset[str]
    resource_device: str | None
    resources: list[int]
    """Nodes that read or write variables, or may."""
    predicate: Predicate
    must_compile: bool
    scope: str

    def merged(self, other: Cluster) -> Cluster:
        """Both, as one cluster."""
        return Cluster(
            [*self.nodes, *other.nodes],
            self.effective_size + other.effective_size,
            self.has_control_flow or other.has_control_flow,
            self.devices | other.devices,
            self.resource_device or other.resource_device,
            [*self.resources, *other.resources],
            self.predicate,
            self.must_compile or other.must_compile,
            self.scope or other.scope,
        )


@dataclass(frozen=True)
class Marking:
    """A graph whose clusters are known."""

    graph: Graph
    """The graph with attributes `_XlaCluster`."""
    clusters: Mapping[str, Sequence[str]]
    """Names of the nodes of each cluster, in the graph's order."""
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    """For each node outside of clusters, why."""


def mark(graph: Graph, flags: Flags | None = None) -> Marking:
    """The graph with its clusters marked; one that has marks already is left as it is.

    Raises `HloError` HLO0631 when the flags name operations that XLA does not know.
    """
    return _Marker(graph, flags or Flags()).run()


class _Marker:
    def __init__(self, graph: Graph, flags: Flags) -> None:
        self.graph, self.flags = graph, flags
        self.reasons: dict[str, str] = {}
        self.unsafe: set[tuple[int, int]] = set()
        self.clusters: Clustering[Cluster]

    def run(self) -> Marking:
        if any(_ALREADY in node.definition.attr for node in self.graph.nodes):
            return Marking(self.graph, _named(self.graph))
        candidates = self.candidates()
        cycles = cycle_graph(self.graph)
        if not candidates or cycles is None:
            return Marking(self.graph, {}, self.reasons)
        if not self.flags.disable_resource_variable_safety_checks_for_debugging:
            self.unsafe = unsafe_pairs(self.graph)
        is_alive: list[Predicate] = [TRUE] * len(self.graph.nodes)
        if not self.flags.disable_deadness_safety_checks_for_debugging:
            is_alive = predicates(self.graph)
        single = {n.number + _FIRST: self.single(n, is_alive[n.number]) for n in candidates}
        self.clusters = Clustering(cycles, single, Cluster.merged)
        self.contract()
        return self.marked(candidates)

    def candidates(self) -> list[Node]:
        """Nodes that may be clustered, in order."""
        flags = self.flags
        compilability = Compilability(self.graph.functions, flags.cluster_exclude_ops != "Where")
        constant = must_be_constant(self.graph)
        allowed = flags.allowed
        users = self.graph.users()
        result: list[Node] = []
        for node in self.graph.nodes:
            op = table().ops.get(node.op)
            if len(result) >= flags.clustering_fuel:
                reason = "no fuel left"
            elif self.attribute(node, "_XlaCompile") is False:
                reason = "_XlaCompile is false"
            elif not self.should_compile(self.must_compile(node), node.definition.device):
                reason = f"auto-clustering is off on {device_type(node.definition.device)}"
            elif reason := compilability.reason_against(node):
                pass
            elif allowed and node.op not in allowed:
                reason = "not listed in --tf_xla_ops_to_cluster"
            elif node.number in constant and op is not None and op.is_stateful:
                reason = "stateful, and its value is needed while compiling"
            elif _drives_constants_of_loop(node, users[node.number]):
                reason = "joins condition and body of a loop"
            else:
                result.append(node)
            if reason:
                self.reasons[node.name] = reason
        return result

    def attribute(self, node: Node, name: str) -> bool | None:
        """An attribute of the node or else of the function that it calls."""
        if (value := node.bool_attribute(name)) is not None:
            return value
        called = (
            node.op
            if node.op in self.graph.functions
            else node.definition.attr["f"].func.name
            if "f" in node.definition.attr
            else ""
        )
        function = self.graph.functions.get(called)
        return function.attr[name].b if function is not None and name in function.attr else None

    def must_compile(self, node: Node) -> bool:
        """Whether the node is marked to be compiled, whatever the size of its cluster."""
        marked = bool(self.attribute(node, "_XlaCompile"))
        return marked or (self.flags.auto_jit > 0 and bool(self.attribute(node, "_XlaMustCompile")))

    def should_compile(self, must_compile: bool, device: str) -> bool:
        """Whether nodes of a device are clustered at all."""
        kind = device_type(device)
        if kind not in ("CPU", "GPU"):
            return False
        by_flags = self.flags.auto_jit > 0 and (kind == "GPU" or self.flags.cpu_global_jit)
        return must_compile or by_flags

    def single(self, node: Node, predicate: Predicate) -> Cluster:
        """The cluster of one node."""
        inputs, outputs = signature(node.definition, self.graph.functions) or ([], [])
        has_resource = "resource" in inputs or "resource" in outputs
        touches = has_resource or calls_functions(node, self.graph)
        device = node.definition.device
        scope = "_XlaInternalScope" if self.flags.auto_jit > 0 else "_XlaScope"
        return Cluster(
            [node],
            0 if node.op in ("Identity", "Const") else 1,
            node.op in ("While", "StatelessWhile", "If", "StatelessIf"),
            frozenset([device]),
            device if has_resource else None,
            [node.number] if touches else [],
            predicate,
            self.must_compile(node),
            node.text_attribute(scope),
        )

    def contract(self) -> None:
        """Joins clusters: readers of shapes with what they read first, nodes that only wait last."""
        clusters = self.clusters
        users = self.graph.users()

        def reads_shape(_: int, target: int) -> bool:
            nodes = clusters.values[target].nodes
            return len(nodes) == 1 and nodes[0].op in _SHAPE_READERS

        def is_ordinary(source: int, target: int) -> bool:
            last = clusters.values[target].nodes
            if len(last) == 1 and last[0].op == "NoOp" and not users[last[0].number]:
                return False
            return not _counts_steps(clusters.values[source].nodes)

        for condition in (reads_shape, is_ordinary):
            clusters.contract(partial(self.joins_where, condition))
        clusters.grow(self.may_join)

    def joins_where(self, condition: Callable[[int, int], bool], source: int, target: int) -> bool:
        """Whether two clusters may be one, under a further condition."""
        return condition(source, target) and self.may_join(source, target)

    def may_join(self, source: int, target: int) -> bool:
        """Whether two clusters may be one, cycles aside."""
        a, b = self.clusters.values[source], self.clusters.values[target]
        if a.predicate != b.predicate or (a.scope and b.scope and a.scope != b.scope):
            return False
        if not _fit(a, b) or len(a.nodes) + len(b.nodes) > self.flags.max_cluster_size:
            return False
        for node in self.clusters.graph.predecessors(target):
            other = self.clusters.values.get(node)
            if other is not None and not (_fit(b, other) and _fit(a, other)):
                return False
        return not any((x, y) in self.unsafe for x in a.resources for y in b.resources)

    def marked(self, candidates: Sequence[Node]) -> Marking:
        """The graph with names of clusters at its nodes."""
        definition = tf_pb2.GraphDef()
        definition.CopyFrom(self.graph.definition)
        clusters = {n.number: c for c in self.clusters.values.values() for n in c.nodes}
        users = self.graph.users()
        names: dict[int, str] = {}
        for node in candidates:
            cluster = clusters[node.number]
            device = device_for(cluster.devices)
            if device is None or not self.should_compile(cluster.must_compile, device):
                self.reasons[node.name] = "auto-clustering is off on its cluster's device"
            elif (
                node.op == "Fill"
                and users[node.number]
                and all(clusters.get(user.number) is not cluster for user in users[node.number])
            ):
                self.reasons[node.name] = "a Fill that only others read"
            elif not self.is_worth_it(cluster):
                self.reasons[node.name] = (
                    f"its cluster has {cluster.effective_size} of at least {self.flags.min_cluster_size} operations"
                )
            else:
                name = names.setdefault(id(cluster), f"cluster_{len(names)}")
                attributes = definition.node[node.number].attr
                attributes[CLUSTER].s = name.encode()
                attributes[_ALREADY].b = True
        graph = Graph.of(definition)
        return Marking(graph, _named(graph), self.reasons)

    def is_worth_it(self, cluster: Cluster) -> bool:
        return (
            cluster.effective_size >= self.flags.min_cluster_size
            or cluster.has_control_flow
            or cluster.must_compile
        )


def _named(graph: Graph) -> dict[str, list[str]]:
    clusters: dict[str, list[str]] = {}
    for node in graph.nodes:
        if name := node.text_attribute(CLUSTER):
            clusters.setdefault(name, []).append(node.name)
    return clusters


def _fit(a: Cluster, b: Cluster) -> bool:
    """Whether the devices of two clusters go together."""
    device = device_for(a.devices | b.devices)
    return device is not None and all(
        fixed in (None, device) for fixed in (a.resource_device, b.resource_device)
    )


def _counts_steps(nodes: Sequence[Node]) -> bool:
    """Whether a cluster only adds a constant to an integer variable, as steps are counted."""
    if len(nodes) != 1 or nodes[0].op not in ("AssignAddVariableOp", "AssignSubVariableOp"):
        return False
    node = nodes[0]
    kind = tf_pb2.DataType.Name(node.definition.attr["dtype"].type)
    constants = [p.definition for p, _ in node.inputs if p.op == "Const"]
    is_integer = kind.removeprefix("DT_U").removeprefix("DT_").startswith("INT")
    return is_integer and any(not c.attr["value"].tensor.tensor_shape.dim for c in constants)


def _drives_constants_of_loop(node: Node, users: Sequence[Node]) -> bool:
    """Whether an identity of a loop's condition only makes constants of its body wait."""
    if node.op != "Identity" or not node.inputs:
        return False
    switch, output = node.inputs[0]
    if switch.op != "Switch" or output != 1 or switch.inputs[1][0].op != "LoopCond":
        return False
    return any(user.op == "Const" and node in user.controls for user in users)


def cycle_graph(graph: Graph) -> OrderedGraph | None:
    """The graph in which cycles are looked for: a loop is one node of the graph around it, its own edges back are cut.

    None for a graph whose loops cannot be told from what is around them.
    """
    cycles = OrderedGraph(len(graph.nodes) + _FIRST)
    frames = loop_frames(graph)
    frame_nodes: dict[str, int] = {}

    def frame_node(node: Node) -> int:
        frame = frames[node.number]
        if node.op == "Exit":
            frame = next((frames[p.number] for p, _ in node.inputs), frame)
        if frame not in frame_nodes:
            frame_nodes[frame] = cycles.new_node()
        return frame_nodes[frame]

    users = graph.users()
    for node in graph.nodes:
        for producer in node.producers:
            if producer.op == "NextIteration":
                continue
            source, target = producer.number + _FIRST, node.number + _FIRST
            if producer.op == "Exit":
                source = frame_node(producer)
            if node.op == "Enter":
                target = frame_node(node)
            if not cycles.insert(source, target):
                return None
    for node in graph.nodes:
        if not node.producers:
            cycles.insert(0, node.number + _FIRST)
        if not users[node.number]:
            cycles.insert(node.number + _FIRST, 1)
    return cycles


def annotated(marking: Marking) -> Graph:
    """The graph for viewing: names begin with the cluster, `unclustered/` or `varhandle/`."""
    definition = tf_pb2.GraphDef()
    definition.CopyFrom(marking.graph.definition)
    names: dict[str, str] = {}
    for node in marking.graph.nodes:
        other = "varhandle" if node.op == "VarHandleOp" else "unclustered"
        names[node.name] = f"{node.text_attribute(CLUSTER) or other}/{node.name}"
    for renamed in definition.node:
        renamed.name = names[renamed.name]
        for at, text in enumerate(renamed.input):
            caret = "^" if text.startswith("^") else ""
            name, colon, output = text.removeprefix("^").partition(":")
            renamed.input[at] = f"{caret}{names[name]}{colon}{output}"
    return Graph.of(definition)


__all__ = ["CLUSTER", "Flags", "Marking", "annotated", "mark"]
