"""CHLO ops in terms of StableHLO, with the accuracy XLA's expansions have."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.rewrites.chlo_expansion.expand import expand_chlo as expand

__all__ = ["ChloLegalizeToStablehloPass", "expand_chlo"]


def expand_chlo(module: ModuleOp) -> bool:
    """Expands the CHLO ops that HLO lacks, and functions of complex numbers, in place.

    Returns whether there were any. Raises `HloError` HLO0425.
    """
    return expand(module)


@dataclass(frozen=True)
class ChloLegalizeToStablehloPass(ModulePass):
    """
    Writes CHLO ops as StableHLO arithmetic.

    Before:  `%r = chlo.asin %x : tensor<4xf32> -> tensor<4xf32>`
    After:   `2 atan2(x, 1 + sqrt((1 - x)(1 + x)))` as StableHLO ops
    Keeps: `chlo.erf`, `chlo.top_k`, `chlo.ragged_dot` and `chlo.mulhi`, which are HLO instructions.
    Needs: known sizes (`stablehlo-refine-shapes`).
    """

    name = "chlo-legalize-to-stablehlo"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Runs on the whole module."""
        expand_chlo(op)
