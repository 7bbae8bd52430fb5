"""How often a loop runs, where its counter says so.

    i = init;  while (i < n) i += step        with constants, in integers that do not wrap around

Limit and step may be elements of the state that the body hands on; all of it may stand in calls.

Source: behaviour of XLA's trip count analysis.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.dialects.hlo.element_types import Kind
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    CallOp,
    CompareOp,
    ConstantOp,
    ConvertOp,
    CopyOp,
    GetTupleElementOp,
    ParameterOp,
    SubtractOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape

_FLIPPED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ", "NE": "NE"}


@dataclass(frozen=True, slots=True)
class Counter:
    """The counter of a loop."""

    index: int
    """Its place in the loop's state."""
    init: int
    step: int
    limit: int
    direction: str
    """The loop runs as long as `counter direction limit`."""
    low: int
    high: int
    """Range of the counter's type."""

    @property
    def trip_count(self) -> int | None:
        """Rounds; None when it runs for ever, or until the counter wraps around."""
        init, step, limit = self.init, self.step, self.limit
        if not _holds(init, self.direction, limit):
            return 0
        if step == 0:
            return None
        match self.direction:
            case "LT" if step > 0:
                rounds = -(-(limit - init) // step)
            case "LE" if step > 0:
                rounds = (limit - init) // step + 1
            case "GT" if step < 0:
                rounds = -(-(init - limit) // -step)
            case "GE" if step < 0:
                rounds = (init - limit) // -step + 1
            case "NE" if (limit - init) % step == 0 and (limit - init) // step > 0:
                rounds = (limit - init) // step
            case "EQ":
                rounds = 1
            case _:
                return None
        return rounds if self.low <= init + rounds * step <= self.high else None


def _holds(value: int, direction: str, limit: int) -> bool:
    return {
        "LT": value < limit,
        "LE": value <= limit,
        "GT": value > limit,
        "GE": value >= limit,
        "EQ": value == limit,
        "NE": value != limit,
    }[direction]


def counter_of(op: WhileOp, computations: Mapping[str, ComputationOp]) -> Counter | None:
    """The counter that alone decides how often the loop runs; None when there is no such."""
    if not isinstance(op.shape, TupleShape):
        return None
    loop = _Loop(op, computations)
    test, inside = loop.made(computations[op.condition].root.output)
    if not isinstance(test, CompareOp):
        return None
    for at, direction in ((0, test.direction), (1, _FLIPPED[test.direction])):
        index = loop.state_index(test.inputs[at], inside)
        limit = loop.fixed(test.inputs[1 - at], inside)
        if index is None or limit is None:
            continue
        shape = op.shape.elements[index]
        if not isinstance(shape, ArrayShape) or shape.dimensions:
            return None
        if shape.element_type.kind not in (Kind.SIGNED, Kind.UNSIGNED):
            return None
        init, step = loop.initial(index), loop.step(index)
        if init is None or step is None:
            continue
        return Counter(index, init, step, limit, direction, *_range(shape))
    return None


def trip_count(op: WhileOp, computations: Mapping[str, ComputationOp]) -> int | None:
    """Rounds of a loop; None when its counter does not tell."""
    found = counter_of(op, computations)
    return None if found is None else found.trip_count


def known_trip_count(op: Instruction) -> int | None:
    """Rounds of a loop as its backend configuration says; None where it does not."""
    try:
        config = json.loads(op.backend_config or "{}")
        return int(config["known_trip_count"]["n"])
    except (ValueError, KeyError, TypeError):
        return None


def runs_at_most_once(op: WhileOp, computations: Mapping[str, ComputationOp]) -> bool:
    """Whether a loop, if it runs, is known to end after its first round.

    So it does where its counter says so, or where the body sets what the condition asks for to a constant.
    """
    count = trip_count(op, computations)
    if count is not None:
        return count <= 1
    loop = _Loop(op, computations)
    test, inside = loop.made(computations[op.condition].root.output)
    if not isinstance(test, CompareOp):
        return False
    for at, direction in ((0, test.direction), (1, _FLIPPED[test.direction])):
        index = loop.state_index(test.inputs[at], inside)
        limit = loop.fixed(test.inputs[1 - at], inside)
        after = None if index is None else loop.next(index)
        value = None if after is None else loop.constant(*after)
        if limit is not None and value is not None:
            return not _holds(value, direction, limit)
    return False


def _range(shape: ArrayShape) -> tuple[int, int]:
    """Least and greatest value of a shape of integers."""
    bits = shape.element_type.bits
    if shape.element_type.kind is Kind.SIGNED:
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


@dataclass(frozen=True, slots=True)
class _Frame:
    """A call that has been entered, and where that stands; None for what no call is about."""

    call: CallOp
    outer: _Frame | None


@dataclass(frozen=True, slots=True)
class _Loop:
    """Follows values of a loop through copies and calls."""

    op: WhileOp
    computations: Mapping[str, ComputationOp]

    def made(
        self, value: SSAValue, frame: _Frame | None = None
    ) -> tuple[Operation | Block, _Frame | None]:
        """What makes the value, and in which call."""
        while True:
            owner = value.owner
            if isinstance(owner, CopyOp):
                value = owner.inputs[0]
            elif isinstance(owner, CallOp):
                frame = _Frame(owner, frame)
                value = self.computations[owner.to_apply].root.output
            elif isinstance(owner, ParameterOp) and frame is not None:
                value, frame = frame.call.inputs[owner.parameter_number], frame.outer
            else:
                return owner, frame

    def state_index(self, value: SSAValue, frame: _Frame | None) -> int | None:
        """Place in the state that a value of body or condition is."""
        owner, frame = self.made(value, frame)
        if not isinstance(owner, GetTupleElementOp):
            return None
        whole, _ = self.made(owner.operand, frame)
        return owner.index if isinstance(whole, ParameterOp) else None

    def constant(self, value: SSAValue, frame: _Frame | None) -> int | None:
        """The integer that a scalar is."""
        owner, frame = self.made(value, frame)
        if isinstance(owner, ConvertOp) and isinstance(shape := owner.shape, ArrayShape):
            found = self.constant(owner.inputs[0], frame)
            if found is None or shape.element_type.kind not in (Kind.SIGNED, Kind.UNSIGNED):
                return None
            low, high = _range(shape)
            return found if low <= found <= high else None
        if not isinstance(owner, ConstantOp) or owner.literal is None or owner.literal.is_elided:
            return None
        if not isinstance(owner.shape, ArrayShape) or owner.shape.dimensions:
            return None
        number = owner.literal.item()
        return number if isinstance(number, int) and not isinstance(number, bool) else None

    def next(self, index: int) -> tuple[SSAValue, _Frame | None] | None:
        """What the body makes of an element of the state."""
        root, frame = self.made(self.computations[self.op.body].root.output)
        return (root.inputs[index], frame) if isinstance(root, TupleOp) else None

    def fixed(self, value: SSAValue, frame: _Frame | None) -> int | None:
        """The integer that a scalar of body or condition is in every round."""
        index = self.state_index(value, frame)
        if index is None:
            return self.constant(value, frame)
        after = self.next(index)
        is_kept = after is not None and self.state_index(*after) == index
        return self.initial(index) if is_kept else None

    def initial(self, index: int) -> int | None:
        """The integer that an element of the state starts with."""
        start, frame = self.made(self.op.inputs[0])
        return self.constant(start.inputs[index], frame) if isinstance(start, TupleOp) else None

    def step(self, index: int) -> int | None:
        """What the body adds to an element of the state."""
        after = self.next(index)
        if after is None:
            return None
        owner, frame = self.made(*after)
        if isinstance(owner, AddOp | SubtractOp):
            sides = ((0, 1), (1, 0)) if isinstance(owner, AddOp) else ((0, 1),)
            for mine, other in sides:
                step = self.fixed(owner.inputs[other], frame)
                if self.state_index(owner.inputs[mine], frame) == index and step is not None:
                    return -step if isinstance(owner, SubtractOp) else step
        return None
