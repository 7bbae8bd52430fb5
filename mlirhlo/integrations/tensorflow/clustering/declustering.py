"""What auto-clustering changes of a marked graph before its clusters become functions.

Slices of constant sizes get a form whose shape depends on the size alone (`increase_dynamism`). Then nodes leave
their clusters (`decluster`): copies of those whose results others expect in host memory, what only computes values
that are needed while compiling, and what reads only the shape of something outside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mlirhlo.formats.proto import tensorflow_graph_pb2 as tf_pb2
from mlirhlo.integrations.tensorflow.clustering.compilable import must_be_constant
from mlirhlo.integrations.tensorflow.clustering.graph import Graph, Node, signature
from mlirhlo.integrations.tensorflow.clustering.marking import CLUSTER
from mlirhlo.integrations.tensorflow.clustering.order import reverse_post_order
from mlirhlo.integrations.tensorflow.clustering.slices import increase_dynamism
from mlirhlo.integrations.tensorflow.clustering.table import Argument, table

_SHAPE_READERS = ("Shape", "Rank", "Size")


def final_clusters(graph: Graph, kept: Collection[str] = ()) -> Graph:
    """A marked graph as its clusters are compiled. `kept`: nodes that stay although no node reads them."""
    return decluster(increase_dynamism(graph, kept), kept)


def decluster(graph: Graph, kept: Collection[str] = ()) -> Graph:
    """The graph with fewer nodes in its clusters."""
    definition = tf_pb2.GraphDef()
    definition.CopyFrom(graph.definition)
    _copy_for_hosts(Graph.of(definition), definition, kept)
    result = Graph.of(definition)
    constant = must_be_constant(result, _are_together)
    order = reverse_post_order(result)
    for node in order:
        if node.number in constant and _is_root(node) and _may_leave(node, result):
            del node.definition.attr[CLUSTER]
    for node in order:
        if node.op in _SHAPE_READERS and node.text_attribute(CLUSTER) and _is_root(node):
            del node.definition.attr[CLUSTER]
    return result


def _are_together(producer: Node, user: Node) -> bool:
    cluster = user.text_attribute(CLUSTER)
    return bool(cluster) and cluster == producer.text_attribute(CLUSTER)


def _is_root(node: Node) -> bool:
    """Whether no node of its cluster comes before it."""
    return not any(_are_together(producer, node) for producer in node.producers)


def _may_leave(node: Node, graph: Graph) -> bool:
    """Whether TensorFlow can run the node; constants leave only where they wait for another device."""
    if node.op == "Const":
        devices = {producer.definition.device for producer in node.producers}
        return bool(devices - {"", node.definition.device})
    return node.op not in table().xla_only and node.op not in graph.functions


def _copy_for_hosts(graph: Graph, definition: tf_pb2.GraphDef, kept: Collection[str]) -> None:
    """Copies nodes out of their clusters that others read in host memory."""
    users = graph.users()
    order = reverse_post_order(graph)[::-1]
    leaving: dict[int, Node] = {}
    for node in order:
        cluster = node.text_attribute(CLUSTER)
        inputs, outputs = signature(node.definition, graph.functions) or ([], [])
        if not cluster or "resource" in inputs or "resource" in outputs:
            continue
        on_host = host_results(node, graph)
        for user in users[node.number] if on_host else ():
            is_outside = user.number in leaving or user.text_attribute(CLUSTER) != cluster
            if is_outside and any(
                producer is node and output in on_host and at in host_arguments(user, graph)
                for at, (producer, output) in enumerate(user.inputs)
            ):
                leaving[node.number] = node
                break
    for node in leaving.values():
        _copy_out(node.definition, definition, kept)


def _copy_out(node: tf_pb2.NodeDef, definition: tf_pb2.GraphDef, kept: Collection[str]) -> None:
    copy = definition.node.add()
    copy.CopyFrom(node)
    copy.name = f"{node.name}/declustered"
    del copy.attr[CLUSTER]
    is_read = node.name in kept
    for user in definition.node:
        is_outside = CLUSTER not in user.attr or user.attr[CLUSTER].s != node.attr[CLUSTER].s
        for at, text in enumerate(user.input):
            name, _, output = text.partition(":")
            if name == node.name and is_outside:
                user.input[at] = f"{copy.name}:{output}" if output else copy.name
            else:
                is_read = is_read or name.removeprefix("^") == node.name
    if not is_read:
        definition.node.remove(node)


def host_results(node: Node, graph: Graph) -> set[int]:
    """Numbers of the results that TensorFlow's kernel on CPUs leaves in host memory."""
    row = table().host_memory.get(node.op)
    if node.op in graph.functions:
        return _integers((signature(node.definition, graph.functions) or ([], []))[1])
    return _numbers(node.definition, row.outputs, row.names) if row is not None else set()


def host_arguments(node: Node, graph: Graph) -> set[int]:
    """Numbers of the arguments that TensorFlow's kernel on CPUs expects in host memory."""
    row = table().host_memory.get(node.op)
    if node.op in graph.functions:
        return _integers((signature(node.definition, graph.functions) or ([], []))[0])
    return _numbers(node.definition, row.inputs, row.names) if row is not None else set()


def _integers(types: Sequence[str]) -> set[int]:
    """What functions, which have no kernel, are taken to have in host memory."""
    return {number for number, kind in enumerate(types) if kind == "int32"}


def _numbers(
    node: tf_pb2.NodeDef, arguments: Iterable[Argument], names: Collection[str]
) -> set[int]:
    found: set[int] = set()
    at = 0
    for argument in arguments:
        if argument.kind.startswith("*"):
            count = len(node.attr[argument.kind[1:]].list.type)
        else:
            count = node.attr[argument.number].i if argument.number else 1
        if argument.name in names:
            found.update(range(at, at + count))
        at += count
    return found


__all__ = ["decluster", "final_clusters"]
