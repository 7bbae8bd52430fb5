"""`gather_simplifier`: gathers in one form, an index vector a row and whole slices behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.ops import GatherOp, Instruction, TransposeOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array
from mlirhlo.rewrites.legalize.indexed_loops import Writer, plain, rows_of_indices
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


def is_static(op: Instruction) -> bool:
    """Whether operands and results are arrays of known sizes."""
    shapes = (op.shape, *op.input_shapes)
    return all(isinstance(s, ArrayShape) and not s.is_dynamic for s in shapes)


def arrange_slices(op: GatherOp, b: Builder, write: Writer, found: Instruction) -> None:
    """Replaces a gather by its slices, found as `[row, dimensions of the operand]`."""
    result = array(op)
    batch = [n for d, n in enumerate(result.dimensions) if d not in op.offset_dims]
    window = [n for d, n in enumerate(op.slice_sizes) if d not in op.collapsed_slice_dims]
    # Batch dimensions and window dimensions to the places that the result has them at.
    order = [0] * result.rank
    at_batch, at_window = 0, len(batch)
    for dim in range(result.rank):
        if dim in op.offset_dims:
            order[dim], at_window = at_window, at_window + 1
        else:
            order[dim], at_batch = at_batch, at_batch + 1
    if order == list(range(result.rank)):
        b.reshape(found, op.shape)
    else:
        parts = write.reshape(found, (*batch, *window))
        b.like(TransposeOp, parts, dimensions=integers(tuple(order)))
    b.done()


@rule(GatherOp)
def gather_of_nothing(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(x, i), slices without elements => bc(0)"""
    if is_static(op) and 0 in op.slice_sizes:
        b = Builder(op, rewriter)
        b.splat(array(op), 0)
        b.done()


@rule(GatherOp)
def gather_of_scalar(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(x, i), x a scalar => broadcast(x)"""
    if is_static(op) and not array(op.operand).rank:
        b = Builder(op, rewriter)
        b.broadcast(op.operand, (), op.shape)
        b.done()


@rule(GatherOp)
def gather_in_other_form(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(x, i) => transpose(reshape(gather(x, reshape(transpose(i))))), a row of i a slice"""
    if not is_static(op) or op.operand_batching_dims or 0 in op.slice_sizes:
        return
    operand, indices = op.inputs
    rank = array(operand).rank
    whole = tuple(range(1, rank + 1))
    if not rank or (
        array(indices).rank == 2
        and op.index_vector_dim == 1
        and not op.collapsed_slice_dims
        and op.offset_dims == whole
    ):
        return
    b = Builder(op, rewriter)
    write = Writer(b.made.append)
    rows = rows_of_indices(write, indices, op.index_vector_dim)
    kept = {k: v for k, v in op.properties.items() if k in ("indices_are_sorted", "slice_sizes")}
    found = write(
        "gather",
        operand,
        rows,
        shape=plain(array(operand).element_type, (array(rows).dimensions[0], *op.slice_sizes)),
        offset_dims=integers(whole),
        collapsed_slice_dims=integers(()),
        start_index_map=op.properties["start_index_map"],
        index_vector_dim=integer(1),
        **kept,
    )
    arrange_slices(op, b, write, found)


@dataclass(frozen=True)
class GatherSimplifierPass(RulePass):
    """Brings gathers into one form: a row of indices a slice, which has all dimensions of the operand.

    Before and after:

        %g = f32[4,2] gather(f32[9,4] %x, s32[2] %i), offset_dims={0}, collapsed_slice_dims={0}, …
          =>   %g = f32[2,1,4] gather(%x, s32[2,1] %i'), offset_dims={1,2}, collapsed_slice_dims={}, …
               transpose(reshape(%g))

    Gathers with batching dimensions stay; `batched_gather_scatter_normalizer` writes them without. Source: XLA's
    pass of this name.
    """

    name = "gather_simplifier"
    rules: ClassVar[tuple[Rule, ...]] = (
        gather_of_nothing,
        gather_of_scalar,
        gather_in_other_form,
    )
