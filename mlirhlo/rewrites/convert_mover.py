"""`convert-mover`: conversions move to where fewer, or narrower, elements pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.ops import (
    ConcatenateOp,
    ConvertOp,
    Instruction,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from mlirhlo.rewrites.algsimp.common import Builder, array, element, has_one_user, made_by, typed
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(ReshapeOp, TransposeOp, SliceOp)
def move_of_widening(op: Instruction, rewriter: Rewriter) -> None:
    """move(convert(x)) => convert(move(x)), to a wider type; reshape, transpose, slice"""
    convert = made_by(op.inputs[0], ConvertOp)
    if convert is None or not _widens(convert) or not has_one_user(op.inputs[0]):
        return
    if convert.control_predecessors or op.control_predecessors or array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    properties = {k: v for k, v in op.properties.items() if k not in ("metadata", "sharding")}
    narrow = typed(array(op), element(convert.operand))
    b.like(ConvertOp, b(type(op), convert.operand, shape=narrow, **properties))
    b.done()


@rule(ConcatenateOp)
def concatenate_of_widening(op: ConcatenateOp, rewriter: Rewriter) -> None:
    """concatenate(convert(x), convert(y)) => convert(concatenate(x, y)), both from one narrower type"""
    converts = [made_by(v, ConvertOp) for v in op.inputs]
    if not converts or op.control_predecessors or array(op).is_dynamic:
        return
    found = [c for c in converts if c is not None]
    if len(found) != len(converts) or any(c.control_predecessors for c in found):
        return
    types = {element(c.operand) for c in found}
    if len(types) != 1 or not _widens(found[0]) or not all(map(has_one_user, op.inputs)):
        return
    b = Builder(op, rewriter)
    properties = {k: v for k, v in op.properties.items() if k not in ("metadata", "sharding")}
    narrow = typed(array(op), types.pop())
    operands = [c.operand for c in found]
    b.like(ConvertOp, b(ConcatenateOp, *operands, shape=narrow, **properties))
    b.done()


@rule(ConvertOp)
def narrowing_of_move(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(move(x)) => move(convert(x)), to a narrower type; reshape, transpose"""
    move = op.operand.owner
    if not isinstance(move, ReshapeOp | TransposeOp) or not has_one_user(op.operand):
        return
    if element(op).bits >= element(op.operand).bits or op.control_predecessors:
        return
    if move.control_predecessors or array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    properties = {k: v for k, v in move.properties.items() if k not in ("metadata", "sharding")}
    narrow = b(ConvertOp, move.operand, shape=typed(array(move.operand), element(op)))
    b.like(type(move), narrow, **properties)
    b.done()


def _widens(op: ConvertOp) -> bool:
    return element(op).bits > element(op.operand).bits


@dataclass(frozen=True)
class ConvertMoverPass(RulePass):
    """Moves widening conversions behind moves of data, and narrowing ones in front of them.

    Before and after:

        %w = f32[4,8] convert(%x)   %t = f32[8,4] transpose(%w)
          =>   %t = bf16[8,4] transpose(%x)   %w = f32[8,4] convert(%t)

    Every element is converted as before; fewer bytes are moved. Conversions that somebody else reads stay.
    Source: reference of the passes, "Other simplifiers", `convert-mover`.
    """

    name = "convert-mover"
    rules: ClassVar[tuple[Rule, ...]] = (
        move_of_widening,
        concatenate_of_widening,
        narrowing_of_move,
    )
