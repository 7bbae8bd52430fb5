"""`zero_sized_hlo_elimination`: arrays without elements are constants."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import CallOp, ConstantOp, Instruction, ParameterOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, default_layout
from mlirhlo.dialects.quick import read_instead
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit
from mlirhlo.rewrites.simplify.dce import erase_unused


@dataclass(frozen=True)
class ZeroSizedHloEliminationPass(HloPass):
    """Replaces instructions whose result has no elements by empty constants.

    Before and after:

        %a = f32[0,4] add(%x, %y)      =>   %a = f32[0,4] constant({})

    Parameters stay; their users read a constant. Operands that only the replaced instruction read go with it, so
    that asynchronous pairs go as a whole. Side effects, control dependencies, dynamic shapes and the bodies of
    fusions and composites are left alone. Source: reference of the passes, "ZeroSizedHloElimination".
    """

    name = "zero_sized_hlo_elimination"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Replaces; whether there was anything to replace."""
        del trace
        if not any(map(_has_no_elements, module.known(HloModule.result_shapes))):
            return False
        empty = [op for op in module.instructions if _is_empty(op)]
        effects = SideEffects.of(module)
        bodies = module.known(HloModule.fused_computations) | {
            op.to_apply
            for op in module.candidates(CallOp)
            if isinstance(op, CallOp) and op.is_composite
        }
        waited = {v for op in module.instructions for v in op.control_predecessors}
        changed = False
        for op in empty:
            if op.parent is None or op.output in waited:
                continue  # erased with its only reader, or waited for
            if holder(op).computation_name not in bodies and not effects.of_instruction(op):
                changed |= _replace(op, effects)
        return changed


def _has_no_elements(shape: Shape) -> bool:
    return type(shape) is ArrayShape and 0 in shape.dimensions and not shape.is_dynamic


def _is_empty(op: Instruction) -> bool:
    return (
        _has_no_elements(op.shape)
        and not isinstance(op, ConstantOp)
        and not op.control_predecessors
    )


def _replace(op: Instruction, effects: SideEffects) -> bool:
    shape = op.shape
    assert isinstance(shape, ArrayShape)
    if op.output.first_use is None:
        return False
    layout = shape.layout or default_layout(shape.rank)
    empty = ArrayShape(shape.element_type, shape.dimensions, (), layout)
    constant = make("constant", (), empty, {"literal": LiteralAttr(Literal(empty, b""))})
    inherit(constant, op)
    block = op.parent
    assert block is not None
    block.insert_op_before(constant, op)
    read_instead(op.output, constant.output)
    if isinstance(op, ParameterOp):
        return True
    constant.instruction_name = op.instruction_name
    erase_unused(op, effects)
    return True
