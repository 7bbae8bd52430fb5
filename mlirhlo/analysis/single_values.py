"""Dataflow in which one value stands at each place: where control flow joins, a value of its own.

A leaf is an instruction and the shape index of a part that is no tuple. What an instruction makes itself is
a value, named by its leaf. Loops' state and results of branches are values too (phi values), named by the
leaf of the parameter, the loop or the conditional, but where only one value can come: what a loop hands
through unchanged stays the value it was. Computations that run as a whole have one caller each.
Source: behaviour of XLA's `HloDataflowAnalysis` in SSA form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.ir import Operation

from mlirhlo.analysis.dataflow import (
    FORWARDS,
    HANDING_ON,
    Position,
    ShapeIndex,
    Use,
    Value,
    callers_of,
    sources_of,
)
from mlirhlo.analysis.proposed_copies import Place, ProposedCopies
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    AsyncStartOp,
    CallOp,
    ConditionalOp,
    CopyOp,
    GetTupleElementOp,
    ParameterOp,
    ReturnOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import leaves

_HANDING_ON = HANDING_ON - {ParameterOp}
_TAKES_TUPLES_APART = frozenset({TupleOp, GetTupleElementOp})


@dataclass(frozen=True, slots=True)
class SingleValues:
    """The value at each leaf of one module, with the copies proposed for it."""

    computations: Mapping[str, ComputationOp]
    run: tuple[ComputationOp, ...]
    """Those that values are known of: all but the bodies of fusions."""
    callers: Mapping[str, Instruction]
    """The one instruction that runs a computation as a whole."""
    proposed: ProposedCopies
    _handed_on: Mapping[Position, Value]
    """The value at each leaf that hands one on, and at those they come from."""
    _positions: Mapping[Value, tuple[Position, ...]]
    joins: Mapping[Value, tuple[Value, ...]]
    """Values that may become a phi value."""

    def at(self, op: Instruction, index: ShapeIndex) -> Value:
        """The value at a leaf."""
        position = (op, index)
        return self._handed_on.get(position, position)

    def read_by(self, reader: Operation, number: int, index: ShapeIndex = ()) -> Value:
        """The value at a leaf of an operand."""
        return self.at(*self.proposed.source(reader, number, index))

    def read_by_copy(self, copy: CopyOp) -> Value:
        """The value that a copy, proposed or not, copies."""
        return self.at(*self.proposed.source_of(copy))

    def positions(self, value: Value) -> tuple[Position, ...]:
        """Everywhere a value stands, its own position first."""
        return self._positions.get(value, (value,))

    def _uses(self, value: Value) -> Iterator[Place]:
        for op, index in self.positions(value):
            yield from self.proposed.uses(op, index)

    def reads(self, value: Value) -> list[Use]:
        """Operands that are the value, or hold it, of instructions that do more than hand it on."""
        return [
            (user, number, index)
            for user, number, index in self._uses(value)
            if isinstance(user, Instruction)
            and type(user) not in _TAKES_TUPLES_APART
            and (number < len(user.inputs) or user in self.proposed.places)
            and not (number == 0 and user.opcode.name in FORWARDS)
        ]

    def leaves_alive(self, value: Value) -> set[str]:
        """Computations that give the value back, or a part of it."""
        holder = self.proposed.holder
        return {
            holder(user).computation_name
            for user, _, _ in self._uses(value)
            if isinstance(user, ReturnOp)
        }


def running(module: HloModule) -> list[Instruction]:
    """The candidates of the classes that run computations as a whole."""
    return module.candidates(CallOp, WhileOp, ConditionalOp, AsyncStartOp)


def single_values(module: HloModule, proposed: ProposedCopies | None = None) -> SingleValues:
    """Values of `module`, whose call graph is flat."""
    proposed = ProposedCopies() if proposed is None else proposed
    computations = module.known(HloModule.by_name)
    fused = module.known(HloModule.fused_computations)
    run = {name: c for name, c in computations.items() if name not in fused}
    callers = callers_of(running(module), computations)
    blocks = {id(c.block) for c in run.values()}
    handing_on = [op for op in module.candidates(*_HANDING_ON) if id(op.parent) in blocks]
    handing_on += [p for name, c in run.items() if name in callers for p in c.parameters]
    sources: dict[Position, list[Position]] = {}
    users: dict[Position, list[Position]] = {}
    for op in handing_on:
        for index, _ in leaves(op.shape):
            found = sources_of(op, index, computations, callers, proposed.source)
            if found:
                sources[op, index] = found
            for source in found:
                users.setdefault(source, []).append((op, index))
    made = [source for source in users if source not in sources]
    value_of: dict[Position, Value] = dict(zip(made, made, strict=True))
    # Values spread from where they are made. A place that two reach is a value itself, and stays one.
    work = made
    while work:
        for user in users.get(work.pop(), ()):
            before = value_of.get(user)
            if before == user:
                continue
            reaching = {value_of[s] for s in sources[user] if s in value_of}
            value = reaching.pop() if len(reaching) == 1 else user
            if value != before:
                value_of[user] = value
                work.append(user)
    # What nothing reaches, as the state of a loop that feeds itself only, is a value too.
    for position in sources:
        value_of.setdefault(position, position)
    positions: dict[Value, list[Position]] = {v: [v] for v in set(value_of.values())}
    joins: dict[Value, tuple[Value, ...]] = {}
    for position, value in value_of.items():
        if position != value:
            positions[value].append(position)
        elif position in sources:
            joined = dict.fromkeys(value_of[source] for source in sources[position])
            joins[position] = tuple(joined)
    return SingleValues(
        computations,
        tuple(run.values()),
        {name: found[0] for name, found in callers.items()},
        proposed,
        value_of,
        {value: tuple(found) for value, found in positions.items()},
        joins,
    )
