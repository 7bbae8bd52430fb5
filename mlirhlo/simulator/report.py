"""What a launch reports: findings of the checks, and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from mlirhlo.diagnostics import Diagnostic

Count = TypeVar("Count", int, float)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Accesses to one state space."""

    requests: int = 0
    """Instructions of warps that accessed the space."""
    sectors: int = 0
    """Different sectors of 32 bytes that the requests touch, counted a request; 0 for shared memory."""
    bank_conflicts: int = 0
    """Extra passes of shared memory beyond what a conflict-free access of that width takes."""
    bytes_read: int = 0
    """Bytes that lanes asked for."""
    bytes_written: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.requests + other.requests,
            self.sectors + other.sectors,
            self.bank_conflicts + other.bank_conflicts,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
        )


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of one launch, or of several added up."""

    instructions: Mapping[str, int] = field(default_factory=dict[str, int])
    """Instructions of threads by class of the instruction table."""
    warp_instructions: int = 0
    """Instructions issued, counted once a warp."""
    global_memory: Traffic = Traffic()
    shared_memory: Traffic = Traffic()
    units: Mapping[str, float] = field(default_factory=dict[str, float])
    """What threads took of each unit of a multiprocessor (`performance`)."""
    warps: int = 0
    """Warps that ran."""
    buffer_bytes: int = 0
    """Sizes of the allocations that arguments point to."""

    @property
    def thread_instructions(self) -> int:
        """Instructions of threads of all classes."""
        return sum(self.instructions.values())

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            _added(self.instructions, other.instructions),
            self.warp_instructions + other.warp_instructions,
            self.global_memory + other.global_memory,
            self.shared_memory + other.shared_memory,
            _added(self.units, other.units),
            self.warps + other.warps,
            self.buffer_bytes + other.buffer_bytes,
        )


def _added(one: Mapping[str, Count], other: Mapping[str, Count]) -> dict[str, Count]:
    result = dict(one)
    for name, count in other.items():
        result[name] = result[name] + count if name in result else count
    return result


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """What one launch did."""

    findings: tuple[Diagnostic, ...] = ()
    """Faults that did not stop the launch: races, reads of uninitialised bytes, divergent barriers."""
    figures: Figures = Figures()
