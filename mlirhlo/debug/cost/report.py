"""Results of `mlirhlo.debug.cost`: frozen data, times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlirhlo.debug.cost.memory import MemoryProfile


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """One instruction of a computation that runs."""

    name: str
    computation: str
    opcode: str
    flops: float
    """Of one execution, like all figures but `executions`."""
    bytes: float
    transcendentals: float
    seconds: float
    executions: float
    bound: str
    """`memory`, `compute`, `launch`, `link`, `measured`; `calls` for what runs computations."""
    source: str
    """`file:line`, where the module says it."""

    @property
    def total_seconds(self) -> float:
        """Of all executions."""
        return self.seconds * self.executions


@dataclass(frozen=True, slots=True)
class Overlap:
    """An asynchronous pair along the schedule."""

    start: str
    computation: str
    seconds: float
    """From its start to its end."""
    hidden: float
    """Of these, the seconds in which other work went on."""


@dataclass(frozen=True, slots=True)
class CostReport:
    """What a module costs on a chip."""

    module: str
    chip: str
    devices: int
    flops: float
    """With known trip counts; each of the three is XLA's count where no loop runs more than once."""
    bytes: float
    transcendentals: float
    seconds: float
    """Of one run along the schedule, asynchronous work overlapped."""
    critical_seconds: float
    """Of the longest chain of dependencies: what no schedule can be quicker than."""
    critical_path: tuple[str, ...]
    """Instructions of the entry computation on that chain, first to last, those that take time."""
    computations: Mapping[str, float]
    """Seconds of one execution of each computation that runs."""
    instructions: tuple[InstructionCost, ...]
    """Those that take time, the longest first."""
    overlaps: tuple[Overlap, ...]
    unknown: tuple[str, ...]
    """Custom calls whose operations are not known, and loops whose trip count is not."""
    memory: MemoryProfile | None
    """None for a module whose buffers cannot be assigned."""
