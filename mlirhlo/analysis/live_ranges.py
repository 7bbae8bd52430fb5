"""When values are alive: whether two of them can be in one buffer, in whatever order a module may run.

In a module with a schedule the order is that of the blocks; otherwise any order that operands and control
dependencies allow. A value is alive from its definition to its last reader, to the end of a computation
that gives it back. Loops run the condition, then the body; of branches one runs.
Source: behaviour of XLA's `HloOrdering`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mlirhlo.analysis.buffer_assignment import is_read_in_place
from mlirhlo.analysis.call_tree import CallTree, Node
from mlirhlo.analysis.dataflow import ShapeIndex, Use, Value, in_place_pairs
from mlirhlo.analysis.single_values import SingleValues
from mlirhlo.analysis.timeline import Timeline
from mlirhlo.dialects.hlo.ops import ConditionalOp, CopyOp, FusionOp, ParameterOp, WhileOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, subshape


@dataclass(slots=True)
class LiveRange:
    """Where a value is needed."""

    reads: list[Use]
    alive_after: set[str]
    """Computations at whose end it is still needed."""


@dataclass(slots=True)
class Ordering:
    """What runs before what."""

    values: SingleValues
    is_scheduled: bool
    asked: set[Instruction]
    """Instructions that questions are about: those that define the values."""
    tree: CallTree
    _places: dict[Instruction, int] = field(default_factory=dict[Instruction, int])
    """Position in the block, or, without a schedule, number among those asked about."""
    _followers: dict[int, int] = field(default_factory=dict[int, int])
    """By the id of an instruction: of those asked about in its computation, the ones that cannot run before it,
    a bit each."""
    _seen: set[ComputationOp] = field(default_factory=set[ComputationOp])

    @staticmethod
    def of(values: SingleValues, *, is_scheduled: bool, asked: Iterable[Instruction]) -> Ordering:
        """For questions about `asked`."""
        tree = CallTree(values.callers, values.proposed.holder)
        return Ordering(values, is_scheduled, {*asked, *values.callers.values()}, tree)

    def is_before(self, one: Instruction, other: Instruction) -> bool:
        """Whether one of two instructions of a computation always runs before the other."""
        if isinstance(other, ParameterOp) or isinstance(one, ParameterOp):
            return not isinstance(other, ParameterOp)
        computation = self.values.proposed.holder(one)
        if computation not in self._seen:
            self._look_at(computation)
        if self.is_scheduled:
            return self._places[one] < self._places[other]
        return bool(self._followers.get(id(one), 0) >> self._places[other] & 1)

    def _look_at(self, computation: ComputationOp) -> None:
        self._seen.add(computation)
        proposed = self.values.proposed
        order = proposed.in_order(computation)
        if self.is_scheduled:
            self._places.update((op, place) for place, op in enumerate(order))
            return
        asked = [op for op in order if op in self.asked]
        self._places.update((op, number) for number, op in enumerate(asked))
        own = {id(op): 1 << number for number, op in enumerate(asked)}
        more = proposed.waited_for_in(computation)
        followers = self._followers
        # Nothing is asked about what stands before those asked about: they, and their readers, come later.
        first = _first_place(order, asked)
        for op in (computation.terminator, *reversed(order[first:])):
            number = id(op)
            here = followers.get(number, 0) | own.get(number, 0)
            if not here:
                continue
            followers[number] = here
            for value in op._operands:  # pyright: ignore[reportPrivateUsage]
                number = id(value.owner)
                followers[number] = followers.get(number, 0) | here
            for other in more.get(op, ()) if more else ():
                number = id(other)
                followers[number] = followers.get(number, 0) | here

    def ends_before(self, op: Instruction, value: Value, *, reads: bool) -> bool:
        """Whether `op` is done when `value` is written; `reads`: only with reading its operands.

        One that reads and writes at once is not; a loop reads its first state before all that is in it.
        """
        made = value[0]
        meeting = self.tree.meeting(op, made)
        if meeting is None:
            return True
        x, y, mine, its = meeting
        if x is not y:
            return self.is_before(x, y)
        if its is None:  # the result of a loop or conditional, after all that is in it
            return op is not x or (reads and isinstance(x, WhileOp | ConditionalOp))
        if mine is None:
            return reads
        if isinstance(x, WhileOp):
            name = mine.computation.computation_name
            return name == x.condition and its.computation.computation_name == x.body
        return mine is not its

    def timeline(self) -> Timeline:
        """The order in which all instructions of the computations asked about would run one after the other."""
        within: dict[Instruction, list[ComputationOp]] = {}
        roots = self._asked_about(within)
        return Timeline.of(roots, within, self.values.proposed.in_order)

    def _asked_about(self, within: dict[Instruction, list[ComputationOp]]) -> list[ComputationOp]:
        """Those that no other one asked about runs; the others, by what runs them, into `within`."""
        nodes: dict[Node, None] = {}
        for op in self.asked:
            node: Node | None = self.tree.node(op)
            while node is not None and node not in nodes:
                nodes[node] = None
                node = node.parent
        for node in nodes:
            if node.caller is not None:
                within.setdefault(node.caller, []).append(node.computation)
        for caller, inner in within.items():
            names = caller.called_computations
            names = (caller.condition, caller.body) if isinstance(caller, WhileOp) else names
            turns = {name: turn for turn, name in enumerate(names)}
            inner.sort(key=lambda c: turns[c.computation_name])
        turns = {name: turn for turn, name in enumerate(self.values.computations)}
        roots = [node.computation for node in nodes if node.caller is None]
        return sorted(roots, key=lambda c: turns[c.computation_name])

    def holds(self, computation: str, op: Instruction) -> bool:
        """Whether `op` runs as a part of the computation."""
        return self.tree.holds(self.values.computations[computation], op)


def _first_place(order: Sequence[Instruction], asked: Iterable[Instruction]) -> int:
    """Place of the first instruction that is asked about, or reads a parameter that is."""
    places = {id(op): place for place, op in enumerate(order)}
    wanted = [
        id(op)
        for one in asked
        for op in (
            [use.operation for use in one.output.uses] if isinstance(one, ParameterOp) else [one]
        )
    ]
    return min([places[number] for number in wanted if number in places], default=len(order))


@dataclass(slots=True)
class LiveRanges:
    """Live ranges of the values of one module, which change as copies are taken away."""

    values: SingleValues
    ordering: Ordering
    _ranges: dict[Value, LiveRange] = field(default_factory=dict[Value, LiveRange])

    def of(self, value: Value) -> LiveRange:
        """The live range of a value."""
        found = self._ranges.get(value)
        if found is None:
            found = LiveRange(self.values.reads(value), self.values.leaves_alive(value))
            # What a condition sees, the body, or whoever comes after the loop, needs.
            for op, _ in self.values.positions(value):
                if isinstance(op, ParameterOp):
                    name = self.values.proposed.holder(op).computation_name
                    loop = self.values.callers.get(name)
                    if isinstance(loop, WhileOp) and name == loop.condition:
                        found.alive_after.add(name)
            self._ranges[value] = found
        return found

    def extend(self, value: Value, copy: Value) -> None:
        """Lets the readers of a copy read what was copied."""
        mine, its = self.of(value), self.of(copy)
        mine.reads = [read for read in mine.reads if read[0] is not copy[0]] + its.reads
        mine.alive_after |= its.alive_after

    def extended(self, value: Value, copy: Value) -> LiveRange:
        """What `extend` would make of the live range."""
        mine, its = self.of(value), self.of(copy)
        reads = [read for read in mine.reads if read[0] is not copy[0]] + its.reads
        return LiveRange(reads, mine.alive_after | its.alive_after)

    def interfere(self, one: Value, other: Value, *, range_of_one: LiveRange | None = None) -> bool:
        """Whether both may be needed at the same time."""
        return not (
            self.is_over_before(one, other, range_of_one) or self.is_over_before(other, one)
        )

    def is_over_before(self, value: Value, next_: Value, alive: LiveRange | None = None) -> bool:
        """Whether a value, whose live range is `alive`, is needed no more when another one is written."""
        alive = alive or self.of(value)
        ordering = self.ordering
        if value[0] is next_[0] or not ordering.ends_before(value[0], next_, reads=False):
            return False
        if any(ordering.holds(name, next_[0]) for name in alive.alive_after):
            return False
        return all(
            self.may_write_over(read, next_)
            if read[0] is next_[0] and not isinstance(read[0], WhileOp | ConditionalOp)
            else ordering.ends_before(read[0], next_, reads=True)
            for read in alive.reads
        )

    def may_write_over(self, read: Use, result: Value) -> bool:
        """Whether an instruction may write a result where it reads an operand, element by element."""
        op, number, index = read
        if op in self.values.proposed.places:
            return True
        return shares(op, number, index, result[1], self.values.computations)


def shares(
    op: Instruction,
    number: int,
    index: ShapeIndex,
    result: ShapeIndex,
    computations: Mapping[str, ComputationOp],
) -> bool:
    """Whether operand and result of `op`, parts at `index` and `result`, can be one buffer."""
    if (number, index, result) in in_place_pairs(op, computations):
        return True
    if index or (result and not isinstance(op, FusionOp)):
        return False
    operand, made = op.input_shapes[number], subshape(op.shape, result)
    if not isinstance(operand, ArrayShape) or not isinstance(made, ArrayShape):
        return False
    if (operand.dimensions, operand.layout) != (made.dimensions, made.layout):
        return False
    if operand.element_type.byte_size != made.element_type.byte_size:
        return False
    if isinstance(op, FusionOp):
        fused = computations[op.calls]
        return is_read_in_place(fused, fused.parameters[number])
    return bool(op.opcode.elementwise) or isinstance(op, CopyOp)
