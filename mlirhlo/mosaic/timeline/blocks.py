"""Stretches of operations between two events, each timed once.

A block runs from one event (a copy, a wait, a signal, a loop, a branch) to the next; in between, an
operation starts when its operands begin to arrive and its unit is free, and is done when its last operand
has passed. The stretch takes until the last result is there. Nothing of it overlaps with the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.timeline.cost import Cost, cost_of
from mlirhlo.mosaic.timeline.figures import Chip

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from mlirhlo.mosaic.interpreter.code import Step

_EVENTS = frozenset(
    {
        "tpu.enqueue_dma",
        "tpu.enqueue_indirect_dma",
        "tpu.wait_dma",
        "tpu.wait_dma2",
        "tpu.wait_indirect_dma",
        "tpu.sem_signal",
        "tpu.sem_wait",
        "tpu.sem_read",
        "func.call",
    }
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Operations that run one after the other without an event."""

    cycles: float
    units: dict[str, float]
    """How long each unit is busy."""
    flops: float
    matrix_flops: float
    transcendentals: float
    op: Operation
    """The first of them."""


@dataclass(slots=True)
class _Board:
    """When units are free and values are there."""

    free: dict[str, float] = field(default_factory=dict[str, float])
    first: dict[SSAValue, float] = field(default_factory=dict["SSAValue", float])
    last: dict[SSAValue, float] = field(default_factory=dict["SSAValue", float])

    def place(self, op: Operation, cost: Cost) -> float:
        """When the operation's last result is there."""
        ready = max((self.first.get(value, 0.0) for value in op.operands), default=0.0)
        whole = max((self.last.get(value, 0.0) for value in op.operands), default=0.0)
        if not cost.cycles and not cost.latency:
            begin, end = ready, whole
        else:
            start = max(ready, *(self.free.get(u, 0.0) for u in (cost.unit, *_others(cost))))
            self.free[cost.unit] = start + cost.cycles
            for unit, busy in cost.also:
                self.free[unit] = start + busy
            begin = start + cost.latency
            end = max(start + cost.cycles, whole + 1) + cost.latency
        for value in op.results:
            self.first[value], self.last[value] = begin, end
        return end


def _others(cost: Cost) -> list[str]:
    return [unit for unit, busy in cost.also if busy]


def stretch_of(ops: Sequence[Operation], chip: Chip) -> Stretch:
    """The time of operations that follow each other."""
    board, units = _Board(), dict[str, float]()
    end = flops = matrix = transcendentals = 0.0
    for op in ops:
        cost = cost_of(op, chip)
        end = max(end, board.place(op, cost))
        for unit, busy in ((cost.unit, cost.cycles), *cost.also):
            units[unit] = units.get(unit, 0.0) + busy
        flops += cost.flops
        matrix += cost.flops if cost.unit == "mxu" else 0
        transcendentals += cost.transcendentals
    return Stretch(end, units, flops, matrix, transcendentals, ops[0])


def timed(steps: Sequence[Step], chip: Chip) -> list[Step]:
    """The steps of a block, with one more behind every stretch that lets the core's time pass."""
    found: list[Step] = []
    ops: list[Operation] = []

    def close() -> None:
        if not ops:
            return
        stretch = stretch_of(ops, chip)
        if stretch.cycles:
            found.append((_passing(stretch), (), (), ops[0]))
        ops.clear()

    for step in steps:
        op = step[3]
        if op.regions or name_of(op) in _EVENTS:
            close()
        else:
            ops.append(op)
        found.append(step)
    close()
    return found


def _passing(stretch: Stretch) -> Any:
    def run(frame: Any) -> tuple[()]:
        frame.core.time.compute(stretch)
        return ()

    return run
