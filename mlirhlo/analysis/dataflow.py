"""Where values come from: which instruction made what stands at each place of the module.

A position is an instruction and a shape index. What an instruction makes itself is a value, named by
its position; tuples, loops, branches and calls hand values on. Where control flow joins, several
values may stand at one position (no phi values are made). Source: behaviour of XLA's
`HloDataflowAnalysis`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.ir import Operation

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
from mlirhlo.dialects.hlo.ops.base import OP_CLASSES, Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape

ShapeIndex: TypeAlias = tuple[int, ...]
Position: TypeAlias = tuple[Instruction, ShapeIndex]
Value: TypeAlias = Position
"""A value is the position that defines it."""
Use: TypeAlias = tuple[Instruction, int, ShapeIndex]
"""Instruction, operand number, shape index in the operand."""

FORWARDS = frozenset({"bitcast", "domain", "opt-barrier", "optimization-barrier", "add-dependency"})
"""Opcodes whose result is their first operand."""

HANDING_ON = frozenset(
    cls
    for name, cls in OP_CLASSES.items()
    if name in FORWARDS
    or name in ("tuple", "get-tuple-element", "parameter", "while", "call", "conditional")
    or name in ("async-start", "async-update", "async-done", "copy-start", "copy-done", "send")
    or name in ("recv-done", "all-gather-start", "all-gather-done")
    or name in ("collective-permute-start", "collective-permute-done")
)
"""Classes of which some parts of results were made by others; all others make theirs themselves."""

_WRITES = frozenset({"dynamic-update-slice", "scatter"})
"""Opcodes that, at the end of a fusion, write over a parameter."""

_UPDATES = frozenset({"dynamic-update-slice", "all-reduce-start", "all-reduce-done"})
"""Opcodes whose result takes the place of their first operand."""

WRITING_IN_PLACE = frozenset(
    OP_CLASSES[name] for name in (*_UPDATES, "scatter", "fusion", "custom-call")
)
"""Classes of which some write over operands."""


def indices(shape: Shape, index: ShapeIndex = ()) -> Iterator[ShapeIndex]:
    """Every shape index, tuples before their parts."""
    yield index
    if isinstance(shape, TupleShape):
        for at, part in enumerate(shape.elements):
            yield from indices(part, (*index, at))


@dataclass(frozen=True, slots=True)
class Dataflow:
    """Values of one module."""

    computations: Mapping[str, ComputationOp]
    sets: Mapping[Position, frozenset[Value]]
    """Values that may stand at each position."""
    positions: Mapping[Value, tuple[Position, ...]]
    """Everywhere a value stands, its own position first."""

    def at(self, op: Instruction, index: ShapeIndex = ()) -> frozenset[Value]:
        """Values that may stand at a position."""
        return self.sets[op, index]

    def uses(self, value: Value) -> tuple[Use, ...]:
        """Operands that are the value, or hold it; handing on counts."""
        found: list[Use] = []
        for op, index in self.positions[value]:
            for use in op.output.uses:
                user = use.operation
                if not isinstance(user, Instruction) or use.index >= len(user.inputs):
                    continue
                if not isinstance(user, GetTupleElementOp) or index[:1] in ((), (user.index,)):
                    found.append((user, use.index, index))
        return tuple(found)


def dataflow(module: HloModule) -> Dataflow:
    """Values of `module` as it is now."""
    computations = module.by_name()
    sources: dict[Position, list[Position]] = {}
    users: dict[Position, list[Position]] = {}
    sets: dict[Position, set[Value]] = {}
    live = [op for c in computations.values() for op in c.instructions]
    callers = callers_of(live, computations)
    for op in live:
        for index in indices(op.shape):
            position = (op, index)
            found = sources_of(op, index, computations, callers)
            sources[position] = found
            sets[position] = set() if found else {position}
            for source in found:
                users.setdefault(source, []).append(position)
    work = [position for position, found in sources.items() if not found]
    while work:
        position = work.pop()
        here = sets[position]
        for user in users.get(position, ()):
            there = sets[user]
            if not here <= there:
                there |= here
                work.append(user)
    positions: dict[Value, list[Position]] = {p: [p] for p, found in sources.items() if not found}
    for position, values in sets.items():
        for value in values:
            if value != position:
                positions[value].append(position)
    return Dataflow(
        computations,
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
        if op.opcode.name in ("call", "while", "conditional", "async-start"):
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
