"""Layouts as unknowns: which arrays have one, what ties them, and how they are found.

Every array that an instruction makes has a layout; parts of tuples have that of the array they are, and a
loop's state has one for its parameter and result. What is given spreads: first along ties, then to where
an instruction would not have to move elements; of what could spread, the largest array goes first. What
nothing reaches is descending.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from mlirhlo.analysis.dataflow import Position
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import CallOp, ConditionalOp, GetTupleElementOp, TupleOp, WhileOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves, subshape
from mlirhlo.dialects.hlo.table import CONTROL_FLOW, HANDS_ON
from mlirhlo.rewrites.layout_assignment import moves
from mlirhlo.rewrites.layout_assignment.moves import Order
from mlirhlo.rewrites.layout_assignment.relations import (
    Hint,
    Move,
    Pin,
    ShapeIndex,
    Tie,
    has_one_layout,
    relations,
)

Use: TypeAlias = tuple[Instruction | ComputationOp, int]
"""An instruction and the number of an operand; a computation and 0 for what it gives back."""


@dataclass(slots=True, eq=False)
class _Unknown:
    first: Position
    bytes: int
    order: Order | None = None
    near: list[tuple[int, _Unknown, Move | None]] = field(
        default_factory=list[tuple[int, "_Unknown", "Move | None"]]
    )
    """Others that this one's layout says something about: how strongly (0 is more), which, and what."""
    pins: list[Order] = field(default_factory=list[Order])
    """Layouts that readers ask for."""

    def elected(self, offered: Order) -> Order:
        """The layout that most of those tied to it have or ask for, so that fewest copies are made."""
        votes: dict[Order, int] = {}
        for order in self.pins:
            votes[order] = votes.get(order, 0) + 1
        for strength, other, _ in self.near:
            if strength == 0 and (found := other.order):
                votes[found] = votes.get(found, 0) + 1
        if not votes or (len(votes) == 1 and offered in votes):
            return offered
        return max((offered, *votes), key=lambda order: votes.get(order, 0))


Wish: TypeAlias = _Unknown | Order
"""The layout that an operand has to have: that of another array, or one of its own."""


