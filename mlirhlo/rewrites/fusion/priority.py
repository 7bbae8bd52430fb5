"""Fusing by what it saves: the order of XLA's PriorityFusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from mlirhlo.rewrites.fusion import cost
from mlirhlo.rewrites.fusion.graph import FREE, Node, Role
from mlirhlo.rewrites.fusion.groups import Form, Group, Kind, start
from mlirhlo.rewrites.fusion.joining import Kinds, Refusal
from mlirhlo.rewrites.fusion.regrouping import regroup_both
from mlirhlo.rewrites.passes import Remark


@dataclass(slots=True)
class PriorityQueue:
    """Groups of one computation, one for each value that is in memory."""

    computation: str
    kinds: Kinds
    fuel: int | None
    remarks: list[Remark] | None
    fused: int = 0
    groups: dict[Node, Group] = field(default_factory=dict[Node, Group])
    """By their output."""
    readers: dict[Node, dict[Node, None]] = field(default_factory=dict[Node, "dict[Node, None]"])
    """Outputs of the groups that read a value."""
    refused: dict[tuple[Node, Node], Refusal] = field(
        default_factory=dict["tuple[Node, Node]", Refusal]
    )

    def plan(self, nodes: Sequence[Node]) -> list[Group]:
        """All groups in an order in which they can run."""
        heap: list[tuple[float, int]] = []
        for node in nodes:
            group = start(node)
            if node.has_control:
                group.form = Form(Kind.ALONE)
            self.groups[node] = group
            self.readers[node] = dict.fromkeys(node.users)
        for node in nodes:
            heappush(heap, (-self._saving(node), node.index))
        while heap and (self.fuel is None or self.fused < self.fuel):
            negative, index = heappop(heap)
            node = nodes[index]
            saving = self._saving(node) if node in self.groups else 0.0
            if saving <= 0.0:
                continue
            if -negative != saving:  # it changed since it was put there
                heappush(heap, (-saving, index))
                continue
            for again in self._fuse(node):
                heappush(heap, (-self._saving(again), again.index))
        if self.remarks is not None:
            for (node, reader), refusal in self.refused.items():
                if node in self.groups and node.role is not Role.OTHER:
                    code, why = refusal.code, refusal.reason
                    names = (self.computation, node.name, reader.name)
                    self.remarks.append(Remark(*names, code, why, node.size_bytes))
        return sorted(self.groups.values(), key=lambda group: group.order)

    def _saving(self, node: Node) -> float:
        """Nanoseconds that fusing a value into all its readers saves; 0 where that cannot be."""
        readers = self.readers[node]
        if not readers or node.is_root or node.has_control or node.role is Role.OTHER:
            return 0.0
        copies = len(readers)
        moved, again = node.size_bytes * (1 + copies), 0.0
        if copies > 1:
            group = self.groups[node]
            if any(member.is_expensive for member in group.members):
                return 0.0
            again = (copies - 1) * node.elements * node.chain
            moved -= sum([n.size_bytes for n in group.inputs if n.role not in FREE]) * (copies - 1)
        saved = moved * cost.BYTE_TIME + cost.KERNEL_TIME - again
        return max(saved, 0.001 if node.role in FREE else 0.0)

    def _fuse(self, node: Node) -> list[Node]:
        """Computes a value in all groups that read it; what is worth looking at again."""
        made: dict[Node, Group] = {}
        mine = self.groups[node]
        for reader in self.readers[node]:
            theirs = self.groups[reader]
            merged = self._merged(node, mine, reader, theirs)
            if isinstance(merged, Refusal):
                self.refused[node, reader] = merged
                return []
            made[reader] = merged
        self.fused += 1
        del self.groups[node]
        for value in mine.inputs:
            self.readers[value].pop(node, None)
        for reader, group in made.items():
            self.groups[reader] = group
            for value in group.inputs:
                self.readers[value][reader] = None
        return [*mine.inputs, *made]

    def _merged(self, node: Node, mine: Group, reader: Node, theirs: Group) -> Group | Refusal:
        if reader.has_control:
            return Refusal("control", "control dependencies keep instructions apart")
        if node.barrier != reader.barrier and node.role not in FREE:
            return Refusal("barrier", "shardings, backend configurations or streams differ")
        if mine.code + theirs.code > cost.LARGEST_GROUP:
            return Refusal("size", "the fusion would have too many instructions")
        return regroup_both(mine, theirs, self.kinds)
