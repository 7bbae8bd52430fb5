"""Dataflow in which one value stands at each place: where control flow joins, a value of its own.

A leaf is an instruction and the shape index of a part that is no tuple. What an instruction makes itself is
a value, named by its leaf. Loops' state and results of branches are values too (phi values), named by the
leaf of the parameter, the loop or the conditional, but where only one value can come: what a loop hands
through unchanged stays the value it was. Computations that run as a whole have one caller each.
Source: behaviour of XLA's `HloDataflowAnalysis` in SSA form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
from mlirhlo.dialects.hlo.module import HloModule, Listing, holder
from mlirhlo.dialects.hlo.ops import GetTupleElementOp, ParameterOp, ReturnOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import leaves


@dataclass(frozen=True, slots=True)
class SingleValues:
    """The value at each leaf of one module."""

    computations: Mapping[str, ComputationOp]
    run: tuple[ComputationOp, ...]
    """Those that values are known of: all but the bodies of fusions."""
    callers: Mapping[str, Instruction]
    """The one instruction that runs a computation as a whole."""
    _handed_on: Mapping[Position, Value]
    """The value at each leaf that hands one on, and at those they come from."""
    _positions: Mapping[Value, tuple[Position, ...]]
    joins: Mapping[Value, tuple[Value, ...]]
    """Values that may become a phi value."""

    def at(self, op: Instruction, index: ShapeIndex) -> Value:
        """The value at a leaf."""
        position = (op, index)
        return self._handed_on.get(position, position)

    def positions(self, value: Value) -> tuple[Position, ...]:
        """Everywhere a value stands, its own position first."""
        return self._positions.get(value, (value,))

    def reads(self, value: Value) -> list[Use]:
        """Operands that are the value, or hold it, of instructions that do more than hand it on."""
        found: list[Use] = []
        for op, index in self.positions(value):
            for use in op.output.uses:
                user = use.operation
                if (
                    isinstance(user, Instruction)
                    and use.index < len(user.inputs)
                    and not isinstance(user, TupleOp | GetTupleElementOp)
                    and not (user.opcode.name in FORWARDS and use.index == 0)
                ):
                    found.append((user, use.index, index))
        return found

    def leaves_alive(self, value: Value) -> set[str]:
        """Computations that give the value back, or a part of it."""
        found: set[str] = set()
        for op, _ in self.positions(value):
            for use in op.output.uses:
                if isinstance(use.operation, ReturnOp):
                    computation = op.parent_op()
                    assert isinstance(computation, ComputationOp)
                    found.add(computation.computation_name)
        return found


def single_values(module: HloModule) -> SingleValues:
    """Values of `module`, whose call graph is flat."""
    computations = module.known(HloModule.by_name)
    fused = module.known(HloModule.fused_computations)
    run = {name: c for name, c in computations.items() if name not in fused}
    callers = callers_of(module.calling(), computations)
    sources: dict[Position, list[Position]] = {}
    users: dict[Position, list[Position]] = {}
    for op in module.candidates(*HANDING_ON):
        name = holder(op).computation_name
        if name not in run or (type(op) is ParameterOp and name not in callers):
            continue
        for index, _ in leaves(op.shape):
            found = sources_of(op, index, computations, callers)
            if found:
                sources[op, index] = found
            for source in found:
                users.setdefault(source, []).append((op, index))
    made = _as_stored([source for source in users if source not in sources], module)
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
        value_of,
        {value: tuple(found) for value, found in positions.items()},
        joins,
    )


def _as_stored(positions: list[Position], module: HloModule) -> list[Position]:
    """Positions in the order of their instructions, then of the parts."""
    wanted: dict[Instruction, list[ShapeIndex]] = {}
    for op, index in positions:
        wanted.setdefault(op, []).append(index)
    listed = module.known(Listing.of).instructions
    return [(op, index) for op in listed if op in wanted for index in sorted(wanted[op])]
