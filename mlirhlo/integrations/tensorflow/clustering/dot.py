"""Graphs of auto-clustering for Graphviz: clusters are boxes, edges of control are dotted."""

from __future__ import annotations

import json
from pathlib import Path

from mlirhlo.debug.index.foreign_names import foreign
from mlirhlo.integrations.tensorflow.clustering.graph import Graph, read_graph
from mlirhlo.integrations.tensorflow.clustering.marking import CLUSTER


def dump_as_dot(path: str) -> list[tuple[str, str]]:
    """Name and dot text of a file with a name of TensorFlow's graph dumps; nothing for other files.

    Raises `HloError` as `read_graph`.
    """
    file = Path(path)
    if foreign(file.stem, file.suffix).kind != "tensorflow" or not file.is_file():
        return []
    return [(file.name, dot_text(read_graph(file)))]


def dot_text(graph: Graph) -> str:
    """The graph, with the nodes of a cluster (`_XlaCluster`) in a box."""
    clusters: dict[str, list[str]] = {}
    for node in graph.nodes:
        label = json.dumps(f"{node.op}\n{node.name}")
        clusters.setdefault(node.text_attribute(CLUSTER), []).append(
            f"n{node.number} [label={label}]"
        )
    lines = ["digraph {", "node [shape=box, style=rounded]", *clusters.pop("", ())]
    for name, nodes in clusters.items():
        head = f"subgraph {json.dumps(f'cluster {name}')} {{ label={json.dumps(name)}; style=filled; color=lightblue"
        lines += [head, *nodes, "}"]
    for node in graph.nodes:
        lines += [f"n{p.number} -> n{node.number}" for p, _ in node.inputs]
        lines += [f"n{p.number} -> n{node.number} [style=dotted]" for p in node.controls]
    return "".join(f"{line}\n" for line in [*lines, "}"])
