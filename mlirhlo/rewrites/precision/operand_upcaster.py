"""`operand_upcaster` and `result_caster`: products of mixed element types in the type that is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.ops import ConvertOp, ConvolutionOp, DotOp, Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array, element, own_properties, typed
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


def _higher(a: PrimitiveType, b: PrimitiveType) -> PrimitiveType:
    """The wider one; of integers and floats the float; of signs the signed one."""
    rank = [(t.is_complex, t.is_float, t.bits, t.is_signed) for t in (a, b)]
    return a if rank[0] >= rank[1] else b


def _widens(narrow: PrimitiveType, wide: PrimitiveType) -> bool:
    """Whether both are floats, or integers of one sign, and `wide` is no narrower."""
    kinds = [(t.is_complex, t.is_float, t.is_signed, t.is_unsigned) for t in (narrow, wide)]
    return kinds[0] == kinds[1] and _higher(wide, narrow) is wide


def _types(op: Instruction) -> tuple[PrimitiveType, PrimitiveType] | None:
    """The type that two array operands have together, and the result's, where nothing rare is asked for."""
    if len(op.inputs) != 2 or not isinstance(op.shape, ArrayShape):
        return None
    if {"sparsity", "algorithm", "block_scaling_config"} & op.properties.keys():
        return None
    return _higher(element(op.inputs[0]), element(op.inputs[1])), element(op)


@rule(DotOp, ConvolutionOp, contract="rounding")
def product_of_narrow(op: DotOp | ConvolutionOp, rewriter: Rewriter) -> None:
    """dot(a, b) => dot(convert(a), convert(b)), to the wider type of the result; convolution too"""
    types = _types(op)
    if types is None or not _widens(*types):
        return
    wanted = types[1]
    if all(element(v) is wanted for v in op.inputs):
        return
    build = Builder(op, rewriter)
    sides = [
        v if element(v) is wanted else build(ConvertOp, v, shape=typed(array(v), wanted)).output
        for v in op.inputs
    ]
    build.like(type(op), *sides, **own_properties(op))
    build.done()


@rule(DotOp, ConvolutionOp, contract="rounding")
def product_into_narrow(op: DotOp | ConvolutionOp, rewriter: Rewriter) -> None:
    """dot(a, b), its result narrower => convert(dot(a, b)), in the wider type of a and b; convolution too"""
    types = _types(op)
    if types is None or types[0] is types[1] or not _widens(types[1], types[0]):
        return
    build = Builder(op, rewriter)
    made = build(type(op), *op.inputs, shape=typed(array(op), types[0]), **own_properties(op))
    build.like(ConvertOp, made)
    build.done()


@dataclass(frozen=True)
class OperandUpcasterPass(RulePass):
    """Converts operands of dots and convolutions to the wider type of their result.

    Before and after:

        %d = s32[2,4] dot(s8[2,3] %a, s16[3,4] %b), …
          =>   %d = s32[2,4] dot(s32[2,3] convert(%a), s32[3,4] convert(%b)), …

    Integers become wider ones of their sign, floats wider floats. Source: XLA's pass of this name.
    """

    name = "operand_upcaster"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (product_of_narrow,)


@dataclass(frozen=True)
class ResultCasterPass(RulePass):
    """Computes dots and convolutions in their operands' type, and converts to a narrower one after.

    Before and after:

        %d = bf16[2,4] dot(f32[2,3] %a, bf16[3,4] %b), …   =>   %d = bf16[2,4] convert(f32[2,4] dot(%a, %b), …)

    Source: XLA's pass of this name.
    """

    name = "result_caster"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (product_into_narrow,)
