"""Which nodes XLA has code for, and why not the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlirhlo.formats.proto import tensorflow_graph_pb2 as tf_pb2
from mlirhlo.integrations.tensorflow.clustering.graph import (
    Graph,
    Node,
    signature,
    type_name,
)
from mlirhlo.integrations.tensorflow.clustering.table import table

MAX_DEPTH = 50
"""Functions that call functions, at most; TensorFlow's limit on recursion."""

CALLS = ("PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient")
"""Operations that call the function of their attribute `f`."""

_BODIES: Mapping[str, Sequence[str]] = {
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
    "While": ("cond", "body"),
    "StatelessWhile": ("cond", "body"),
    "Case": ("branches",),
    "StatelessCase": ("branches",),
}
"""Attributes with the functions of control flow."""


@dataclass(frozen=True, slots=True)
class Compilability:
    """Asks whether XLA compiles nodes of a graph and the functions that they call."""

    functions: Mapping[str, tf_pb2.FunctionDef]
    allows_where: bool = True

    def reason_against(self, node: Node, depth: int = 0) -> str:
        """Why the node is not compiled; empty when it is."""
        definition = node.definition
        if depth == 0 and node.op in ("_Arg", "_Retval", "Placeholder"):
            return "feed or fetch"
        if "_scoped_allocator" in definition.attr or "_forward_from" in definition.attr:
            return "memory that it shares"
        if node.op in self.functions or node.op in CALLS:
            if reason := self._call(definition, node.op, "f", depth):
                return reason
        elif reason := self._kernel(node):
            return reason
        for attribute in _BODIES.get(node.op, ()):
            if reason := self._call(definition, "", attribute, depth):
                return reason
        known = table()
        if node.op in known.excluded:
            return known.excluded[node.op]
        if node.op == "Where" and not self.allows_where:
            return "excluded by --tf_xla_cluster_exclude_ops"
        inputs, outputs = signature(definition, self.functions) or ([], [])
        if "variant" in inputs or "variant" in outputs:
            return "variant values"
        if depth > 0 and "resource" in inputs:
            return "variable in a function that is called"
        return ""

    def _kernel(self, node: Node) -> str:
        definition = node.definition
        op = table().ops.get(node.op)
        if op is None:
            return f"XLA has no {node.op}"
        if node.op == "Const" and type_name(definition.attr["dtype"].type) == "string":
            return "a string"
        if node.op == "Identity" and any(p.op in table().references for p, _ in node.inputs):
            return "a reference to a variable"
        for name, allowed in op.types.items():
            if name in definition.attr:
                attribute = definition.attr[name]
                for number in [attribute.type, *attribute.list.type]:
                    kind = type_name(number)
                    if number and kind not in allowed:
                        return f"XLA has no {node.op} of {kind}"
        return ""

    def _call(self, definition: tf_pb2.NodeDef, op: str, attribute: str, depth: int) -> str:
        if depth >= MAX_DEPTH:
            return "functions are nested too deeply"
        if op in self.functions:
            names = [op]
        else:
            value = definition.attr[attribute]
            names = [f.name for f in value.list.func] or [value.func.name]
        for name in names:
            function = self.functions.get(name)
            if function is None:
                return f"no function '{name}' in the library"
            for inner in nodes_of_function(function):
                if reason := self.reason_against(inner, depth + 1):
                    return f"{inner.name} in {name}: {reason}"
        return ""


def nodes_of_function(function: tf_pb2.FunctionDef) -> list[Node]:
    """The nodes of a function's body, without their edges, which name outputs by argument."""
    return [Node(number, definition) for number, definition in enumerate(function.node_def)]


def must_be_constant(
    graph: Graph, follows: Callable[[Node, Node], bool] = lambda producer, user: True
) -> set[int]:
    """Numbers of the nodes whose values are needed while something is compiled.

    `follows`: whether the need goes from a user to a producer.
    """
    known = table()
    metadata = {"Shape", "ShapeN", "Rank", "Size", "VariableShape"}
    work: list[Node] = []
    for node in graph.nodes:
        names = known.constant_inputs.get(node.op)
        op = known.ops.get(node.op)
        if names is None or op is None:
            continue
        at = 0
        for argument in op.inputs:
            count = node.definition.attr[argument.number].i if argument.number else 1
            if argument.name in names:
                needed = [producer for producer, _ in node.inputs[at : at + count]]
                work += [producer for producer in needed if follows(producer, node)]
            at += count
    result: set[int] = set()
    while work:
        node = work.pop()
        if node.number not in result:
            result.add(node.number)
            if node.op not in metadata:
                work += [producer for producer, _ in node.inputs if follows(producer, node)]
    return result


def calls_functions(node: Node, graph: Graph) -> bool:
    """Whether the node may call a function of the library."""
    return node.op in graph.functions or any(
        value.HasField("func") for value in node.definition.attr.values()
    )


__all__ = ["Compilability", "calls_functions", "must_be_constant", "nodes_of_function"]
