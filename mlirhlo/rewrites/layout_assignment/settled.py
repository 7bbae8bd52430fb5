"""Whether a module has the layouts already that would be assigned: only places in question are looked at.

Most arrays are row-major, and what relates row-major arrays agrees with that, but for transposes, broadcasts
that reorder dimensions, and custom calls that ask for something else. So in question are those, and what
makes or reads an array that is not row-major. Nothing changes where at each of them

* arrays have the layouts that are given or asked for, and those that they are tied to;
* the layout with which nothing moves is the one that the array at the other end has, or that one has its
  layout from those it is tied to, which come first;
* and an array that is not row-major has its layout from somewhere.

Then every layout ever offered is the one that is there. Where this cannot be shown, all layouts are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, cast

from xdsl.ir import Attribute, Operation

from mlirhlo.analysis.dataflow import Position
from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    BroadcastOp,
    CallOp,
    ConditionalOp,
    CustomCallOp,
    GetTupleElementOp,
    ParameterOp,
    ReturnOp,
    TransposeOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction, classes_of
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, leaves, subshape
from mlirhlo.dialects.hlo.table import CONTROL_FLOW, HANDS_ON, Calls, Layouts, Movement
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.layout_assignment.moves import Order, descending
from mlirhlo.rewrites.layout_assignment.relations import (
    Hint,
    Move,
    Pin,
    Relation,
    ShapeIndex,
    Tie,
    has_one_layout,
    is_pinned,
    relations,
)


class _Link(NamedTuple):
    """Whose layout an array may get."""

    other: Position
    takes: Move | None
    """Its layout, given that of the other; None where the two are tied, and have the same."""


def is_settled(
    module: HloModule, callers: Mapping[str, list[Instruction]], *, row_major_libraries: bool
) -> bool:
    """Whether all layouts would be found as they are; False where that is not clear at once.

    `callers` has the one instruction that runs each computation as a whole.
    """
    found = _Settled(module, {n: c[0] for n, c in callers.items()}, row_major_libraries)
    return found.header_agrees() and all(map(found.is_right, dict.fromkeys(found.in_question())))


@dataclass(slots=True)
class _Settled:
    module: HloModule
    callers: Mapping[str, Instruction]
    row_major_libraries: bool
    computations: Mapping[str, ComputationOp] = field(init=False)
    entry: ComputationOp = field(init=False)
    layout: ProgramLayout = field(init=False)
    run: dict[ComputationOp, list[Instruction]] = field(init=False)
    """Computations whose layouts are assigned, with their instructions."""
    _parameters: dict[str, dict[int, Instruction]] = field(
        default_factory=dict[str, dict[int, Instruction]]
    )
    _row_major: dict[int, bool] = field(default_factory=dict[int, bool])
    """By the id of a type of a result of the module."""
    _relations: dict[Instruction, dict[int | None, list[Relation]]] = field(
        default_factory=dict[Instruction, "dict[int | None, list[Relation]]"]
    )
    """By operand; those that are about a result only have None."""
    _anchored: set[Position] = field(default_factory=set[Position])
    """What has its layout from those it is tied to."""
    _reached: set[Position] = field(default_factory=set[Position])
    """What has it from somewhere."""

    def __post_init__(self) -> None:
        self.computations = self.module.known(HloModule.by_name)
        self.entry, self.layout = self.module.entry, self.module.program_layout
        called = [
            self.computations[name]
            for name, caller in self.callers.items()
            if caller.opcode.name in CONTROL_FLOW
        ]
        self.run = {
            computation: instruction_list(computation) for computation in (self.entry, *called)
        }

    def header_agrees(self) -> bool:
        """Whether the entry's parameters and result have the layouts that the header gives them."""
        parameters = self.parameters_of(self.entry.computation_name)
        given = [(parameters[n].shape, shape) for n, shape in enumerate(self.layout.parameters)]
        return all(
            not isinstance(part, ArrayShape)
            or part.layout is None
            or part.layout.minor_to_major == _order(subshape(has, index))
            for has, shape in [*given, (self.entry.root.shape, self.layout.result)]
            for index, part in leaves(shape)
        )

    def parameters_of(self, name: str) -> dict[int, Instruction]:
        """By number, of a computation that runs as a whole."""
        found = self._parameters.get(name)
        if found is None:
            parameters = [
                op for op in self.run[self.computations[name]] if isinstance(op, ParameterOp)
            ]
            found = self._parameters[name] = {op.parameter_number: op for op in parameters}
        return found

    def in_question(self) -> Iterator[Instruction]:
        """What makes or reads arrays that are not row-major, and what may be unlike its operands."""
        for computation, instructions in self.run.items():
            for op in instructions:
                if not self._is_row_major(op.results[0].type):
                    yield op
                    for use in op.output.uses:
                        yield from self._reading(computation, use.operation)
                elif type(op) in _UNLIKE and _is_unlike(op):
                    yield op

    def _reading(self, computation: ComputationOp, user: Operation) -> Iterator[Instruction]:
        if isinstance(user, Instruction):
            yield user
            if isinstance(user, (CallOp, ConditionalOp)):
                for name in user.called_computations:
                    yield from self.parameters_of(name).values()
        elif computation is not self.entry:
            yield self.callers[computation.computation_name]

    def is_right(self, op: Instruction) -> bool:
        """Whether nothing at this instruction asks for other layouts than there are."""
        for index, part in leaves(op.shape):
            if not isinstance(part, ArrayShape):
                continue
            mine = _order(part)
            if any(_order_at(other) != mine for other in self._made_of(op, index)):
                return False
            if mine != descending(part.rank) and not self._has_source((op, index), self._reached):
                return False
        return all(
            self._agrees(op, relation)
            for relations_of_one in self._relations_of(op).values()
            for relation in relations_of_one
        )

    def _agrees(self, op: Instruction, relation: Relation) -> bool:
        match relation:
            case Tie(number, index):
                return _order_at(_operand(op, number)) == _order_at((op, index))
            case Pin(None, index, order):
                return _order_at((op, index)) == order
            case Pin(number, index, order):
                assert number is not None
                return _order_at(_operand(op, number, index)) == order
            case Hint(number, index, forward, backward):
                source, result = _operand(op, number), (op, index)
                if not _is_array(source) or not _is_array(result):
                    return True
                before, after = _order_at(source), _order_at(result)
                goes_on = forward is None or forward(before) in (None, after)
                goes_back = backward is None or backward(after) in (None, before)
                return (goes_on or self._has_source(result, self._anchored)) and (
                    goes_back or self._has_source(source, self._anchored)
                )

    def _has_source(self, position: Position, known: set[Position]) -> bool:
        """Whether what is given spreads to the array: along ties; for `_reached` wherever nothing moves."""
        only_ties = known is self._anchored
        before: dict[Position, Position | None] = {position: None}
        stack = [position]
        while stack:
            here = stack.pop()
            if here in known or self._is_given(here):
                # All on the way have it from here; where there are only ties, all that were seen.
                way: Position | None = here
                while way is not None:
                    known.add(way)
                    way = before[way]
                known.update(before if only_ties else ())
                return True
            for link in self._links(here):
                if link.other not in before and (
                    link.takes is None
                    or (not only_ties and link.takes(_order_at(link.other)) is not None)
                ):
                    before[link.other] = here
                    stack.append(link.other)
        return False

    def _is_given(self, position: Position) -> bool:
        """Whether the header, who makes the array, or one who reads it, says how it is laid out."""
        op, index = position
        libraries = self.row_major_libraries
        if is_pinned(op, None, index, row_major_libraries=libraries):
            return True
        computation = cast(ComputationOp, op.parent_op())
        if isinstance(op, ParameterOp) and computation is self.entry:
            if _is_laid_out(subshape(self.layout.parameters[op.parameter_number], index)):
                return True
        for use in op.output.uses:
            user = use.operation
            if isinstance(user, ReturnOp):
                if computation is self.entry and _is_laid_out(subshape(self.layout.result, index)):
                    return True
            elif isinstance(user, Instruction) and use.index < len(user.inputs):
                if is_pinned(user, use.index, index, row_major_libraries=libraries):
                    return True
        return False

    def _is_row_major(self, type_: Attribute) -> bool:
        known = self._row_major.get(id(type_))
        if known is None:
            parts = [part for _, part in leaves(shape_of(type_)) if isinstance(part, ArrayShape)]
            known = all(_order(part) == descending(part.rank) for part in parts)
            self._row_major[id(type_)] = known
        return known

    def _relations_of(self, op: Instruction) -> dict[int | None, list[Relation]]:
        found = self._relations.get(op)
        if found is None:
            found = self._relations[op] = {}
            for relation in relations(op, row_major_libraries=self.row_major_libraries):
                found.setdefault(relation.number, []).append(relation)
        return found

    def _links(self, position: Position) -> Iterator[_Link]:
        """Arrays whose layouts this one may get; the same as `Problem` finds."""
        op, index = position
        for other in self._made_of(op, index):
            yield _Link(other, None)
        for relations_of_one in self._relations_of(op).values():
            for relation in relations_of_one:
                match relation:
                    case Tie(number, at) if at == index:
                        yield _Link(_operand(op, number), None)
                    case Hint(number, at, takes) if at == index and takes is not None:
                        if _is_array(_operand(op, number)):
                            yield _Link(_operand(op, number), takes)
                    case _:
                        pass
        for use in op.output.uses:
            user = use.operation
            if isinstance(user, ReturnOp):
                yield from self._given_back(cast(ComputationOp, user.parent_op()), index)
            elif isinstance(user, Instruction) and use.index < len(user.inputs):
                yield from self._read(user, use.index, index)

    def _made_of(self, op: Instruction, index: ShapeIndex) -> Iterator[Position]:
        """What is laid out alike because it is the same array, or handed to and fro."""
        match op:
            case TupleOp():
                yield _operand(op, index[0], index[1:])
            case GetTupleElementOp():
                yield _operand(op, 0, (op.index, *index))
            case WhileOp():
                yield _operand(op, 0, index)
                yield self.computations[op.body].root, index
                yield self.parameters_of(op.body)[0], index
                yield self.parameters_of(op.condition)[0], index
            case CallOp() | ConditionalOp():
                for name in op.called_computations:
                    yield self.computations[name].root, index
            case ParameterOp():
                name = cast(ComputationOp, op.parent_op()).computation_name
                match caller := self.callers.get(name):
                    case WhileOp():
                        yield caller, index
                    case CallOp():
                        yield _operand(caller, op.parameter_number, index)
                    case ConditionalOp():
                        branch = caller.called_computations.index(name)
                        yield _operand(caller, 1 + branch, index)
                    case _:
                        pass
            case _ if op.opcode.name in HANDS_ON:
                yield _operand(op, 0, index)
            case _ if index and has_one_layout(op):
                rank = _rank(op, index)
                yield from (
                    (op, at) for at, _ in leaves(op.shape) if _rank(op, at) == rank and at != index
                )
            case _:
                pass

    def _given_back(self, computation: ComputationOp, index: ShapeIndex) -> Iterator[_Link]:
        if computation is not self.entry:
            caller = self.callers[computation.computation_name]
            if not isinstance(caller, WhileOp) or caller.body == computation.computation_name:
                yield _Link((caller, index), None)

    def _read(self, user: Instruction, number: int, index: ShapeIndex) -> Iterator[_Link]:
        """Of a part of operand `number`."""
        match user:
            case TupleOp():
                yield _Link((user, (number, *index)), None)
            case GetTupleElementOp():
                if index[:1] == (user.index,):
                    yield _Link((user, index[1:]), None)
            case WhileOp():
                yield _Link((user, index), None)
            case CallOp():
                yield _Link((self.parameters_of(user.to_apply)[number], index), None)
            case ConditionalOp():
                if number:
                    name = user.called_computations[number - 1]
                    yield _Link((self.parameters_of(name)[0], index), None)
            case _ if user.opcode.name in HANDS_ON:
                if number == 0:
                    yield _Link((user, index), None)
            case _:
                for relation in self._relations_of(user).get(number, ()) if not index else ():
                    match relation:
                        case Tie(_, result):
                            yield _Link((user, result), None)
                        case Hint(_, result, _, takes) if takes is not None:
                            if _is_array((user, result)):
                                yield _Link((user, result), takes)
                        case _:
                            pass


