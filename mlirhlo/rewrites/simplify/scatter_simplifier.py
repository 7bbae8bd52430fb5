"""`scatter_simplifier`: scatters in one form, an index vector a row and whole windows behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.ops import Instruction, ScatterOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array
from mlirhlo.rewrites.legalize.indexed_loops import Writer, rows_of_indices
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


def updates_by_row(
    op: ScatterOp, write: Writer, updates: Sequence[SSAValue]
) -> list[SSAValue | Instruction]:
    """Updates as `[row, dimensions of the operand]`, those that are inserted of size 1."""
    first = array(updates[0])
    rows = [d for d in range(first.rank) if d not in op.update_window_dims]
    window = [1] * array(op.inputs[0]).rank
    kept = [d for d in range(len(window)) if d not in op.inserted_window_dims]
    for dim, update_dim in zip(kept, op.update_window_dims, strict=True):
        window[dim] = first.dimensions[update_dim]
    order = (*rows, *op.update_window_dims)
    sizes = (prod(first.dimensions[d] for d in rows), *window)
    found: list[SSAValue | Instruction] = []
    for update in updates:
        moved: SSAValue | Instruction = update
        if order != tuple(range(first.rank)):
            moved = write.transpose(update, order)
        found.append(moved if array(moved).dimensions == sizes else write.reshape(moved, sizes))
    return found


@rule(ScatterOp)
def scatter_in_other_form(op: ScatterOp, rewriter: Rewriter) -> None:
    """scatter(x, i, u) => scatter(x, reshape(transpose(i)), reshape(transpose(u))), a row of i a window"""
    count = len(op.inputs) // 2
    operands, indices, updates = op.inputs[:count], op.inputs[count], op.inputs[count + 1 :]
    if any(not isinstance(s, ArrayShape) or s.is_dynamic for s in op.input_shapes):
        return
    rank = array(operands[0]).rank
    whole = tuple(range(1, rank + 1))
    if not rank or op.input_batching_dims:
        return
    if not all(array(v).element_count for v in (operands[0], updates[0])):
        return  # a window of one does not fit into nothing
    if (
        array(indices).rank == 2
        and op.index_vector_dim == 1
        and not op.inserted_window_dims
        and op.update_window_dims == whole
    ):
        return
    b = Builder(op, rewriter)
    write = Writer(b.made.append)
    rows = rows_of_indices(write, indices, op.index_vector_dim)
    tables = updates_by_row(op, write, updates)
    kept = ("scatter_dims_to_operand_dims", "indices_are_sorted", "unique_indices", "to_apply")
    b.like(
        ScatterOp,
        *operands,
        rows,
        *tables,
        update_window_dims=integers(whole),
        inserted_window_dims=integers(()),
        index_vector_dim=integer(1),
        **{k: v for k, v in op.properties.items() if k in kept},
    )
    b.done()


@dataclass(frozen=True)
class ScatterSimplifierPass(RulePass):
    """Brings scatters into one form: a row of indices a window with all dimensions of the operand.

    Before and after:

        %s = f32[9,4] scatter(%x, s32[2] %i, f32[2,4] %u), inserted_window_dims={0}, …
          =>   %s = f32[9,4] scatter(%x, s32[2,1] %i', f32[2,1,4] %u'), inserted_window_dims={}, …

    Updates are combined in their order, as before. Scatters with batching dimensions stay;
    `batched_gather_scatter_normalizer` writes them without. Source: XLA's pass of this name.
    """

    name = "scatter_simplifier"
    rules: ClassVar[tuple[Rule, ...]] = (scatter_in_other_form,)
