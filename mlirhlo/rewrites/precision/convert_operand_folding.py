"""`convert_operand_folding`: dots and convolutions that read narrow operands as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import (
    ConvertOp,
    ConvolutionOp,
    DotOp,
    Instruction,
)
from mlirhlo.dialects.hlo.ops.base import classes_of
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import Movement
from mlirhlo.rewrites.algsimp.arithmetic.convert import holds
from mlirhlo.rewrites.algsimp.common import Builder, array, element, own_properties, typed
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule

_MOVES = classes_of(
    lambda row: (
        row.movement in (Movement.GATHER, Movement.PERMUTE, Movement.RESHAPE, Movement.SLICE)
        and not row.about_sizes
    )
)


def _chain(value: SSAValue) -> tuple[ConvertOp, list[Instruction]] | None:
    """The widening conversion that makes a value, and the moves behind it, last one first."""
    moves: list[Instruction] = []
    owner = value.owner
    while (
        isinstance(owner, Instruction) and type(owner) in _MOVES and not owner.control_predecessors
    ):
        moves.append(owner)
        owner = owner.inputs[0].owner
    if not isinstance(owner, ConvertOp) or owner.control_predecessors:
        return None
    return (owner, moves) if holds(element(owner), element(owner.operand)) else None


@rule(DotOp, ConvolutionOp, contract="rounding", looks_far=True)
def product_of_widened(op: DotOp | ConvolutionOp, rewriter: Rewriter) -> None:
    """dot(move(convert(a)), b) => dot(move(a), b), a converted to a wider type; convolution too"""
    if not isinstance(op.shape, ArrayShape) or len(op.inputs) != 2:
        return
    if {"algorithm", "sparsity", "block_scaling_config"} & op.properties.keys():
        return
    chains = [_chain(v) for v in op.inputs]
    if not any(chains):
        return
    b = Builder(op, rewriter)
    sides: list[SSAValue] = []
    for value, chain in zip(op.inputs, chains, strict=True):
        found = value
        if chain is not None:
            convert, moves = chain
            found = convert.operand
            for move in reversed(moves):
                shape = typed(array(move), element(found))
                found = b(
                    type(move), found, *move.inputs[1:], shape=shape, **own_properties(move)
                ).output
        sides.append(found)
    b.like(type(op), *sides, **own_properties(op))
    b.done()


@dataclass(frozen=True)
class ConvertOperandFoldingPass(RulePass):
    """Lets dots and convolutions read what was converted to a wider type before it was.

    Before and after:

        %d = s32[2,4] dot(s32[2,3] convert(s8[2,3] %a), s32[3,4] convert(s8[3,4] %b)), …
          =>   %d = s32[2,4] dot(%a, %b), …

    Reshapes, transposes, slices and gathers may stand between; they move the narrow elements then. Conversions that
    keep every value go, no others. Source: XLA's pass of this name.
    """

    name = "convert_operand_folding"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (product_of_widened,)