_UNLIKE = classes_of(
    lambda row: (
        row.calls is Calls.TARGET
        or (row.movement in (Movement.PERMUTE, Movement.BROADCAST) and row.layouts is Layouts.FREE)
    )
)


def _is_unlike(op: Instruction) -> bool:
    """Whether row-major operands do not go with a row-major result without a move, or are not wanted."""
    if isinstance(op, (TransposeOp, BroadcastOp)):
        dimensions = op.dimensions
        return any(a > b for a, b in pairwise(dimensions))
    return isinstance(op, CustomCallOp) and op.operand_layout_constraints is not None


def _is_array(position: Position) -> bool:
    op, index = position
    return isinstance(subshape(op.shape, index), ArrayShape)


def _rank(op: Instruction, index: ShapeIndex) -> int:
    return cast(ArrayShape, subshape(op.shape, index)).rank


def _operand(op: Instruction, number: int, index: ShapeIndex = ()) -> Position:
    return cast(Instruction, op.inputs[number].owner), index


def _is_laid_out(shape: Shape) -> bool:
    return isinstance(shape, ArrayShape) and shape.layout is not None


def _order_at(position: Position) -> Order:
    op, index = position
    return _order(subshape(op.shape, index))


def _order(shape: Shape) -> Order:
    assert not isinstance(shape, TupleShape)
    if not isinstance(shape, ArrayShape):
        return ()
    return descending(shape.rank) if shape.layout is None else shape.layout.minor_to_major
