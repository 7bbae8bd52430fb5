"""`ragged_dot_rewriter`: dots of groups of rows as dots over all groups, what is not a group's made zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import RaggedDotOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import array
from mlirhlo.rewrites.legalize.expander import ExpanderPass, expand_in_place
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.rules import Rewriter, Rule, rule


def _is_plain(op: RaggedDotOp) -> bool:
    shapes = [*op.input_shapes, op.shape]
    return (
        len(op.lhs_ragged_dims) == 1
        and all(isinstance(s, ArrayShape) and not s.is_dynamic for s in shapes)
        and array(op.group_sizes).rank == 1
    )


def _by_group(graph: Graph, lhs: Value, sizes: Value, ragged: int) -> Value:
    """The lhs once for each group, zero where the places are another one's."""
    groups = sizes.sizes[0]
    # Ends of groups: sums of the sizes up to each.
    table = sizes.broadcast_in_dim((groups, groups), (1,))
    row = graph.iota(sizes.type, (groups, groups), 0)
    column = graph.iota(sizes.type, (groups, groups), 1)
    zeros = graph.full(sizes.type, (groups, groups))
    ends = row.compare("GE", column).select(table, zeros).reduce("add", (1,))
    starts = ends - sizes
    whole = (groups, *lhs.sizes)
    place = graph.iota(sizes.type, whole, ragged + 1)
    after = place.compare("GE", starts.broadcast_in_dim(whole, (0,)))
    before = place.compare("LT", ends.broadcast_in_dim(whole, (0,)))
    return (after & before).select(lhs.broadcast((groups,)), graph.full(lhs.type, whole))


def _dot(graph: Graph, op: RaggedDotOp, lhs: Value, rhs: Value, **dims: tuple[int, ...]) -> Value:
    kept: dict[str, Attribute] = {k: integers(v) for k, v in dims.items() if v}
    if "operand_precision" in op.properties:
        kept["operand_precision"] = op.properties["operand_precision"]
    return graph.make("dot", lhs, rhs, shape=op.shape, **kept)


def _moved(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Behind a new first dimension."""
    return tuple(d + 1 for d in dims)


@rule(RaggedDotOp, contract="rounding")
def ragged_rows(op: RaggedDotOp, rewriter: Rewriter) -> None:
    """ragged-dot(x, w, sizes), rows in groups => dot(x by group, w), contracting groups too"""
    if not _is_plain(op) or len(op.rhs_group_dims) != 1:
        return
    (ragged,), (group,) = op.lhs_ragged_dims, op.rhs_group_dims
    if ragged in op.lhs_batch_dims or ragged in op.lhs_contracting_dims:
        return

    def build(graph: Graph, lhs: Value, rhs: Value, sizes: Value) -> Value:
        return _dot(
            graph,
            op,
            _by_group(graph, lhs, sizes, ragged),
            rhs,
            lhs_batch_dims=_moved(op.lhs_batch_dims),
            rhs_batch_dims=op.rhs_batch_dims,
            lhs_contracting_dims=(0, *_moved(op.lhs_contracting_dims)),
            rhs_contracting_dims=(group, *op.rhs_contracting_dims),
        )

    expand_in_place(op, rewriter, build)


@rule(RaggedDotOp, contract="rounding")
def ragged_contracting(op: RaggedDotOp, rewriter: Rewriter) -> None:
    """ragged-dot(x, w, sizes), sums in groups => dot(x by group, w), a group a leading dimension"""
    if not _is_plain(op) or op.lhs_batch_dims or op.rhs_group_dims:
        return
    (ragged,) = op.lhs_ragged_dims
    if ragged not in op.lhs_contracting_dims:
        return

    def build(graph: Graph, lhs: Value, rhs: Value, sizes: Value) -> Value:
        return _dot(
            graph,
            op,
            _by_group(graph, lhs, sizes, ragged),
            rhs,
            lhs_contracting_dims=_moved(op.lhs_contracting_dims),
            rhs_contracting_dims=op.rhs_contracting_dims,
        )

    expand_in_place(op, rewriter, build)


@dataclass(frozen=True)
class RaggedDotRewriterPass(ExpanderPass):
    """Writes dots of groups of rows as dots over all groups.

    Before and after, groups of rows with a matrix each:

        %d = f32[9,5] ragged-dot(f32[9,4] %x, f32[3,4,5] %w, s32[3] %sizes), lhs_ragged_dims={0}, …
          =>   %d = f32[9,5] dot(f32[3,9,4] select(…), %w), lhs_contracting_dims={0,2}, rhs_contracting_dims={0,1}

    Rows, or places that are summed over, of other groups are zeros, so that infinite and NaN elements reach
    other groups' results. Groups of sizes that differ by batch stay, and those of a batch dimension. Source: XLA's
    pass, which multiplies by zeros too.
    """

    name = "ragged_dot_rewriter"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (ragged_rows, ragged_contracting)
