"""`reshape-decomposer`: reshapes as bitcasts, and copies where bytes have to move."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from mlirhlo.dialects.hlo.ops import BitcastOp, CopyOp, ReshapeOp
from mlirhlo.rewrites.algsimp.common import Builder, array
from mlirhlo.rewrites.algsimp.movement.physical import (
    is_plain,
    reshape_is_bitcast,
    reshaped_in_place,
    same_memory,
    with_order,
)
from mlirhlo.rewrites.legalize.expander import ExpanderPass
from mlirhlo.rewrites.rules import Rewriter, Rule, rule


@rule(ReshapeOp)
def reshape_in_place(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(x) => bitcast(x), no byte moved"""
    if not array(op).is_dynamic and reshape_is_bitcast(array(op.operand), array(op)):
        b = Builder(op, rewriter)
        b.like(BitcastOp, op.operand)
        b.done()


@rule(ReshapeOp)
def reshape_that_moves(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(x) => bitcast(copy(x)), copy(bitcast(x)) or copy(bitcast(copy(x)))"""
    source, result = array(op.operand), array(op)
    if not (is_plain(source) and is_plain(result) and same_memory(source, result)):
        return
    if reshape_is_bitcast(source, result):
        return
    b = Builder(op, rewriter)
    value = op.operand
    if (before := reshaped_in_place(result, source.dimensions)) is not None:
        b.like(BitcastOp, b(CopyOp, value, shape=before))
    elif (after := reshaped_in_place(source, result.dimensions)) is not None:
        b.like(CopyOp, b(BitcastOp, value, shape=after))
    else:
        target = replace(result, element_type=source.element_type)
        rows, wanted = (with_order(s, s.dimensions, range(s.rank)) for s in (source, target))
        b.like(CopyOp, b(BitcastOp, b(CopyOp, value, shape=rows), shape=wanted))
    b.done()


@dataclass(frozen=True)
class ReshapeDecomposerPass(ExpanderPass):
    """Writes reshapes as bitcasts where layouts let them, else with a copy that changes the layout.

    Before and after:

        %r = f32[6]{0} reshape(%x), %x = f32[3,2]{0,1}   =>   %c = f32[3,2]{1,0} copy(%x)
                                                              %r = f32[6]{0} bitcast(%c)

    The copy is made before the bitcast where one copy will do there, else behind it, else there are two. Needs:
    layouts are assigned. Source: the pass of XLA:GPU and its dumps.
    """

    name = "reshape-decomposer"
    rules: ClassVar[tuple[Rule, ...]] = (reshape_in_place, reshape_that_moves)
