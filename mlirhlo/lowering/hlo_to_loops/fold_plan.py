"""What a computation with reduces does to each row, in which round over the row.

A row is what its reduces fold: all arrays have the dimensions `sizes`, of which `folded` are folded and
`kept` tell the rows apart, or are spread over them. A reduce that needs another's result folds in a later
round. Values that cost more than a load to compute again are saved between rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import ConstantOp, DivideOp, ReduceOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.table import opcodes
from mlirhlo.lowering.hlo_to_loops.merging import arrays_in, sizes_of
from mlirhlo.lowering.hlo_to_loops.reducers import Reducer, reducer_of
from mlirhlo.lowering.hlo_to_loops.symbols import MAPPED, OTHER, Symbols, operand_places

_MOST_AGAIN = 5.0
"""What costs more is saved instead of being computed again; a load and a store cost three."""
_FOLDS = opcodes(
    lambda row: row.contracts or (row.calls is not None and row.name not in ("map", "reduce"))
)


class Declined(Exception):
    """The computation is none that works row by row."""


@dataclass(eq=False, slots=True)
class Node:
    """A value at a place."""

    value: SSAValue
    place: Symbols
    inputs: Sequence[Node]
    level: int
    """The first round in which it can be computed."""
    cost: float
    """Of computing it out of memory, in vector instructions, roughly."""
    is_moving: bool
    """Whether it changes along a row."""
    in_memory: bool = False


@dataclass(eq=False, frozen=True, slots=True)
class Fold:
    """A reduce of the plan."""

    op: ReduceOp
    inputs: Sequence[SSAValue]
    starts: Sequence[SSAValue]
    reducer: Reducer
    round: int

    @property
    def width(self) -> int:
        """Values it carries."""
        return len(self.inputs)


@dataclass(slots=True)
class FoldPlan:
    """Everything builders of kernels need to know."""

    sizes: tuple[int, ...]
    kept: tuple[int, ...]
    folded: tuple[int, ...]
    rounds: int
    folds: list[Fold]
    whole: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Outputs of the whole's shape: their numbers and rounds."""
    of_rows: list[int] = field(default_factory=list[int])
    """Outputs with one element a row: their numbers."""
    of_row_cost: float = 0
    """Of these, in instructions for a row."""
    saved: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Values to save, and the rounds that compute them."""
    loaded: list[list[SSAValue]] = field(default_factory=list[list[SSAValue]])
    """For each round, the saved values it reads."""
    cost: list[float] = field(default_factory=list[float])
    """For each round, that of one element."""
    divides: set[int] = field(default_factory=set[int])
    """Rounds that divide by what stays in a row."""
    last_read: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Of operands that are read at their own places alone, the last round that does."""

    def folds_of(self, at: int) -> list[Fold]:
        """Those of a round."""
        return [f for f in self.folds if f.round == at]

    @property
    def row(self) -> int:
        """Elements of a row."""
        return prod(self.sizes[d] for d in self.folded)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return prod(self.sizes[d] for d in self.kept)


def fold_plan(outputs: Sequence[SSAValue], operands: Sequence[SSAValue]) -> FoldPlan:
    """The plan of a canonical computation. Raises `Declined`."""
    return _Planner(outputs, operands).plan()


def first_reduce(outputs: Sequence[SSAValue], operands: Sequence[SSAValue]) -> ReduceOp | None:
    """A reduce on the way from outputs to operands."""
    seen = set(operands)
    stack = list(outputs)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        op = cast(Instruction, value.owner)
        if isinstance(op, ReduceOp):
            return op
        stack += op.inputs
    return None


