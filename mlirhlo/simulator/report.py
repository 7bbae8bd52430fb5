"""What a launch reports: findings of the checks, and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlirhlo.diagnostics import Diagnostic


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

    @property
    def thread_instructions(self) -> int:
        """Instructions of threads of all classes."""
        return sum(self.instructions.values())

    def __add__(self, other: Figures) -> Figures:
        classes = dict(self.instructions)
        for name, count in other.instructions.items():
            classes[name] = classes.get(name, 0) + count
        return Figures(
            classes,
            self.warp_instructions + other.warp_instructions,
            self.global_memory + other.global_memory,
            self.shared_memory + other.shared_memory,
        )


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """What one launch did."""

    findings: tuple[Diagnostic, ...] = ()
    """Faults that did not stop the launch: races, reads of uninitialised bytes, divergent barriers."""
    figures: Figures = Figures()
