"""`gather_expander`: gathers as loops over dynamic slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import GatherOp, Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array, sized
from mlirhlo.rewrites.legalize.expander import ExpanderPass
from mlirhlo.rewrites.legalize.indexed_loops import (
    S32,
    Writer,
    loop,
    plain,
    rows_of_indices,
    shape_at,
)
from mlirhlo.rewrites.rules import Rewriter, Rule, rule
from mlirhlo.rewrites.simplify.gather_simplifier import arrange_slices


@rule(GatherOp)
def gather_of_all(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(x, i) => broadcast(reshape(x)), slices of the sizes of x: wherever they start, all of it"""
    operand = op.inputs[0]
    if not isinstance(op.shape, ArrayShape) or op.operand_batching_dims:
        return
    source = array(operand)
    is_dynamic = op.shape.is_dynamic or any(array(v).is_dynamic for v in op.inputs)
    if is_dynamic or not source.element_count:
        return
    if tuple(op.slice_sizes) != source.dimensions:
        return
    b = Builder(op, rewriter)
    left = [n for d, n in enumerate(source.dimensions) if d not in op.collapsed_slice_dims]
    b.broadcast(b.reshape(operand, sized(source, left)), op.offset_dims, op.shape)
    b.done()


@rule(GatherOp, needs=("!simple_only",))
def gather_of_any(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(x, i) => a loop: row by row of i, dynamic-slice of x into the result"""
    _expand(op, rewriter)


@rule(GatherOp, needs=("simple_only",))
def gather_of_one_slice(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(x, i) => a loop of one round, i holding one index"""
    if isinstance(op.shape, ArrayShape) and _rounds(op) == 1:
        _expand(op, rewriter)


def _rounds(op: GatherOp) -> int:
    return prod(n for d, n in enumerate(array(op).dimensions) if d not in op.offset_dims)


def _expand(op: GatherOp, rewriter: Rewriter) -> None:
    operand, indices = op.inputs
    shapes = (op.shape, *op.input_shapes)
    if any(not isinstance(s, ArrayShape) or s.is_dynamic for s in shapes):
        return
    if op.operand_batching_dims or _rounds(op) >= 1 << 31:
        return
    if 0 in (*array(op).dimensions, *op.slice_sizes):
        return
    b = Builder(op, rewriter)
    write = Writer(b.made.append)
    source = array(operand)
    rows = rows_of_indices(write, indices, op.index_vector_dim)
    rounds = shape_at(rows).dimensions[0]
    sizes = op.slice_sizes
    empty = write.spread(write.scalar(source.element_type, 0), (rounds, *sizes))

    def step(
        own: Writer, number: Instruction, state: Sequence[Instruction]
    ) -> Sequence[Instruction]:
        values, table, found = state
        starts = own.starts(own.row(table, number), op.start_index_map, source.rank)
        part = own(
            "dynamic-slice",
            values,
            *starts,
            shape=plain(source.element_type, sizes),
            dynamic_slice_sizes=integers(sizes),
        )
        zero = own.scalar(S32, 0)
        places = [number, *(zero for _ in sizes)]
        update = own.reshape(part, (1, *sizes))
        return values, table, own("dynamic-update-slice", found, update, *places, shape=found.shape)

    *_, found = loop(op, write, rounds, (operand, rows, empty), step)
    arrange_slices(op, b, write, found)


@dataclass(frozen=True)
class GatherExpanderPass(ExpanderPass):
    """Expands gathers into loops that copy one slice a round.

    Before and after:

        %g = f32[5,4] gather(%x, %i), …
          =>   %w = (s32[], f32[9,4], s32[5,1], f32[5,1,4]) while(…)   %g = reshape(get-tuple-element(%w), index=3)

    Indices out of range are clamped, as those of dynamic-slice are. Dynamic shapes, results without elements
    and gathers with batching dimensions stay. Source: reference of the passes, "GatherExpander".
    """

    name = "gather_expander"
    rules: ClassVar[tuple[Rule, ...]] = (gather_of_all, gather_of_any, gather_of_one_slice)

    simple_only: bool = False
    """Expands gathers of one slice, or of all of the operand, only, as XLA's pipelines of CPU and GPU do."""
