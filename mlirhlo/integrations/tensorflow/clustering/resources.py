"""Pairs of operations on variables that one cluster would run in another order.

A cluster reads all its variables first and writes them last. So an operation that writes and one that
reads after it, along a path of the graph, stay in different clusters.
"""

from __future__ import annotations

from mlirhlo.integrations.tensorflow.clustering.compilable import calls_functions
from mlirhlo.integrations.tensorflow.clustering.devices import device_type
from mlirhlo.integrations.tensorflow.clustering.graph import Graph
from mlirhlo.integrations.tensorflow.clustering.order import reverse_post_order
from mlirhlo.integrations.tensorflow.clustering.table import table


def unsafe_pairs(graph: Graph) -> set[tuple[int, int]]:
    """Numbers of nodes, the earlier first, that must not share a cluster."""
    kinds = table().resources
    reaching: list[frozenset[tuple[int, str]]] = [frozenset()] * len(graph.nodes)
    pairs: set[tuple[int, int]] = set()
    for node in reverse_post_order(graph):
        sources = {
            p.number for p in node.producers if p.op != "NextIteration" or node.op != "Merge"
        }
        before = frozenset[tuple[int, str]]().union(*(reaching[number] for number in sources))
        kind = kinds.get(node.op) or ("modify" if calls_functions(node, graph) else "")
        if kind and device_type(node.definition.device) in ("CPU", "GPU"):
            if kind != "write":
                pairs |= {(number, node.number) for number, _ in before}
            if kind != "read":
                before |= {(node.number, kind)}
        reaching[node.number] = before
    return pairs
