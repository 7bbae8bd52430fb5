"""What a module costs: operations, bytes, and how much of every operand is read.

XLA's counting rules exactly (`HloCostAnalysis`), its keys, its sums in f32; `trip_counts=True` counts
the rounds of loops whose number is known, which XLA does not. Source: XLA's behaviour, measured in
`test/unit/analysis/test_cost.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.cost import fusion as fusion
from mlirhlo.analysis.cost import rules as rules
from mlirhlo.analysis.cost.counts import BYTES, FLOPS, SECONDS, TRANSCENDENTALS, Counts
from mlirhlo.analysis.cost.visitor import Options, Visitor
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction

__all__ = ["CostAnalysis", "Options", "analyse", "analyse_each", "counter"]


@dataclass(frozen=True, slots=True)
class CostAnalysis:
    """Costs of a module and of each of its instructions."""

    total: Mapping[str, float]
    """Sums over the entry computation, with what it calls, by XLA's keys; zeros are left out."""
    instructions: Mapping[Instruction, Counts]
    """By instruction, fused ones and those of called computations included; each counted once."""

    @property
    def flops(self) -> float:
        """Floating-point and integer operations; -1 a custom call."""
        return self.total.get(FLOPS, 0.0)

    @property
    def transcendentals(self) -> float:
        """Elementary functions computed."""
        return self.total.get(TRANSCENDENTALS, 0.0)

    @property
    def bytes_accessed(self) -> float:
        """Bytes read and written by instructions, fused ones not counted; -1 a custom call."""
        return self.total.get(BYTES, 0.0)

    @property
    def optimal_seconds(self) -> float:
        """Sum over instructions of the time that the slowest of their needs takes, in seconds."""
        return self.total.get(SECONDS, 0.0)

    def of(self, instructions: Sequence[Instruction], key: str) -> float:
        """Sum of `key` over `instructions`."""
        return sum(self.instructions[op].get(key) for op in instructions)


def counter(module: ModuleOp, options: Options | None = None) -> Callable[[Instruction], Counts]:
    """Costs of single instructions of a module, for who wants a few of them."""
    return Visitor(HloModule(module).by_name(), options or Options()).instruction


def analyse(module: ModuleOp, options: Options | None = None) -> CostAnalysis:
    """Costs of a module: its entry computation, and all that it calls."""
    hlo = HloModule(module)
    visitor = Visitor(hlo.by_name(), options or Options())
    total = visitor.entry(hlo.entry)
    return CostAnalysis(total.nonzero(), visitor.instructions)


def analyse_each(module: ModuleOp, options: Options | None = None) -> Mapping[Instruction, Counts]:
    """Costs of the instructions that a module runs, as `analyse` has them, without the entry's sum."""
    hlo = HloModule(module)
    visitor = Visitor(hlo.by_name(), options or Options())
    visitor.prepare(hlo.entry)
    for op in hlo.entry.instructions:
        visitor.instruction(op)
    return visitor.instructions
