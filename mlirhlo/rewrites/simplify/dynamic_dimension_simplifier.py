"""`dynamic-dimension-simplifier`: detours that sizes take between scalars and vectors of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import (
    BroadcastOp,
    ConcatenateOp,
    ConvertOp,
    Instruction,
    ReshapeOp,
    SliceOp,
)
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.algsimp.common import Builder, array, forward, made_by, own_properties
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


def _forward_same(op: Instruction, rewriter: Rewriter, value: SSAValue) -> None:
    """Lets `value` stand for `op` where it has the same shape; what is dynamic counts."""
    if op.shape == shape_of(value.type):
        forward(op, rewriter, value)


@rule(ConcatenateOp, reads=(ConcatenateOp,))
def concatenate_of_concatenate(op: ConcatenateOp, rewriter: Rewriter) -> None:
    """concatenate(concatenate(a, b), c) => concatenate(a, b, c), along one dimension"""
    flat: list[SSAValue] = []
    for value in op.inputs:
        inner = made_by(value, ConcatenateOp)
        same = inner is not None and inner.dimensions == op.dimensions
        whole = inner.inputs if inner is not None and same else (value,)
        flat += (value,) if inner is not None and inner.control_predecessors else whole
    if len(flat) == len(op.inputs):
        return
    b = Builder(op, rewriter)
    b.like(ConcatenateOp, *flat, **own_properties(op))
    b.done()


@rule(SliceOp, reads=(ConcatenateOp,))
def slice_of_vectors(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(concatenate(…, x, …)) => x, of vectors, where it is just that"""
    joined = made_by(op.operand, ConcatenateOp)
    if joined is None or array(op).rank != 1 or op.slices is None:
        return
    (part,) = op.slices.dimensions
    if part.stride != 1:
        return
    start = 0
    for value in joined.inputs:
        size = array(value).dimensions[0]
        if start == part.start and size == part.limit - part.start:
            _forward_same(op, rewriter, value)
            return
        start += size


@rule(ReshapeOp, reads=(BroadcastOp,))
def reshape_of_broadcast_scalar(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(broadcast(x)) => x, of a scalar by way of a vector"""
    spread = made_by(op.operand, BroadcastOp)
    if spread is not None and not array(op).rank and not array(spread.operand).rank:
        _forward_same(op, rewriter, spread.operand)


@rule(ReshapeOp, reads=(ReshapeOp,))
def reshape_back(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(reshape(x)) => x, of the first shape again"""
    inner = made_by(op.operand, ReshapeOp)
    if inner is not None:
        _forward_same(op, rewriter, inner.operand)


@rule(ConvertOp, ReshapeOp)
def move_to_itself(op: ConvertOp | ReshapeOp, rewriter: Rewriter) -> None:
    """convert(x) => x, to its own type; reshape(x) => x, to its own shape"""
    _forward_same(op, rewriter, op.operand)


@dataclass(frozen=True)
class DynamicDimensionSimplifierPass(RulePass):
    """Takes detours out that sizes of dimensions take between scalars and vectors of them.

    Before and after:

        %n = s32[] reshape(s32[1] slice(s32[2] concatenate(s32[1] reshape(%a), s32[1] reshape(%b))))   =>   %a

    Front ends that know sizes at run time only pack them into vectors and take them out again; `dynamic_padder` has
    to see which parameter or `get-dimension-size` a size is. Source: XLA's pass of this name.
    """

    name = "dynamic-dimension-simplifier"
    rules: ClassVar[tuple[Rule, ...]] = (
        concatenate_of_concatenate,
        slice_of_vectors,
        reshape_of_broadcast_scalar,
        reshape_back,
        move_to_itself,
    )
