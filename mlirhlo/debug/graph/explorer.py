"""JSON for Model Explorer: a collection of graphs, one a computation, calls as links to subgraphs.

Source of the schema: the classes of `model_explorer.graph_builder`, whose field names these are.
"""

from __future__ import annotations

import json
from typing import TypedDict

from mlirhlo.debug.graph.model import Computation, Graph, Node
from mlirhlo.debug.graph.texts import scheme_of


class _KeyValue(TypedDict):
    key: str
    value: str


class _Edge(TypedDict):
    sourceNodeId: str
    sourceNodeOutputId: str
    targetNodeInputId: str


class _Item(TypedDict):
    id: str
    attrs: list[_KeyValue]


class _Node(TypedDict):
    id: str
    label: str
    namespace: str
    subgraphIds: list[str]
    attrs: list[_KeyValue]
    incomingEdges: list[_Edge]
    outputsMetadata: list[_Item]
    style: dict[str, str]


def print_json(graph: Graph, label: str = "") -> str:
    """The file; Model Explorer opens it with its built-in JSON adapter. The entry comes first."""
    others = [c for c in graph.computations if c is not graph.entry]
    graphs = [_graph(graph, computation) for computation in (graph.entry, *others)]
    collection = {"label": label or graph.module.name, "graphs": graphs}
    return json.dumps(collection, ensure_ascii=False, indent=1) + "\n"


def _graph(graph: Graph, computation: Computation) -> dict[str, object]:
    nodes = [_node(graph, graph.nodes[index]) for index in computation.nodes]
    return {"id": computation.name, "nodes": nodes}


def _node(graph: Graph, node: Node) -> _Node:
    attributes = {"text": graph.text(node)}
    for text in graph.attributes(node):
        key, _, value = text.partition("=")
        attributes[key] = value
    metadata = node.metadata
    further = {
        "op_name": metadata.op_name,
        "op_type": metadata.op_type,
        "source": graph.source(node),
        "backend_config": node.op.backend_config,
    }
    attributes.update({key: value for key, value in further.items() if value})
    colors = scheme_of(graph, node).value
    return {
        "id": node.name,
        "label": node.opcode,
        # The last part of an op_name is the operation itself.
        "namespace": metadata.op_name.rpartition("/")[0],
        "subgraphIds": [graph.computations[callee].name for callee in node.calls],
        "attrs": _pairs(attributes),
        "incomingEdges": [
            {
                "sourceNodeId": graph.nodes[operand].name,
                "sourceNodeOutputId": "0",
                "targetNodeInputId": str(place),
            }
            for place, operand in enumerate(node.operands)
        ],
        "outputsMetadata": [
            {"id": "0", "attrs": _pairs({"name": node.name, "tensor_shape": str(node.shape)})}
        ],
        "style": {
            "backgroundColor": "#ffffff" if colors.fill == "white" else colors.fill,
            "borderColor": colors.stroke,
        },
    }


def _pairs(entries: dict[str, str]) -> list[_KeyValue]:
    return [{"key": key, "value": value} for key, value in entries.items()]
