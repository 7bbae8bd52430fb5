"""What a module costs on a described chip: operations, bytes, time along its schedule, memory over time."""

from __future__ import annotations

from mlirhlo.debug.cost.analysis import estimate
from mlirhlo.debug.cost.chip import Chip, chip, chip_names
from mlirhlo.debug.cost.report import CostReport, InstructionCost, Overlap

__all__ = ["Chip", "CostReport", "InstructionCost", "Overlap", "chip", "chip_names", "estimate"]
