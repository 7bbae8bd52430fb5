"""The tree of computations that run as a whole, each by one instruction; answers in logarithmic time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from mlirhlo.dialects.hlo.ops import ConditionalOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp


@dataclass(slots=True, eq=False)
class Node:
    """A computation, and the instruction that runs it."""

    computation: ComputationOp
    caller: Instruction | None
    parent: Node | None
    """The computation of the caller."""
    depth: int
    jump: Node | None
    """An ancestor further up; the two of them lead to any ancestor in logarithmically many steps."""
    branch: Node | None = None
    """The innermost branch of a conditional that the computation is, or runs in."""

    def __post_init__(self) -> None:
        """Derives `branch`."""
        if isinstance(self.caller, ConditionalOp):
            self.branch = self
        elif self.parent is not None:
            self.branch = self.parent.branch

    def at(self, depth: int) -> Node:
        """The node itself or its ancestor at a depth."""
        node = self
        while node.depth > depth:
            jump = node.jump
            above = jump if jump is not None and jump.depth >= depth else node.parent
            assert above is not None
            node = above
        return node


class Meeting(NamedTuple):
    """Two instructions of the innermost computation that runs two others, or those themselves."""

    one: Instruction
    other: Instruction
    inside_one: Node | None
    """The computation that `one` runs with the first of the two others in it; None: that one is `one` itself."""
    inside_other: Node | None


@dataclass(slots=True)
class CallTree:
    """Of one module; nodes are made when they are first needed."""

    callers: Mapping[str, Instruction]
    """The one instruction that runs a computation as a whole."""
    holder: Callable[[Instruction], ComputationOp]
    """The computation that an instruction stands in."""
    _nodes: dict[ComputationOp, Node] = field(default_factory=dict[ComputationOp, Node])

    def node(self, op: Instruction) -> Node:
        """The node of the computation that an instruction stands in."""
        computation = self.holder(op)
        path: list[tuple[ComputationOp, Instruction | None]] = []
        while (node := self._nodes.get(computation)) is None:
            caller = self.callers.get(computation.computation_name)
            path.append((computation, caller))
            if caller is None:
                break
            computation = self.holder(caller)
        for made, caller in reversed(path):
            jump = node
            if node is not None and (up := node.jump) is not None:
                if (top := up.jump) is not None and node.depth - up.depth == up.depth - top.depth:
                    jump = top
            node = Node(made, caller, node, 0 if node is None else node.depth + 1, jump)
            self._nodes[made] = node
        assert node is not None
        return node

    def holds(self, computation: ComputationOp, op: Instruction) -> bool:
        """Whether an instruction runs as a part of a computation."""
        return self.contains(self._nodes.get(computation) or self.node(computation.root), op)

    def contains(self, outer: Node, op: Instruction) -> bool:
        """Whether an instruction runs as a part of a node's computation."""
        inner = self.node(op)
        return inner.depth >= outer.depth and inner.at(outer.depth) is outer

    def alternative(self, one: Instruction, other: Instruction) -> ConditionalOp | None:
        """The conditional that runs only one of two instructions, or None."""
        if self.node(one).branch is None or self.node(other).branch is None:
            return None
        found = self.meeting(one, other)
        if found is None or found.inside_one is None or found.inside_one is found.inside_other:
            return None
        caller = found.one
        return caller if caller is found.other and isinstance(caller, ConditionalOp) else None

    def meeting(self, one: Instruction, other: Instruction) -> Meeting | None:
        """Where the runs of two instructions meet; None where nothing runs both."""
        first: Node | None = self.node(one)
        second: Node | None = self.node(other)
        if first is second:
            return Meeting(one, other, None, None)
        assert first is not None
        assert second is not None
        inside_one = inside_other = None
        if first.depth > second.depth:
            inside_one = first.at(second.depth + 1)
            first = inside_one.parent
        elif second.depth > first.depth:
            inside_other = second.at(first.depth + 1)
            second = inside_other.parent
        assert first is not None
        assert second is not None
        if first is not second:
            while first.parent is not second.parent:
                is_apart = first.jump is not second.jump
                one_up = first.jump if is_apart else first.parent
                other_up = second.jump if is_apart else second.parent
                assert one_up is not None
                assert other_up is not None
                first, second = one_up, other_up
            if first.parent is None:
                return None
            inside_one, inside_other = first, second
        x = one if inside_one is None else inside_one.caller
        y = other if inside_other is None else inside_other.caller
        assert x is not None
        assert y is not None
        return Meeting(x, y, inside_one, inside_other)
