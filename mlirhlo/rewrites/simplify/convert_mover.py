"""`convert-mover`: conversions move to where fewer, or narrower, elements pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.ops import (
    ConvertOp,
    Instruction,
)
from mlirhlo.dialects.hlo.ops.base import classes_of
from mlirhlo.dialects.hlo.table import Movement
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    has_one_user,
    is_constant,
    literal_of,
    made_by,
    own_properties,
    typed,
)
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule

_MOVES = tuple(
    sorted(
        classes_of(
            lambda row: (
                row.indices is None
                and row.movement
                in (Movement.JOIN, Movement.PERMUTE, Movement.RESHAPE, Movement.SLICE)
                and row.name != "reverse"
            )
        ),
        key=lambda cls: cls.name,
    )
)


def _is_packed(type_: PrimitiveType) -> bool:
    """Whether several elements share a byte; few targets move those."""
    return type_.bits < 8 and type_.name != "pred"


def _survives(constant: SSAValue, type_: PrimitiveType) -> bool:
    """Whether a constant is the same after a conversion to `type_` and back."""
    import numpy as np

    literal = literal_of(constant)
    if literal is None or element(constant).is_complex is not type_.is_complex:
        return False
    with np.errstate(all="ignore"):
        back = literal.array.astype(type_.dtype).astype(literal.array.dtype)
    return back.tobytes() == literal.data


@rule(*_MOVES)
def move_of_widening(op: Instruction, rewriter: Rewriter) -> None:
    """move(convert(x), …) => convert(move(x, …)), to a wider type; constants that survive it among the operands"""
    converts = [made_by(v, ConvertOp) for v in op.inputs]
    found = [c for c in converts if c is not None]
    if not found or op.control_predecessors or array(op).is_dynamic:
        return
    narrow, wide = element(found[0].operand), element(op)
    if narrow.bits >= wide.bits or _is_packed(narrow):
        return
    for value, convert in zip(op.inputs, converts, strict=True):
        if convert is None:
            if not is_constant(value) or not _survives(value, narrow):
                return
        elif (
            element(convert.operand) is not narrow
            or not has_one_user(value)
            or convert.control_predecessors
        ):
            return
    b = Builder(op, rewriter)
    operands = [
        convert.operand
        if convert is not None
        else b(ConvertOp, value, shape=typed(array(value), narrow)).output
        for value, convert in zip(op.inputs, converts, strict=True)
    ]
    moved = b(type(op), *operands, shape=typed(array(op), narrow), **own_properties(op))
    b.like(ConvertOp, moved)
    b.done()


@rule(ConvertOp)
def narrowing_of_move(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(move(x, …)) => move(convert(x), …), to a narrower type"""
    move, narrow = op.operand.owner, element(op)
    if not isinstance(move, _MOVES) or not has_one_user(op.operand):
        return
    if narrow.bits >= element(op.operand).bits or _is_packed(narrow) or op.control_predecessors:
        return
    if move.control_predecessors or array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    operands = [b(ConvertOp, v, shape=typed(array(v), narrow)) for v in move.inputs]
    b.like(type(move), *operands, **own_properties(move))
    b.done()


@dataclass(frozen=True)
class ConvertMoverPass(RulePass):
    """Moves widening conversions behind moves of data, and narrowing ones in front of them.

    Before and after:

        %w = f32[4,8] convert(%x)   %t = f32[8,4] transpose(%w)
          =>   %t = bf16[8,4] transpose(%x)   %w = f32[8,4] convert(%t)

    Every element is converted as before; fewer bytes are moved. Reshapes, transposes, slices, pads and concatenates
    move data; their constants are converted, and back where that changes none of them. Conversions that somebody
    else reads stay, and those from or to types of less than a byte. Source: XLA's pass of this name.
    """

    name = "convert-mover"
    rules: ClassVar[tuple[Rule, ...]] = (move_of_widening, narrowing_of_move)
