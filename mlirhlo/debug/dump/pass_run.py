"""The record of one pass."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class PassRun:
    """What one pass did, for the module's metadata."""

    name: str
    pipeline: str
    start_us: int
    end_us: int = 0
    changed: bool = False
    files: list[str] = field(default_factory=list[str])
