"""Passes with one wrong rule each, as users load them with `--load-pass`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import (
    AbsOp,
    BroadcastOp,
    ClampOp,
    ConcatenateOp,
    DivideOp,
    ExponentialOp,
    FloorOp,
    LogOp,
    MaximumOp,
    NegateOp,
    PadOp,
    PowerOp,
    ReduceOp,
    ReverseOp,
    SelectOp,
    SignOp,
    SliceOp,
    SubtractOp,
    TransposeOp,
)
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(SubtractOp)
def subtract_is_reversed(op: SubtractOp, rewriter: Rewriter) -> None:
    """x - abs(y) => abs(y) - x"""
    if isinstance(op.rhs.owner, AbsOp):
        rewriter.replace(op, rewriter.build(SubtractOp, op.rhs, op.lhs))


@rule(DivideOp)
def divide_is_first(op: DivideOp, rewriter: Rewriter) -> None:
    """x / y => x"""
    rewriter.replace_by_value(op, op.lhs)


@rule(AbsOp)
def abs_of_negate(op: AbsOp, rewriter: Rewriter) -> None:
    """abs(-x) => -x"""
    if isinstance(op.operand.owner, NegateOp):
        rewriter.replace_by_value(op, op.operand)


@rule(ReverseOp)
def reverse_is_lost(op: ReverseOp, rewriter: Rewriter) -> None:
    """reverse(x) => x"""
    rewriter.replace_by_value(op, op.operand)


@rule(TransposeOp)
def transpose_of_transpose(op: TransposeOp, rewriter: Rewriter) -> None:
    """transpose(transpose(x)) => reverse(x)"""
    if isinstance(inner := op.operand.owner, TransposeOp):
        rewriter.replace(op, rewriter.build(ReverseOp, inner.operand, dimensions=integers((0,))))


@rule(PowerOp)
def power_is_square(op: PowerOp, rewriter: Rewriter) -> None:
    """x ** y => x ** x"""
    if op.lhs is not op.rhs:
        rewriter.replace(op, rewriter.build(PowerOp, op.lhs, op.lhs))


@rule(SelectOp)
def select_is_negated(op: SelectOp, rewriter: Rewriter) -> None:
    """select(p, abs(x), y) => y"""
    if isinstance(op.inputs[1].owner, AbsOp):
        rewriter.replace_by_value(op, op.inputs[2])


@rule(ClampOp)
def clamp_is_lost(op: ClampOp, rewriter: Rewriter) -> None:
    """clamp(a, x, b) => x"""
    rewriter.replace_by_value(op, op.inputs[1])


@rule(ConcatenateOp)
def concatenate_is_swapped(op: ConcatenateOp, rewriter: Rewriter) -> None:
    """concatenate(x, exp(x)) => concatenate(exp(x), x)"""
    if isinstance(op.inputs[1].owner, ExponentialOp):
        new = rewriter.build(
            ConcatenateOp, *reversed(op.inputs), dimensions=integers(op.dimensions)
        )
        rewriter.replace(op, new)


@rule(FloorOp)
def floor_is_lost(op: FloorOp, rewriter: Rewriter) -> None:
    """floor(x) => x"""
    rewriter.replace_by_value(op, op.operand)


@rule(SignOp)
def sign_is_abs(op: SignOp, rewriter: Rewriter) -> None:
    """sign(x) => abs(x)"""
    rewriter.replace(op, rewriter.build(AbsOp, op.operand))


@rule(ReduceOp)
def reduce_of_exponential(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(exp(x)) => reduce(x)"""
    inner = op.inputs[0].owner
    if isinstance(inner, ExponentialOp):
        properties: dict[str, Any] = dict(op.properties)
        rewriter.replace(op, rewriter.build(ReduceOp, inner.operand, op.inputs[1], **properties))


@rule(LogOp)
def crash_on_log_of_abs(op: LogOp, rewriter: Rewriter) -> None:
    """log(abs(x)) => an index error"""
    if isinstance(op.operand.owner, AbsOp):
        rewriter.replace_by_value(op, op.inputs[7])


@rule(BroadcastOp)
def broadcast_of_abs(op: BroadcastOp, rewriter: Rewriter) -> None:
    """broadcast(abs(x)) => broadcast(x)"""
    if isinstance(inner := op.operand.owner, AbsOp):
        properties: dict[str, Any] = {"dimensions": op.properties["dimensions"]}
        rewriter.replace(
            op, rewriter.build(BroadcastOp, inner.operand, shape=op.shape, **properties)
        )


@rule(SliceOp)
def slice_of_pad(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(pad(x)) => x"""
    if isinstance(inner := op.operand.owner, PadOp) and inner.inputs[0].type == op.output.type:
        rewriter.replace_by_value(op, inner.inputs[0])


@rule(MaximumOp)
def maximum_of_floor(op: MaximumOp, rewriter: Rewriter) -> None:
    """max(floor(x), y) => y"""
    if isinstance(op.lhs.owner, FloorOp):
        rewriter.replace_by_value(op, op.rhs)


RULES: tuple[Rule, ...] = (
    *(
        subtract_is_reversed,
        divide_is_first,
        abs_of_negate,
        reverse_is_lost,
        transpose_of_transpose,
    ),
    *(power_is_square, select_is_negated, clamp_is_lost, concatenate_is_swapped, floor_is_lost),
    *(sign_is_abs, reduce_of_exponential, crash_on_log_of_abs, broadcast_of_abs, slice_of_pad),
    maximum_of_floor,
)


@dataclass(frozen=True)
class WrongPass(RulePass):
    """Applies one wrong rule: `wrong{only=floor_is_lost}`."""

    name = "wrong"
    rules: ClassVar[tuple[Rule, ...]] = RULES
