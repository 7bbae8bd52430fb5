"""A run of one computation: instructions in their order on one unit, asynchronous work beside it.

`-start` instructions hand work to the links or to the memory's copy engine and `-done` instructions wait for it; all
else takes its time. The critical path is the longest chain of dependencies through the same instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.base import Instruction

_DONE = ("-done", "-update")
_COPIES = ("copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start")


@dataclass(frozen=True, slots=True)
class Pair:
    """Asynchronous work: nanoseconds in which it ran, and those in which nothing else did."""

    start: Instruction
    duration: float
    exposed: float


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a computation, in nanoseconds."""

    total: float
    pairs: tuple[Pair, ...]
    critical: float
    path: tuple[Instruction, ...]


def run_schedule(order: Sequence[Instruction], duration: Callable[[Instruction], float]) -> Run:
    """Runs instructions in an order. `duration`: of each, that of asynchronous work with its start."""
    now = 0.0
    free = {"link": 0.0, "copy": 0.0}
    ends: dict[Instruction, float] = {}
    exposed: dict[Instruction, float] = {}
    lengths: dict[Instruction, float] = {}
    for op in order:
        name = op.opcode.name
        if name.endswith("-start") or name in ("send", "recv"):
            unit = "copy" if name in _COPIES else "link"
            lengths[op] = duration(op)
            free[unit] = ends[op] = max(now, free[unit]) + lengths[op]
            exposed[op] = 0.0
        elif name.endswith("-done"):
            start = _start(op)
            if start is not None and start in ends:
                exposed[start] += max(ends[start] - now, 0.0)
                now = max(now, ends[start])
        elif op.opcode.collective:
            now = free["link"] = max(now, free["link"]) + duration(op)
        else:
            now += duration(op)
    total = max(now, *free.values())
    for op, end in ends.items():
        if end > now and exposed[op] == 0.0:
            exposed[op] = end - now  # what nothing waits for
    pairs = [Pair(op, lengths[op], min(exposed[op], lengths[op])) for op in ends if lengths[op]]
    return Run(total, tuple(pairs), *_critical(order, duration))


def _start(op: Instruction) -> Instruction | None:
    """The instruction whose work a `-done` waits for."""
    value: SSAValue | None = op.inputs[0] if op.inputs else None
    while value is not None and isinstance(owner := value.owner, Instruction):
        if not owner.opcode.name.endswith(_DONE):
            return owner
        value = owner.inputs[0] if owner.inputs else None
    return None


def _critical(
    order: Sequence[Instruction], duration: Callable[[Instruction], float]
) -> tuple[float, tuple[Instruction, ...]]:
    finish: dict[Instruction, float] = {}
    before: dict[Instruction, Instruction | None] = {}
    for op in order:
        inputs = [v.owner for v in (*op.inputs, *op.control_predecessors)]
        known = [o for o in inputs if isinstance(o, Instruction) and o in finish]
        latest = max(known, key=lambda o: finish[o], default=None)
        before[op] = latest
        finish[op] = (finish[latest] if latest is not None else 0.0) + duration(op)
    if not finish:
        return 0.0, ()
    last = max(finish, key=lambda o: finish[o])
    path: list[Instruction] = []
    step: Instruction | None = last
    while step is not None:
        if duration(step) > 0:
            path.append(step)
        step = before[step]
    return finish[last], tuple(reversed(path))
