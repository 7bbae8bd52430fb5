"""Clusters become functions of the graph's library, and the graph calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlirhlo.formats.proto import tensorflow_graph_pb2 as tf_pb2
from mlirhlo.integrations.tensorflow.clustering.compilable import CALLS
from mlirhlo.integrations.tensorflow.clustering.graph import Graph, Node, signature
from mlirhlo.integrations.tensorflow.clustering.marking import CLUSTER
from mlirhlo.integrations.tensorflow.clustering.table import Argument, table


def encapsulate(graph: Graph) -> tf_pb2.GraphDef:
    """The graph with a function for each cluster of a marked graph, and a node that calls it."""
    clusters: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if name := node.text_attribute(CLUSTER):
            clusters.setdefault(name, []).append(node)
    result = tf_pb2.GraphDef()
    result.CopyFrom(graph.definition)
    del result.node[:]
    bodies = {name: _Body(graph, name, nodes) for name, nodes in clusters.items()}
    cluster_of = {node.name: name for name, nodes in clusters.items() for node in nodes}
    for node in graph.nodes:
        if node.name not in cluster_of:
            definition = result.node.add()
            definition.CopyFrom(node.definition)
            del definition.input[:]
            definition.input.extend(_outside(node.definition.input, cluster_of, bodies))
    for name, body in bodies.items():
        call = result.node.add(name=name, op=name, device=clusters[name][0].definition.device)
        call.input.extend(_outside(body.inputs, cluster_of, bodies))
        waits = [i for n in clusters[name] for i in n.definition.input if i.startswith("^")]
        outside = [w for w in dict.fromkeys(waits) if cluster_of.get(w[1:]) != name]
        call.input.extend(dict.fromkeys(_outside(outside, cluster_of, bodies)))
        call.attr["_XlaCompiledKernel"].b = True
        call.attr["_XlaNumResourceArgs"].i = body.argument_types.count("resource")
        result.library.function.append(body.function())
    return result


def _outside(
    inputs: Sequence[str], cluster_of: Mapping[str, str], bodies: Mapping[str, _Body]
) -> list[str]:
    """Inputs with the tensors of clusters as outputs of the nodes that call these."""
    result: list[str] = []
    for text in inputs:
        caret = "^" if text.startswith("^") else ""
        name, _, output = text.removeprefix("^").partition(":")
        cluster = cluster_of.get(name)
        if cluster is None:
            result.append(text)
        elif caret:
            result.append(f"^{cluster}")
        else:
            result.append(f"{cluster}:{bodies[cluster].outputs.index(f'{name}:{output or 0}')}")
    return list(dict.fromkeys(result)) if all(r.startswith("^") for r in result) else result


class _Body:
    """One cluster as a function."""

    def __init__(self, graph: Graph, name: str, nodes: Sequence[Node]) -> None:
        self.graph, self.name, self.nodes = graph, name, nodes
        own = {node.number for node in nodes}
        self.inputs: list[str] = []
        self.argument_types: list[str] = []
        for node in nodes:
            types = (signature(node.definition, graph.functions) or ([], []))[0]
            for at, (producer, output) in enumerate(node.inputs):
                tensor = f"{producer.name}:{output}"
                if producer.number not in own and tensor not in self.inputs:
                    self.inputs.append(tensor)
                    self.argument_types.append(types[at] if at < len(types) else "invalid")
        read = {
            f"{p.name}:{n}": None
            for node in graph.nodes
            if node.number not in own
            for p, n in node.inputs
            if p.number in own
        }
        self.outputs = list(read)

    def function(self) -> tf_pb2.FunctionDef:
        """The function: arguments for what is read from outside, results for what others read."""
        function = tf_pb2.FunctionDef()
        function.signature.name = self.name
        for number, kind in enumerate(self.argument_types):
            function.signature.input_arg.add(name=f"arg{number}", type=_number(kind))
        by_name = {node.name: node for node in self.nodes}
        for number, tensor in enumerate(self.outputs):
            name, _, output = tensor.partition(":")
            types = (signature(by_name[name].definition, self.graph.functions) or ([], []))[1]
            kind = types[int(output)] if int(output) < len(types) else "invalid"
            function.signature.output_arg.add(name=f"retval{number}", type=_number(kind))
            function.ret[f"retval{number}"] = self._inside(by_name[name], int(output))
        for node in self.nodes:
            definition = function.node_def.add()
            definition.CopyFrom(node.definition)
            del definition.input[:]
            for producer, index in node.inputs:
                is_own = producer.name in by_name
                argument = (
                    f"arg{self.inputs.index(f'{producer.name}:{index}')}" if not is_own else ""
                )
                definition.input.append(argument or self._inside(producer, index))
            definition.input.extend(f"^{c.name}" for c in node.controls if c.name in by_name)
        return function

    def _inside(self, node: Node, output: int) -> str:
        """`node:argument:index`, as functions name tensors."""
        for argument in self._results(node):
            count = _count(node.definition, argument)
            if output < count:
                return f"{node.name}:{argument.name}:{output}"
            output -= count
        return f"{node.name}:output:{output}"

    def _results(self, node: Node) -> Sequence[Argument]:
        if (function := self.graph.functions.get(node.op)) is not None:
            return [
                Argument(a.name, a.number_attr, a.type_attr) for a in function.signature.output_arg
            ]
        op = table().ops.get(node.op)
        return (
            op.outputs
            if op is not None and node.op not in CALLS
            else [Argument("output", "", "*Tout")]
        )


def _count(node: tf_pb2.NodeDef, argument: Argument) -> int:
    if argument.kind.startswith("*"):
        return len(node.attr[argument.kind[1:]].list.type)
    return node.attr[argument.number].i if argument.number else 1


def _number(kind: str) -> Any:
    return tf_pb2.DataType.Value(f"DT_{kind.upper()}")