@dataclass(slots=True)
class Problem:
    """The unknown layouts of one module, whose call graph is flat."""

    run: list[ComputationOp] = field(default_factory=list[ComputationOp])
    """Computations whose layouts are assigned: those that run as a whole, callers first."""
    _unknowns: dict[Position, _Unknown] = field(default_factory=dict[Position, _Unknown])
    _wishes: dict[Use, dict[ShapeIndex, Wish]] = field(
        default_factory=dict["Use", "dict[ShapeIndex, Wish]"]
    )
    _order_of_spread: list[tuple[int, int, int, _Unknown, Order]] = field(
        default_factory=list[tuple[int, int, int, "_Unknown", "Order"]]
    )
    _count: int = 0

    @staticmethod
    def of(module: HloModule, *, row_major_libraries: bool) -> Problem:
        """The unknowns of `module`; the entry's layouts are those of its header."""
        problem = Problem()
        computations = module.by_name()
        callers: dict[str, WhileOp] = {}
        work = [module.entry]
        for computation in work:  # grows while it is walked
            problem.run.append(computation)
            for op in instruction_list(computation):
                if op.opcode.name in CONTROL_FLOW:
                    work += [computations[name] for name in op.called_computations]
                if isinstance(op, WhileOp):
                    callers |= dict.fromkeys(op.called_computations, op)
        for computation in problem.run:
            loop = callers.get(computation.computation_name)
            for op in instruction_list(computation):
                problem._name(op, loop)
        for computation in problem.run:
            for op in instruction_list(computation):
                problem._relate(op, computations, row_major_libraries=row_major_libraries)
        problem._pin_entry(module)
        return problem

    def order(self, op: Instruction, index: ShapeIndex) -> Order | None:
        """The layout found for a part of a result; None for what has none."""
        found = self._unknowns.get((op, index))
        return None if found is None else found.order

    def wishes(self, use: Use) -> Iterator[tuple[ShapeIndex, Order]]:
        """Layouts that an operand, or what a computation gives back, has to have, by part."""
        for index, wish in self._wishes.get(use, {}).items():
            order = wish.order if isinstance(wish, _Unknown) else wish
            assert order is not None
            yield index, order

    def solve(self) -> None:
        """Finds all layouts."""
        unknowns = tuple(dict.fromkeys(self._unknowns.values()))
        for unknown in unknowns:
            if unknown.order is not None:
                self._spread(unknown)
        self._drain()
        for unknown in unknowns:
            if unknown.order is None:
                op, index = unknown.first
                rank = cast(ArrayShape, subshape(op.shape, index)).rank
                self._offer(0, unknown, moves.descending(rank))
                self._drain()

    def _offer(self, strength: int, unknown: _Unknown, order: Order) -> None:
        self._count += 1
        item = (strength, -unknown.bytes, self._count, unknown, order)
        heapq.heappush(self._order_of_spread, item)

    def _drain(self) -> None:
        while self._order_of_spread:
            _, _, _, unknown, order = heapq.heappop(self._order_of_spread)
            if unknown.order is None:
                unknown.order = unknown.elected(order)
                self._spread(unknown)

    def _spread(self, unknown: _Unknown) -> None:
        assert unknown.order is not None
        for strength, other, move in unknown.near:
            if other.order is None:
                order = unknown.order if move is None else move(unknown.order)
                if order is not None:
                    self._offer(strength, other, order)

    def _name(self, op: Instruction, loop: WhileOp | None) -> None:
        """Says which unknown each part of a result has; operands come first."""
        name = op.opcode.name
        shape = op.shape
        if type(shape) is ArrayShape and loop is None and name not in HANDS_ON:
            self._unknowns[op, ()] = _Unknown((op, ()), shape.byte_size)  # as most are
            return
        one: dict[int, _Unknown] = {}
        for index, part in leaves(shape):
            if not isinstance(part, ArrayShape):
                continue
            known: Position | None = None
            if isinstance(op, TupleOp):
                known = _operand(op, index[0], index[1:])
            elif isinstance(op, GetTupleElementOp):
                known = _operand(op, 0, (op.index, *index))
            elif name in HANDS_ON:
                known = _operand(op, 0, index)
            elif name == "parameter" and loop is not None:
                known = (loop, index)
            if known is not None:
                self._unknowns[op, index] = self._unknowns[known]
            elif part.rank in one and has_one_layout(op):
                self._unknowns[op, index] = one[part.rank]
            else:
                self._unknowns[op, index] = one[part.rank] = _Unknown((op, index), part.byte_size)

    def _relate(
        self,
        op: Instruction,
        computations: dict[str, ComputationOp],
        *,
        row_major_libraries: bool,
    ) -> None:
        match op:
            case WhileOp():
                self._tie((op, 0), _source(op, 0), (op, ()))
                body = computations[op.body]
                self._tie((body, 0), (body.root, ()), (op, ()))
            case CallOp():
                callee = computations[op.to_apply]
                for number, parameter in enumerate(callee.parameters):
                    self._tie((op, number), _source(op, number), (parameter, ()))
                self._tie((callee, 0), (callee.root, ()), (op, ()))
            case ConditionalOp():
                for branch, name in enumerate(op.called_computations):
                    callee = computations[name]
                    for parameter in callee.parameters:
                        number = 1 + branch
                        self._tie((op, number), _source(op, number), (parameter, ()))
                    self._tie((callee, 0), (callee.root, ()), (op, ()))
            case _:
                for relation in relations(op, row_major_libraries=row_major_libraries):
                    self._add(op, relation)

    def _add(self, op: Instruction, relation: Tie | Hint | Pin) -> None:
        match relation:
            case Tie(number, index):
                self._tie((op, number), _source(op, number), (op, index))
            case Hint(number, index, forward, backward, strength):
                operand = self._unknowns.get(_operand(op, number, ()))
                result = self._unknowns.get((op, index))
                if operand is None or result is None:
                    return
                if forward is not None:
                    operand.near.append((strength, result, forward))
                if backward is not None:
                    result.near.append((strength, operand, backward))
            case Pin(None, index, order):
                self._unknowns[op, index].order = order
            case Pin(number, index, order):
                assert number is not None
                self._pin((op, number), _operand(op, number, index), index, order)

    def _tie(self, use: Use, source: Position, target: Position) -> None:
        """All parts of an operand have to be laid out as those of `target`, which is of its shape."""
        op, start = target
        owner, at = source
        shape = subshape(owner.shape, at)
        for index in ((),) if type(shape) is ArrayShape else [index for index, _ in leaves(shape)]:
            given = self._unknowns.get((owner, (*at, *index)))
            wanted = self._unknowns.get((op, (*start, *index)))
            if given is None or wanted is None:
                continue
            self._wishes.setdefault(use, {})[index] = wanted
            if given is not wanted:
                given.near.append((0, wanted, None))
                wanted.near.append((0, given, None))

    def _pin(self, use: Use, source: Position, index: ShapeIndex, order: Order) -> None:
        unknown = self._unknowns.get(source)
        if unknown is not None:
            self._wishes.setdefault(use, {})[index] = order
            unknown.pins.append(order)
            self._offer(0, unknown, order)

    def _pin_entry(self, module: HloModule) -> None:
        layout, entry = module.program_layout, module.entry
        for parameter, shape in zip(entry.parameters, layout.parameters, strict=True):
            for index, part in leaves(shape):
                if isinstance(part, ArrayShape) and part.layout is not None:
                    self._unknowns[parameter, index].order = part.layout.minor_to_major
        for index, part in leaves(layout.result):
            if isinstance(part, ArrayShape) and part.layout is not None:
                order = part.layout.minor_to_major
                self._pin((entry, 0), (entry.root, index), index, order)


def _operand(op: Instruction, number: int, index: ShapeIndex) -> Position:
    return cast(Instruction, op.inputs[number].owner), index


def _source(op: Instruction, number: int) -> Position:
    return _operand(op, number, ())
