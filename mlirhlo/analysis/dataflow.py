"""Where values come from: which instruction made what stands at each place of the module.

A position is an instruction and a shape index. What an instruction makes itself is a value, named by
its position; tuples, loops, branches and calls hand values on. Where control flow joins, several
values may stand at one position (no phi values are made). Source: behaviour of XLA's
`HloDataflowAnalysis`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import TypeAlias, cast

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Operation

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    CallOp,
    ConditionalOp,
    CustomCallOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction, classes_of
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape
from mlirhlo.dialects.hlo.table import CONTROL_FLOW, Memory, opcodes

ShapeIndex: TypeAlias = tuple[int, ...]
Position: TypeAlias = tuple[Instruction, ShapeIndex]
Value: TypeAlias = Position
"""A value is the position that defines it."""
Use: TypeAlias = tuple[Instruction, int, ShapeIndex]
"""Instruction, operand number, shape index in the operand."""

FORWARDS = opcodes(lambda row: row.forwards)
"""Opcodes whose result is their first operand."""

HANDING_ON = classes_of(lambda row: row.memory is Memory.PASSED)
"""Classes of which some parts of results were made by others; all others make theirs themselves."""

_HANDING_IN = CONTROL_FLOW | {"async-start"}
"""Opcodes that hand operands to computations and take back what those return."""
_WRITES = frozenset({"dynamic-update-slice", "scatter"})
"""Opcodes that, at the end of a fusion, write over a parameter."""

_UPDATES = opcodes(lambda row: row.memory is Memory.UPDATED)
"""Opcodes whose result takes the place of their first operand."""

WRITING_IN_PLACE = classes_of(lambda row: row.memory in (Memory.UPDATED, Memory.CHOSEN))
"""Classes of which some write over operands."""


MOST_PLACES = 2_000_000
"""At which values may stand, each counted for itself: where loops follow each other, all that went into one may come
out of the next, so that there are as many as the square of their number."""


def indices(shape: Shape, index: ShapeIndex = ()) -> Iterator[ShapeIndex]:
    """Every shape index, tuples before their parts."""
    yield index
    if isinstance(shape, TupleShape):
        for at, part in enumerate(shape.elements):
            yield from indices(part, (*index, at))


def _is_read(user: Instruction, number: int) -> bool:
    """Whether an operand is data, not a control predecessor."""
    return CONTROL_PREDECESSORS not in user.properties or number < len(user.inputs)


class Readers:
    """Operands that are a part of what an instruction gives, or hold it."""

    def __init__(self) -> None:
        """Of nothing yet; those of an instruction are found when it is looked at."""
        self._known: dict[Instruction, dict[int | None, list[tuple[int, Instruction, int]]]] = {}

    def of(self, op: Instruction, index: ShapeIndex) -> list[tuple[Instruction, int]]:
        """Readers of the part and the numbers of their operands, in the order of the uses."""
        if not index and not isinstance(op.output.type, TupleType):
            return [
                (use.operation, use.index)
                for use in op.output.uses
                if isinstance(use.operation, Instruction) and _is_read(use.operation, use.index)
            ]
        known = self._known.get(op)
        if known is None:
            known = self._known[op] = {}
            for turn, use in enumerate(op.output.uses):
                user = use.operation
                if isinstance(user, Instruction) and _is_read(user, use.index):
                    # Those of one element stand apart: as many as there are elements.
                    element = user.index if isinstance(user, GetTupleElementOp) else None
                    known.setdefault(element, []).append((turn, user, use.index))
        elements = (None, index[0]) if index else known.keys()
        parts = [known[e] for e in elements if e in known]
        found = parts[0] if len(parts) == 1 else sorted(chain(*parts), key=itemgetter(0))
        return [(user, number) for _, user, number in found]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where what stands at each position comes from."""

    computations: Mapping[str, ComputationOp]
    of: Mapping[Position, list[Position]]
    """Positions whose values stand at a position; none where it is a value of its own."""

    @property
    def values(self) -> Iterator[Value]:
        """Positions that are values of their own."""
        return (position for position, found in self.of.items() if not found)