class _Planner:
    def __init__(self, outputs: Sequence[SSAValue], operands: Sequence[SSAValue]) -> None:
        self.outputs, self.operands = outputs, set(operands)
        reduce = first_reduce(outputs, operands)
        if reduce is None:
            raise Declined
        self.sizes = sizes_of(reduce.inputs[0])
        self.folded = tuple(sorted(reduce.dimensions))
        rank = range(len(self.sizes))
        self.kept = tuple(d for d in rank if d not in self.folded)
        self.all: Symbols = tuple(rank)
        self.nodes: dict[tuple[SSAValue, Symbols], Node] = {}
        self.folds: dict[ReduceOp, Fold] = {}
        self.fold_inputs: dict[ReduceOp, Sequence[Node]] = {}

    def plan(self) -> FoldPlan:
        whole: list[tuple[int, Node]] = []
        of_rows: list[int] = []
        of_row_cost = 0.0
        kept_sizes = tuple(self.sizes[d] for d in self.kept)
        if not self.folded or not prod(self.sizes):
            raise Declined
        for number, output in enumerate(self.outputs):
            if sizes_of(output) == self.sizes:
                whole.append((number, self.node(output, self.all)))
            elif sizes_of(output) == kept_sizes:
                of_row_cost += self.node(output, self.kept).cost
                of_rows.append(number)
            else:
                raise Declined
        folds = sorted(self.folds.values(), key=lambda f: f.round)
        if not folds:
            raise Declined
        rounds = max([folds[-1].round, *(n.level for _, n in whole)]) + 1
        plan = FoldPlan(self.sizes, self.kept, self.folded, rounds, folds)
        plan.whole = [(number, node.level) for number, node in whole]
        plan.of_rows, plan.of_row_cost = of_rows, of_row_cost
        self.save(plan, [n for _, n in whole])
        return plan

    def save(self, plan: FoldPlan, whole: Sequence[Node]) -> None:
        """Walks what each round computes and decides what it finds saved."""
        computed: dict[Node, int] = {}
        stored = {n.value for n in whole}
        elsewhere: set[SSAValue] = set()
        for number in range(plan.rounds):
            roots = [n for n in whole if n.level == number]
            for fold in plan.folds:
                if fold.round == number:
                    roots += self.fold_inputs[fold.op]
            loaded: list[SSAValue] = []
            seen: set[Node] = set()
            cost = 1.0
            stack = list(roots)
            while stack:
                node = stack.pop()
                if node in seen or not node.is_moving:
                    continue
                seen.add(node)
                if node.in_memory:
                    plan.last_read[node.value] = number
                    if node.place != self.all:
                        elsewhere.add(node.value)
                    cost += 1
                    continue
                before = computed.setdefault(node, number)
                dear = node.cost > (2 if node.value in stored else _MOST_AGAIN)
                if before < number and dear and node.place == self.all:
                    plan.saved[node.value] = before
                    loaded.append(node.value)
                    cost += 1
                    continue
                cost += node.cost - _moving_cost(node.inputs)
                if _divides(node):
                    plan.divides.add(number)
                stack += node.inputs
            plan.loaded.append(loaded)
            plan.cost.append(cost)
        for value in elsewhere:
            del plan.last_read[value]

    def node(self, value: SSAValue, place: Symbols) -> Node:
        """A value at a place, and all that it is computed from: operands first, without recursion."""
        stack = [((value, place), self.read_by(value, place))]
        while stack:
            key, read = stack[-1]
            unknown = [k for k in read if k not in self.nodes]
            if unknown:
                stack += [(k, self.read_by(*k)) for k in reversed(unknown)]
            else:
                if key not in self.nodes:
                    self.nodes[key] = self.make(*key, [self.nodes[k] for k in read])
                stack.pop()
        return self.nodes[value, place]

    def read_by(self, value: SSAValue, place: Symbols) -> Sequence[tuple[SSAValue, Symbols]]:
        """Operands of an instruction, and where it reads them."""
        if value in self.operands:
            return ()
        op: Any = value.owner
        name = op.opcode.name
        if name in ("constant", "iota"):
            return ()
        if name in _FOLDS:
            raise Declined
        if name != "reduce":
            return operand_places(op, place)
        count = len(op.inputs) // 2
        if sizes_of(op.inputs[0]) != self.sizes or tuple(sorted(op.dimensions)) != self.folded:
            raise Declined
        if place != self.kept:
            raise Declined
        return [(v, self.all if at < count else ()) for at, v in enumerate(op.inputs)]

    def make(self, value: SSAValue, place: Symbols, inputs: Sequence[Node]) -> Node:
        moving = any(s == OTHER or s in self.folded for s in place)
        if value in self.operands:
            return Node(value, place, (), 0, 1, moving, in_memory=True)
        op: Any = value.owner
        name = op.opcode.name
        if name in ("constant", "iota"):
            return Node(value, place, (), 0, 1, moving)
        if name == "reduce":
            return Node(value, place, (), self.reduce(op, inputs) + 1, 1, moving)
        own = 0.0
        row = op.opcode
        if row.elementwise:
            own = 1.0 if row.is_plain else 4.0 if row.is_root or not row.transcendental else 12.0
        elif name not in MAPPED:
            own = 4.0
        level = max((n.level for n in inputs), default=0)
        cost = own + (_moving_cost(inputs) if moving else sum(n.cost for n in inputs))
        return Node(value, place, inputs, level, cost, moving)

    def reduce(self, op: ReduceOp, nodes: Sequence[Node]) -> int:
        """The round in which a reduce folds."""
        count = len(op.inputs) // 2
        if any(start.level for start in nodes[count:]):
            raise Declined
        level = max(n.level for n in nodes[:count])
        if op not in self.folds:
            reducer = reducer_of(op)
            if reducer is None or len(arrays_in(op.output)) != count:
                raise Declined
            inputs, starts = op.inputs[:count], op.inputs[count:]
            self.folds[op] = Fold(op, inputs, starts, reducer, level)
            self.fold_inputs[op] = nodes[:count]
        return level


def _moving_cost(nodes: Sequence[Node]) -> float:
    """What values take for each element; those of the row are computed once."""
    return sum(n.cost for n in nodes if n.is_moving)


def _divides(node: Node) -> bool:
    """Whether it is a quotient by a number that is the same along a row."""
    op = node.value.owner
    return isinstance(op, DivideOp) and not _varies(node.inputs[1])


def _varies(node: Node) -> bool:
    """Whether a value is another at each place of a row."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        stack += node.inputs
        if not node.inputs and node.is_moving and not isinstance(node.value.owner, ConstantOp):
            return True
    return False
