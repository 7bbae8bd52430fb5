"""Clusters of a graph: nodes that may stand together, joined along edges as long as no cycle arises.

    graph = OrderedGraph(4)
    for edge in ((0, 1), (1, 2), (0, 3), (3, 2)):
        graph.insert(*edge)
    clusters = Clustering(graph, {0: [0], 1: [1], 2: [2]}, merge=lambda a, b: [*a, *b])
    clusters.contract(lambda source, target: True)   # node 3 cannot join: 0 and 2 stay apart

The order of the joins is that of TensorFlow's auto-clustering, so that the same graph gives the same
clusters. Nothing here knows what a node is: `mlirhlo.integrations.tensorflow.clustering` brings
TensorFlow's operations, `mlirhlo.runtime.partition` instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Neighbors:
    """A set of nodes in the order of insertion; removing one moves the last to its index."""

    __slots__ = ("index", "order")

    def __init__(self) -> None:
        self.order: list[int] = []
        self.index: dict[int, int] = {}

    def add(self, node: int) -> bool:
        if node in self.index:
            return False
        self.index[node] = len(self.order)
        self.order.append(node)
        return True

    def discard(self, node: int) -> None:
        if (at := self.index.pop(node, None)) is None:
            return
        last = self.order.pop()
        if last != node:
            self.order[at] = last
            self.index[last] = at


class OrderedGraph:
    """An acyclic graph with a topological order that follows insertions (Pearce and Kelly's algorithm)."""

    def __init__(self, size: int = 0) -> None:
        self.ranks = list(range(size))
        self._in = [_Neighbors() for _ in range(size)]
        self._out = [_Neighbors() for _ in range(size)]
        self._removed: set[int] = set()

    def new_node(self) -> int:
        """A further node, last in the order."""
        self.ranks.append(len(self.ranks))
        self._in.append(_Neighbors())
        self._out.append(_Neighbors())
        return len(self.ranks) - 1

    def successors(self, node: int) -> list[int]:
        """A copy of the nodes that edges from `node` lead to."""
        return list(self._out[node].order)

    def predecessors(self, node: int) -> list[int]:
        """A copy of the nodes with an edge to `node`."""
        return list(self._in[node].order)

    def post_order(self) -> list[int]:
        """All nodes, users before their operands."""
        nodes = [node for node in range(len(self.ranks)) if node not in self._removed]
        return sorted(nodes, key=lambda node: -self.ranks[node])

    def insert(self, source: int, target: int) -> bool:
        """Adds an edge; False, and no edge, when it would close a cycle."""
        if source == target:
            return False
        if not self._out[source].add(target):
            return True
        self._in[target].add(source)
        bound = self.ranks[source]
        if bound <= self.ranks[target]:
            return True
        forward = self._reach(self._out, target, lambda rank: rank <= bound)
        if source in forward:
            self.remove(source, target)
            return False
        lower = self.ranks[target]
        backward = self._reach(self._in, source, lambda rank: rank > lower)
        by_rank = self.ranks.__getitem__
        nodes = [*sorted(backward, key=by_rank), *sorted(forward, key=by_rank)]
        for node, rank in zip(nodes, sorted(map(by_rank, nodes)), strict=True):
            self.ranks[node] = rank
        return True

    def remove(self, source: int, target: int) -> None:
        """Removes an edge, if there is one."""
        self._out[source].discard(target)
        self._in[target].discard(source)

    def contract(self, source: int, target: int) -> int | None:
        """Makes one node of an edge's two; None, and no change, when another path joins them.

        The node with more edges stays, and is returned.
        """
        self.remove(source, target)
        bound = self.ranks[target]
        if target in self._reach(self._out, source, lambda rank: rank <= bound):
            self.insert(source, target)
            return None
        kept, gone = source, target
        if self._degree(target) > self._degree(source):
            kept, gone = target, source
        after, before = self.successors(gone), self.predecessors(gone)
        for node in after:
            self.remove(gone, node)
        for node in before:
            self.remove(node, gone)
        self._removed.add(gone)
        for node in after:
            self.insert(kept, node)
        for node in before:
            self.insert(node, kept)
        return kept

    def _degree(self, node: int) -> int:
        return len(self._in[node].order) + len(self._out[node].order)

    def _reach(
        self, edges: list[_Neighbors], start: int, within: Callable[[int], bool]
    ) -> set[int]:
        """Nodes that paths from `start` reach on ranks that are `within`."""
        reached: set[int] = set()
        stack = [start]
        while stack:
            node = stack.pop()
            if node not in reached:
                reached.add(node)
                stack += [
                    n for n in edges[node].order if n not in reached and within(self.ranks[n])
                ]
        return reached


class Clustering(Generic[T]):
    """Clusters that grow: a value of the caller's for each, under the node of the graph that stands for it."""

    def __init__(
        self, graph: OrderedGraph, values: dict[int, T], merge: Callable[[T, T], T]
    ) -> None:
        """`values`: a node that may be clustered and what is known of it; `merge`: of two joined clusters."""
        self.graph = graph
        self.values = values
        self._merge = merge

    def contract(self, may_join: Callable[[int, int], bool]) -> bool:
        """Joins clusters along edges from the users up, where `may_join`; whether any were joined.

        `may_join` gets the nodes that stand for the edge's two clusters.
        """
        changed = False
        for node in self.graph.post_order():
            if node not in self.values:
                continue
            current = node
            for target in self.graph.successors(node):
                if current not in self.values or target not in self.values:
                    continue
                if may_join(current, target):
                    kept = self.graph.contract(current, target)
                    if kept is not None:
                        value = self._merge(self.values.pop(current), self.values.pop(target))
                        self.values[kept] = value
                        current = kept
                        changed = True
        return changed

    def grow(self, may_join: Callable[[int, int], bool]) -> Iterable[T]:
        """Joins clusters until none can be joined, and returns their values."""
        while self.contract(may_join):
            pass
        return self.values.values()
