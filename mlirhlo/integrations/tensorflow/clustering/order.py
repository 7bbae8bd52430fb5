"""Orders of the nodes of a graph."""

from __future__ import annotations

from mlirhlo.integrations.tensorflow.clustering.graph import Graph, Node


def reverse_post_order(graph: Graph) -> list[Node]:
    """Producers before users, except along the edges that close loops (from `NextIteration`)."""
    order: list[Node] = []
    seen: set[int] = set()
    for root in graph.nodes:
        stack: list[tuple[Node, bool]] = [(root, False)]
        while stack:
            node, is_done = stack.pop()
            if is_done:
                order.append(node)
            elif node.number not in seen:
                seen.add(node.number)
                stack.append((node, True))
                stack += [
                    (p, False)
                    for p in reversed(node.producers)
                    if p.number not in seen and p.op != "NextIteration"
                ]
    return order