def sources(module: HloModule) -> Sources:
    """Of all positions of `module` as it is now."""
    computations = module.by_name()
    live = [op for c in computations.values() for op in c.instructions]
    callers = callers_of(live, computations)
    return Sources(
        computations,
        {
            (op, index): sources_of(op, index, computations, callers)
            for op in live
            for index in indices(op.shape)
        },
    )


@dataclass(frozen=True, slots=True)
class Dataflow:
    """Values of one module."""

    computations: Mapping[str, ComputationOp]
    sets: Mapping[Position, frozenset[Value]]
    """Values that may stand at each position."""
    positions: Mapping[Value, tuple[Position, ...]]
    """Everywhere a value stands, its own position first."""
    _readers: Readers = field(default_factory=Readers)

    def at(self, op: Instruction, index: ShapeIndex = ()) -> frozenset[Value]:
        """Values that may stand at a position."""
        return self.sets[op, index]

    def uses(self, value: Value) -> tuple[Use, ...]:
        """Operands that are the value, or hold it; handing on counts."""
        return tuple(
            (user, number, index)
            for op, index in self.positions[value]
            for user, number in self._readers.of(op, index)
        )


def dataflow(module: HloModule) -> Dataflow:
    """Values of `module` as it is now. Raises `HloError` HLO0110 where there are too many at its positions together."""
    found_in = sources(module)
    users: dict[Position, list[Position]] = {}
    sets: dict[Position, set[Value]] = {}
    for position, found in found_in.of.items():
        sets[position] = set() if found else {position}
        for source in found:
            users.setdefault(source, []).append(position)
    positions: dict[Value, list[Position]] = {p: [p] for p in found_in.values}
    work, left = list(positions), MOST_PLACES
    while work and left >= 0:
        position = work.pop()
        here = sets[position]
        for user in users.get(position, ()):
            there = sets[user]
            if not here <= there:
                left += len(there)
                there |= here
                left -= len(there)
                work.append(user)
    if left < 0:
        raise error(
            "HLO0110",
            f"values stand at more than {MOST_PLACES:,} places, counted for each value",
            help="--print-analysis=alias says which of them share memory, in time that goes with the module's size",
        )
    for position, values in sets.items():
        for value in values:
            if value != position:
                positions[value].append(position)
    return Dataflow(
        found_in.computations,
        {p: frozenset(v) for p, v in sets.items()},
        {v: tuple(p) for v, p in positions.items()},
    )


class Callers(dict[str, list[Instruction]]):
    """By computation: those that hand values to it and back, once for each reference."""

    def __init__(self) -> None:
        """Of nothing yet."""
        self.turns: dict[str, list[int]] = {}
        """Beside each caller, which of the computations that it calls is meant."""


def callers_of(live: Iterable[Instruction], computations: Mapping[str, ComputationOp]) -> Callers:
    """Those that hand values to a computation and back: not a reduce to its function of elements."""
    found = Callers()
    for op in live:
        if op.opcode.name in _HANDING_IN:
            for turn, name in enumerate(op.called_computations):
                if name in computations:
                    found.setdefault(name, []).append(op)
                    found.turns.setdefault(name, []).append(turn)
    return found


def operand_at(reader: Operation, number: int, index: ShapeIndex) -> Position:
    """The position that a part of an operand is."""
    return cast(Instruction, reader._operands[number].owner), index  # pyright: ignore[reportPrivateUsage]


ReadAt: TypeAlias = Callable[[Operation, int, ShapeIndex], Position]
"""As `operand_at`: what stands at a part of an operand."""


def sources_of(
    op: Instruction,
    index: ShapeIndex,
    computations: Mapping[str, ComputationOp],
    callers: Callers,
    read_at: ReadAt = operand_at,
) -> list[Position]:
    """Positions whose values stand at this one; none where it is a value of its own."""
    name = op.opcode.name
    if op.opcode.elementwise:
        return []

    def given_back(computation: str) -> Position:
        return read_at(computations[computation].terminator, 0, index)

    match op:
        case TupleOp():
            return [read_at(op, index[0], index[1:])] if index else []
        case GetTupleElementOp():
            return [read_at(op, 0, (op.index, *index))]
        case WhileOp():
            return [read_at(op, 0, index), given_back(op.body)]
        case CallOp():
            return [given_back(op.to_apply)]
        case ConditionalOp():
            return [given_back(name) for name in op.called_computations]
        case ParameterOp():
            return _arguments(op, index, computations, callers, read_at)
        case _ if name in FORWARDS:
            return [read_at(op, 0, index)]
        case _:
            return _asynchronous(op, index, computations, read_at)


