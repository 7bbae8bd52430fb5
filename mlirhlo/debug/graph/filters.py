"""Which nodes a printer shows: all, a neighbourhood, or the paths between two instructions.

Source of the rules: XLA's graph dumper, as its interactive tool uses it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from mlirhlo.debug.graph.model import Graph, Node

MAX_USERS = 16
"""A neighbourhood does not go on to the users of a node that has more."""


class Show(Enum):
    """How a node appears."""

    NORMAL = "normal"
    HIDDEN = "hidden"
    HIGHLIGHTED = "highlighted"
    OPERANDS_OMITTED = "no operand is shown"
    SOME_OPERANDS_OMITTED = "some operands are not shown"
    SOME_USERS_OMITTED = "some users are not shown"


@dataclass(frozen=True, slots=True)
class Filter:
    """What is shown of the nodes of one computation; those of others are shown all."""

    computation: int | None = None
    """None: everything is shown."""
    shown: Mapping[int, Show] = field(default_factory=dict[int, Show])
    limited: bool = False
    """Whether a limit has cut something off."""

    def of(self, node: Node) -> Show:
        """How `node` appears."""
        found = self.shown.get(node.index)
        if found is not None:
            return found
        return Show.HIDDEN if node.computation == self.computation else Show.NORMAL

    def shows(self, node: Node) -> bool:
        """Whether `node` appears at all."""
        return self.of(node) is not Show.HIDDEN

    def highlights(self, node: Node) -> bool:
        """Whether `node` is what the picture is about."""
        return self.of(node) is Show.HIGHLIGHTED

    def omits_operands(self, node: Node) -> bool:
        """Whether some operands of `node` are not shown."""
        return self.of(node) in (Show.OPERANDS_OMITTED, Show.SOME_OPERANDS_OMITTED)

    def deemphasizes(self, node: Node) -> bool:
        """Whether `node` stands at the border of the picture."""
        return self.of(node) is Show.SOME_USERS_OMITTED or self.omits_operands(node)


EVERYTHING = Filter()


def neighbourhood(graph: Graph, center: Node, radius: int, boundary: Iterable[int] = ()) -> Filter:
    """Nodes at most `radius` operands or users away from `center`, not going on at `boundary`.

    Operands of tuples are left out, and users of a node that has more than `MAX_USERS`.
    """
    stops = set(boundary)
    found: dict[int, Show] = {center.index: Show.NORMAL}
    queue = deque([(center, 0)])
    while queue:
        node, distance = queue.popleft()
        if distance == radius or node.index in stops:
            continue
        near: list[int] = []
        if node is center or node.opcode != "tuple":
            near += node.operands
        near += (graph.computations[callee].root for callee in node.calls)
        if node.opcode != "constant":
            if len(node.users) > MAX_USERS:
                found[node.index] = Show.SOME_USERS_OMITTED
            else:
                near += node.users
        for index in near:
            if index not in found:
                found[index] = Show.NORMAL
                queue.append((graph.nodes[index], distance + 1))

    def is_displayed(index: int) -> bool:
        other = graph.nodes[index]
        elsewhere = other.computation != center.computation
        return index in found or other.opcode == "constant" or elsewhere

    for index, show in list(found.items()):
        node = graph.nodes[index]
        shown = [is_displayed(operand) for operand in node.operands]
        if any(shown) and not all(shown):
            found[index] = Show.SOME_OPERANDS_OMITTED
        elif shown and not any(shown):
            found[index] = Show.OPERANDS_OMITTED
        elif show is Show.SOME_USERS_OMITTED and all(map(is_displayed, node.users)):
            found[index] = Show.NORMAL
    found[center.index] = Show.HIGHLIGHTED
    return Filter(center.computation, found)


def paths(graph: Graph, start: Node, end: Node, max_nodes: int = 100) -> Filter:
    """Nodes on the paths from `start` to `end`; those on shortest ones where all are too many.

    Shows the two nodes alone when nothing leads from one to the other.
    """
    ends = {start.index: Show.HIGHLIGHTED, end.index: Show.HIGHLIGHTED}
    after = _reached(graph, start, forward=True)
    before = _reached(graph, end, forward=False)
    between = after.keys() & before.keys()
    limited = len(between) > max_nodes
    if limited:
        length = after[end.index]
        between = {i for i in between if after[i] + before[i] == length}
    shown = dict.fromkeys(sorted(between), Show.NORMAL)
    return Filter(start.computation, {**shown, **ends}, limited)


def _reached(graph: Graph, start: Node, *, forward: bool) -> dict[int, int]:
    """Distance of every node that users (or operands) lead to, within the computation."""
    distance = {start.index: 0}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for index in node.users if forward else (*node.operands, *node.control):
            if index not in distance:
                distance[index] = distance[node.index] + 1
                queue.append(graph.nodes[index])
    return distance
