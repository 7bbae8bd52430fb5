"""Simplification of StableHLO programs, as XLA's importer does it before it makes HLO."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.rewrites.stablehlo_simplify import rules

__all__ = ["StablehloTargetIndependentOptimizationPass", "simplify_program"]


def simplify_program(module: ModuleOp) -> bool:
    """Simplifies every function of `module`, in place; whether anything changed."""
    return rules.simplify_program(module)


@dataclass(frozen=True)
class StablehloTargetIndependentOptimizationPass(ModulePass):
    """
    Folds constants and simplifies StableHLO as XLA's importer does.

    Before:  `%r = stablehlo.multiply %one, %x : tensor<4xf32>`
    After:   `%x`
    Keeps: results, but that a product with 1 and a sum with 0 go, whatever the sign of zero.
    """

    name = "stablehlo-target-independent-optimization"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Runs on the whole module."""
        simplify_program(op)
