"""`bfloat16-fold`: instructions between conversions from and to bf16 are computed in bf16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import ConvertOp, Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import opcodes
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter, inherit

BF16, F32 = PRIMITIVE_TYPES["bf16"], PRIMITIVE_TYPES["f32"]

_MOVES = opcodes(lambda row: row.moves and row.indices is None and row.data is not None)


@dataclass(frozen=True)
class Bfloat16FoldPass(HloPass):
    """Computes in bf16 what is read from bf16 and rounded to bf16.

    Before and after:

        %a = f32[4] convert(%x)   %b = f32[4] convert(%y)   %s = f32[4] add(%a, %b)   %r = bf16[4] convert(%s)
          =>   %s = bf16[4] add(%x, %y)

    Folded are element-wise instructions and moves of data all of whose f32 operands are converted from bf16
    and all of whose users convert to bf16: arithmetic in bf16 rounds just as the conversion did, so every bit
    stays. Roots, fused computations and control dependencies are left alone.
    Source: reference of the passes, "BFloat16ConversionFolding".
    """

    name = "bfloat16-fold"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Folds; whether anything was."""
        del trace
        fused = module.known(HloModule.fused_computations)
        # What is folded is read by conversions to bf16, and whether one is does not depend on the others.
        rounded = [op for op in module.candidates(ConvertOp) if _is_bf16(op.output.type)]
        wanted = [
            op
            for op in dict.fromkeys(
                cast(Instruction, convert.inputs[0].owner) for convert in rounded
            )
            if _is_wanted(op)
            and op is not (place := holder(op)).root
            and place.computation_name not in fused
        ]
        for op in wanted:
            _fold(op)
        return bool(wanted)


def _is_wanted(op: Instruction) -> bool:
    shape = op.shape
    if (
        not isinstance(shape, ArrayShape)
        or shape.element_type is not F32
        or isinstance(op, ConvertOp)
    ):
        return False
    if op.control_predecessors or not op.inputs:
        return False
    if not op.opcode.elementwise and op.opcode.name not in _MOVES:
        return False
    if not all(_source(op, number) is not None for number in range(len(op.inputs))):
        return False
    users = [use.operation for use in op.output.uses]
    return bool(users) and all(
        isinstance(user, ConvertOp) and _is_bf16(user.output.type) for user in users
    )


def _source(op: Instruction, number: int) -> Instruction | None:
    """The conversion from bf16 that makes an operand; the operand's own maker where it is no float."""
    value = op.inputs[number]
    owner = value.owner
    assert isinstance(owner, Instruction)
    shape = shape_of(value.type)
    if not isinstance(shape, ArrayShape):
        return None
    if shape.element_type is not F32:
        return None if shape.element_type.is_float or shape.element_type.is_complex else owner
    if not isinstance(owner, ConvertOp) or owner.control_predecessors:
        return None
    return owner if _is_bf16(owner.operand.type) else None


def _fold(op: Instruction) -> None:
    operands = [
        owner.operand if isinstance(owner := v.owner, ConvertOp) and _is_f32(v.type) else v
        for v in op.inputs
    ]
    shape = op.shape
    assert isinstance(shape, ArrayShape)
    narrow = ArrayShape(BF16, shape.dimensions, shape.dynamic, shape.layout)
    new = make(op.opcode.name, operands, narrow, dict(op.properties), name=op.instruction_name)
    inherit(new, op)
    block = op.parent
    assert block is not None
    block.insert_op_before(new, op)
    before = [v.owner for v in op.inputs]
    for user in [use.operation for use in op.output.uses]:
        assert isinstance(user, ConvertOp)
        Rewriter(user).replace_by_value(user, new.output)
    new.instruction_name = op.instruction_name
    rewriter = Rewriter(op)
    rewriter.erase_unread(op, *before)


def _is_bf16(type_: Attribute) -> bool:
    shape = shape_of(type_)
    return isinstance(shape, ArrayShape) and shape.element_type is BF16


def _is_f32(type_: Attribute) -> bool:
    shape = shape_of(type_)
    return isinstance(shape, ArrayShape) and shape.element_type is F32
