"""The schedule of an op that becomes loops on the CPU."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.lowering.schedule.attributes import AnySchedule


@dataclass(frozen=True, slots=True)
class LoopSchedule(AnySchedule):
    """On the CPU: by which loops an op is computed."""

    kind: str
    """The algorithm, one of those that the op's lowering has (`lowering/loops`, a file for each op)."""
    lanes: int = -1
    """Elements of a vector; 0 where loops take one element at a time, -1 before that is chosen."""
    chunk: int = 0
    """Rounds of the loop that one part of the parallel loop around it takes."""
    capacity: int = 0
    """Elements of a buffer that is filled before it is looked through."""
