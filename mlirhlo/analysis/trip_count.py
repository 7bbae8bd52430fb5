"""How often a loop runs, where its counter says so.

    i = init;  while (i < n) i += step        with constants, in integers that do not wrap around

Source: behaviour of XLA's trip count analysis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import Kind
from mlirhlo.dialects.hlo.ops import (
    AddOp,
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
        if not self._holds(init):
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

    def _holds(self, value: int) -> bool:
        limit = self.limit
        return {
            "LT": value < limit,
            "LE": value <= limit,
            "GT": value > limit,
            "GE": value >= limit,
            "EQ": value == limit,
            "NE": value != limit,
        }[self.direction]


def counter_of(op: WhileOp, computations: Mapping[str, ComputationOp]) -> Counter | None:
    """The counter that alone decides how often the loop runs; None when there is no such."""
    condition, body = computations[op.condition], computations[op.body]
    test = condition.root
    if not isinstance(test, CompareOp) or not isinstance(op.shape, TupleShape):
        return None
    for at, direction in ((0, test.direction), (1, _FLIPPED[test.direction])):
        index = _state_index(test.inputs[at])
        limit = _constant(test.inputs[1 - at])
        if index is None or limit is None:
            continue
        shape = op.shape.elements[index]
        if not isinstance(shape, ArrayShape) or shape.dimensions:
            return None
        if shape.element_type.kind not in (Kind.SIGNED, Kind.UNSIGNED):
            return None
        init = _initial(op, index)
        step = _step(body, index)
        if init is None or step is None:
            return None
        bits = shape.element_type.bits
        signed = shape.element_type.kind is Kind.SIGNED
        low = -(1 << (bits - 1)) if signed else 0
        high = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
        return Counter(index, init, step, limit, direction, low, high)
    return None


def trip_count(op: WhileOp, computations: Mapping[str, ComputationOp]) -> int | None:
    """Rounds of a loop; None when its counter does not tell."""
    found = counter_of(op, computations)
    return None if found is None else found.trip_count


def _same(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, CopyOp):
        value = value.owner.inputs[0]
    return value


def _state_index(value: SSAValue) -> int | None:
    """Place in the state that the value is."""
    owner = _same(value).owner
    if isinstance(owner, GetTupleElementOp) and isinstance(owner.operand.owner, ParameterOp):
        return owner.index
    return None


def _constant(value: SSAValue) -> int | None:
    owner = _same(value).owner
    if isinstance(owner, ConvertOp):
        owner = owner.inputs[0].owner
    if not isinstance(owner, ConstantOp) or owner.literal is None or owner.literal.is_elided:
        return None
    if not isinstance(owner.shape, ArrayShape) or owner.shape.dimensions:
        return None
    number = owner.literal.item()
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _initial(op: WhileOp, index: int) -> int | None:
    start = _same(op.inputs[0]).owner
    return _constant(start.inputs[index]) if isinstance(start, TupleOp) else None


def _step(body: ComputationOp, index: int) -> int | None:
    root = body.root
    if not isinstance(root, TupleOp):
        return None
    owner = _same(root.inputs[index]).owner
    if isinstance(owner, AddOp | SubtractOp):
        sides = ((0, 1), (1, 0)) if isinstance(owner, AddOp) else ((0, 1),)
        for mine, other in sides:
            step = _constant(owner.inputs[other])
            if _state_index(owner.inputs[mine]) == index and step is not None:
                return -step if isinstance(owner, SubtractOp) else step
    return None
