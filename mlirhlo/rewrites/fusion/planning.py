"""Which instructions are computed together.

One walk from the last instruction to the first. When an instruction's turn comes, all that read it
are in groups already; it joins them (a copy in each, where copies are cheaper than memory), becomes
one more output of the first of them, or begins a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mlirhlo.rewrites.fusion import cost
from mlirhlo.rewrites.fusion.followers import merge_followers
from mlirhlo.rewrites.fusion.graph import FREE, Node, Role
from mlirhlo.rewrites.fusion.groups import Form, Group, Kind, start
from mlirhlo.rewrites.fusion.joining import (
    Admission,
    Kinds,
    Refusal,
    admit,
    admit_output,
)
from mlirhlo.rewrites.fusion.order import move_behind, reached
from mlirhlo.rewrites.fusion.siblings import merge_siblings
from mlirhlo.rewrites.passes import Remark

_ATTEMPTS = 4
"""Groups that are asked to compute one more output."""


@dataclass(slots=True)
class Planner:
    """Grows the groups of one computation."""

    computation: str
    kinds: Kinds
    multi_output: bool
    """Whether a fusion may have several outputs."""
    is_scheduled: bool
    """Whether instructions have to keep their order."""
    only_merges: bool = False
    """Whether only whole kernels are merged: instructions of an opened fusion stay with what it writes."""
    fuel: int | None = None
    """At most so many instructions join a group."""
    remarks: list[Remark] | None = None
    """Where to say what was not done."""
    owners: dict[Node, list[Group]] = field(default_factory=dict[Node, "list[Group]"])
    groups: list[Group] = field(default_factory=list[Group])
    joined: int = 0

    def plan(self, nodes: Sequence[Node]) -> list[Group]:
        """All groups, those of one instruction too, in an order in which they can run."""
        for node in reversed(nodes):
            self._place(node)
        self._merge(nodes)
        for group in self.groups:
            form = group.form
            if form.kind is Kind.ROW and all(m.role is not Role.REDUCE for m in group.members):
                # The reduce could not join: its values are read, and loops compute those of a row once.
                group.form = Form(Kind.LOOP, form.space)
        return sorted(self.groups, key=lambda group: group.order)

    def joins_any(self, nodes: Sequence[Node]) -> bool:
        """Whether any group of the plan has several instructions; goes no further than the first."""
        for node in reversed(nodes):
            self._place(node)
            if self.joined:
                return True
        self._merge(nodes)
        return any(len(group.members) > 1 for group in self.groups)

    def _merge(self, nodes: Sequence[Node]) -> None:
        """Puts groups together that read the same, or one the other, where fusions may write several."""
        if self.multi_output and not self.is_scheduled and self.fuel is None:
            merge_siblings(
                nodes, self._reading, self._after, self._before, self._take, self._remark
            )
            merge_followers(nodes, self._reading, self.owners, self._take)
            self.groups = [group for group in self.groups if group.outputs]

    def _place(self, node: Node) -> None:
        readers = self._readers(node)
        found: dict[Group, Admission] = {}
        for group in readers:
            answer = self._ask(group, node)
            if isinstance(answer, Refusal):
                self._remark(node, group, answer)
            else:
                found[group] = answer
        if not found:
            self._begin(node)
            return
        everyone = len(found) == len(readers) and not node.is_root
        everyone = everyone and all(self._is_of(node, group) for group in found)
        if everyone and (len(found) == 1 or self._copies_are_cheaper(node, list(found))):
            for group, admission in found.items():
                self._join(group, node, admission)
            return
        refused: set[Group] = set()
        main = self._as_output(node, readers, found, refused)
        if main is None:
            self._begin(node)
        for group, admission in found.items():
            if group is main:
                continue
            if (node.role in FREE or self._is_at_hand(node, group)) and self._is_of(node, group):
                self._join(group, node, admission)
            elif group not in refused:
                why = "other users read it from memory"
                self._remark(node, group, Refusal("users", why))

    def _readers(self, node: Node) -> dict[Group, None]:
        return {group: None for user in node.users for group in self.owners[user]}

    def _ask(self, group: Group, node: Node) -> Admission | Refusal:
        if node.has_control or any(output.has_control for output in group.outputs):
            return Refusal("control", "control dependencies keep instructions apart")
        if node.barrier != group.outputs[0].barrier and node.role not in FREE:
            return Refusal("barrier", "shardings, backend configurations or streams differ")
        if self.fuel is not None and self.joined >= self.fuel:
            return Refusal("fuel", "the limit on fusions is reached")
        return admit(group, node, self.kinds)

    def _is_of(self, node: Node, group: Group) -> bool:
        """Whether an instruction may be inside a group without being an output."""
        if not self.only_merges or node.role is Role.CONSTANT:
            return True
        fusion = node.fusion
        return fusion is not None and any(o.fusion == fusion for o in group.outputs)

    def _begin(self, node: Node) -> None:
        group = start(node)
        if node.has_control:
            group.form = Form(Kind.ALONE)
        self.groups.append(group)
        self.owners.setdefault(node, []).insert(0, group)

    def _join(
        self, group: Group, node: Node, admission: Admission, *, is_output: bool = False
    ) -> None:
        if admission.members is not None:
            group.members = admission.members
        group.add(node, admission.form, admission.paths, is_output=is_output)
        owners = self.owners.setdefault(node, [])
        owners.insert(0 if is_output else len(owners), group)
        self.joined += 1

    def _copies_are_cheaper(self, node: Node, groups: list[Group]) -> bool:
        """Whether every reader rather computes it than reads it."""
        if node.role in FREE:
            return True
        if node.is_expensive:
            return False
        fresh = [sum(map(_read_bytes, self._new_inputs(node, group))) for group in groups]
        operands = sum(map(_read_bytes, dict.fromkeys(node.operands)))
        size = node.size_bytes
        once = size * len(groups) + min(operands + size, fresh[0])
        again = (len(groups) - 1) * node.elements * node.chain
        return sum(fresh) * cost.BYTE_TIME + again <= once * cost.BYTE_TIME + cost.KERNEL_TIME

    def _new_inputs(self, node: Node, group: Group) -> Iterator[Node]:
        """What a group would have to read in addition."""
        for operand in dict.fromkeys(node.operands):
            if operand not in group.inputs:
                yield operand

    def _is_at_hand(self, node: Node, group: Group) -> bool:
        """Whether a group computes it from less than it would read instead."""
        if node.is_expensive or node.chain * node.elements > cost.BYTE_TIME * node.size_bytes:
            return False
        fresh = sum(map(_read_bytes, self._new_inputs(node, group)))
        return fresh == 0 or 2 * fresh < node.size_bytes

    def _as_output(
        self,
        node: Node,
        readers: Iterable[Group],
        found: dict[Group, Admission],
        refused: set[Group],
    ) -> Group | None:
        """Makes it one more output of a group that reads it; None when none can.

        `refused` takes the groups of which it was said why they cannot.
        """
        if not self.multi_output or node.role in FREE:
            return None
        if self.kinds.products and node.from_product:
            return None
        if self.only_merges and not node.is_root and len(self._readers(node)) == 1:
            return None  # nothing else would read what it wrote: `fusion` decides about those
        for group in sorted(found, key=lambda g: g.order)[:_ATTEMPTS]:
            refusal = admit_output(group, node, found[group], self.kinds)
            if refusal is None:
                refusal = self._before_others(group, readers)
            if refusal is None:
                self._join(group, node, found[group], is_output=True)
                return group
            self._remark(node, group, refusal)
            refused.add(group)
        return None

    def _before_others(self, group: Group, readers: Iterable[Group]) -> Refusal | None:
        """Puts a group before all others that read what it will write."""
        early = [r for r in dict.fromkeys(readers) if r is not group and r.order < group.order]
        if not early:
            return None
        if self.is_scheduled:
            return Refusal("schedule", "an earlier instruction reads it")
        behind = reached(early, group, self._after)
        if behind is None or not move_behind(group, behind, self._before):
            return Refusal("cycle", "the fusion depends on another reader, or is far from it")
        return None

    def _after(self, group: Group) -> Iterator[Group]:
        for output in group.outputs:
            for user in (*output.users, *output.controlled):
                for owner in self.owners[user]:
                    if owner is not group:
                        yield owner

    def _before(self, group: Group) -> Iterator[Group]:
        read = (n for n in group.inputs if n in self.owners)
        waited = (n for output in group.outputs for n in output.controlled_by if n in self.owners)
        for node in (*read, *waited):
            owner = self.owners[node][0]
            if node in owner.outputs and owner is not group:
                yield owner

    def _reading(self, node: Node) -> list[Group]:
        owners = (group for user in node.users for group in self.owners[user])
        return [group for group in dict.fromkeys(owners) if node in group.inputs]

    def _take(self, group: Group, other: Group) -> None:
        """Puts all of another group into one that walks alike."""
        members = {**group.members, **other.members}
        group.code = sum(member.code for member in members)
        group.members = dict(sorted(members.items(), key=lambda item: -item[0].index))
        group.outputs += other.outputs
        group.inputs.update(other.inputs)
        for member in other.members:
            owners = [group if g is other else g for g in self.owners[member]]
            self.owners[member] = list(dict.fromkeys(owners))
        other.outputs = []

    def _remark(self, node: Node, group: Group, refusal: Refusal) -> None:
        if self.remarks is not None and node.role is not Role.OTHER:
            self.remarks.append(
                Remark(
                    self.computation,
                    node.name,
                    group.name,
                    refusal.code,
                    refusal.reason,
                    node.size_bytes,
                )
            )


def _read_bytes(node: Node) -> int:
    """Bytes that a kernel reads for an operand, which may be computed from less."""
    if node.role is Role.BROADCAST:
        return node.operands[0].size_bytes
    return 0 if node.role in (Role.CONSTANT, Role.IOTA) else node.size_bytes