def _asynchronous(
    op: Instruction, index: ShapeIndex, computations: Mapping[str, ComputationOp], read_at: ReadAt
) -> list[Position]:
    """Pairs hand on: `((operands), result, context…)` of a start, then of its updates and done."""
    match op.opcode.name:
        case "async-start" if index[:1] == (0,) and len(index) > 1:
            return [read_at(op, index[1], index[2:])]
        case "async-start" if index[:1] == (1,):
            return [read_at(computations[op.called_computations[0]].terminator, 0, index[1:])]
        case "async-update":
            return [read_at(op, 0, index)]
        case "async-done":
            return [read_at(op, 0, (1, *index))]
        case "copy-start" if index == (1,):
            return [read_at(op, 0, ())]
        case "copy-done":
            return [read_at(op, 0, (0,))]
        case "send" if index == (0,):
            return [read_at(op, 0, ())]
        case "recv-done" if index == (0,):
            return [read_at(op, 0, (0,))]
        case "all-gather-start" | "collective-permute-start" if index == (0,):
            return [read_at(op, 0, ())]
        case "all-gather-done" | "collective-permute-done":
            return [read_at(op, 0, (1, *index))]
        case _:
            return []


def _arguments(
    op: ParameterOp,
    index: ShapeIndex,
    computations: Mapping[str, ComputationOp],
    callers: Callers,
    read_at: ReadAt,
) -> list[Position]:
    computation = cast(ComputationOp, op.parent_op())
    name = computation.computation_name
    found: list[Position] = []
    for caller, turn in zip(callers.get(name, ()), callers.turns.get(name, ()), strict=True):
        match caller:
            case WhileOp():
                found.append(read_at(caller, 0, index))
                found.append(read_at(computations[caller.body].terminator, 0, index))
            case ConditionalOp():
                found.append(read_at(caller, 1 + turn, index))
            case _:
                found.append(read_at(caller, op.parameter_number, index))
    return found


def in_place_pairs(
    op: Instruction, computations: Mapping[str, ComputationOp]
) -> tuple[tuple[int, ShapeIndex, ShapeIndex], ...]:
    """Operand, index in it and index in the result that have to share memory."""
    name = op.opcode.name
    if name in _UPDATES:
        return ((0, (), ()),) if not isinstance(op.shape, TupleShape) else ()
    if name == "scatter":
        count = (len(op.inputs) - 1) // 2
        is_tuple = isinstance(op.shape, TupleShape)
        return tuple((at, (), (at,) if is_tuple else ()) for at in range(count))
    if isinstance(op, (FusionOp, CustomCallOp)) and op.output_to_operand_aliasing is not None:
        return tuple(
            (entry.operand_number, entry.operand_index, entry.output_index)
            for entry in op.output_to_operand_aliasing.entries
        )
    if isinstance(op, FusionOp):
        return tuple(_fused_updates(op, computations[op.calls]))
    return ()


def _fused_updates(
    op: FusionOp, computation: ComputationOp
) -> Iterator[tuple[int, ShapeIndex, ShapeIndex]]:
    """Updates of parameters that are results, where nothing else reads the parameter."""
    root = computation.root
    is_tuple = isinstance(root, TupleOp)
    for at, part in enumerate(root.inputs if is_tuple else (root.output,)):
        owner = part.owner
        if isinstance(owner, Instruction) and owner.opcode.name in _WRITES:
            target = owner.inputs[0].owner
            if isinstance(target, ParameterOp) and len(list(target.output.uses)) == 1:
                yield target.parameter_number, (), ((at,) if is_tuple else ())
