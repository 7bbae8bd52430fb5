"""`batched_gather_scatter_normalizer`: batching dimensions of gathers and scatters as indices that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import (
    ConcatenateOp,
    ConvertOp,
    GatherOp,
    Instruction,
    IotaOp,
    ReshapeOp,
    ScatterOp,
)
from mlirhlo.rewrites.algsimp.common import Builder, array, sized, typed
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule

_S32 = PRIMITIVE_TYPES["s32"]


def _with_places(
    b: Builder, indices: SSAValue, vector_dim: int, batching: Sequence[int]
) -> Instruction:
    """Index vectors with the places along the batching dimensions before the other components."""
    value: SSAValue | Instruction = indices
    shape = array(indices)
    if vector_dim == shape.rank:
        value = b(ReshapeOp, indices, shape=sized(shape, (*shape.dimensions, 1)))
    bits = shape.element_type.bits - shape.element_type.is_signed
    if max(shape.dimensions[d] for d in batching) > 1 << bits:
        value = b(ConvertOp, value, shape=typed(array(value), _S32))
    shape = array(value)
    sizes = list(shape.dimensions)
    sizes[vector_dim] = 1
    places = [b(IotaOp, shape=sized(shape, sizes), iota_dimension=integer(d)) for d in batching]
    sizes[vector_dim] = len(places) + shape.dimensions[vector_dim]
    return b(
        ConcatenateOp,
        *places,
        value,
        shape=sized(shape, sizes),
        dimensions=integers((vector_dim,)),
    )


@rule(GatherOp)
def gather_in_batches(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(x, i), batching dims => gather(x, concatenate(iota, …, i)), its own place a batch"""
    indices = op.start_indices
    batching = op.operand_batching_dims
    if not batching or any(array(v).is_dynamic for v in (*op.inputs, op.output)):
        return
    b = Builder(op, rewriter)
    places = _with_places(b, indices, op.index_vector_dim, op.start_indices_batching_dims)
    b.like(
        GatherOp,
        op.operand,
        places,
        offset_dims=op.properties["offset_dims"],
        collapsed_slice_dims=integers(tuple(sorted((*op.collapsed_slice_dims, *batching)))),
        start_index_map=integers((*batching, *op.start_index_map)),
        index_vector_dim=op.properties["index_vector_dim"],
        slice_sizes=op.properties["slice_sizes"],
    )
    b.done()


@rule(ScatterOp)
def scatter_in_batches(op: ScatterOp, rewriter: Rewriter) -> None:
    """scatter(x, i, u), batching dims => scatter(x, concatenate(iota, …, i), u), its own place a batch"""
    count = len(op.inputs) // 2
    batching = op.input_batching_dims
    if not batching or any(array(v).is_dynamic for v in op.inputs):
        return
    b = Builder(op, rewriter)
    indices = op.inputs[count]
    places = _with_places(b, indices, op.index_vector_dim, op.scatter_indices_batching_dims)
    kept = ("update_window_dims", "index_vector_dim", "unique_indices", "to_apply")
    b.like(
        ScatterOp,
        *op.inputs[:count],
        places,
        *op.inputs[count + 1 :],
        inserted_window_dims=integers(tuple(sorted((*op.inserted_window_dims, *batching)))),
        scatter_dims_to_operand_dims=integers((*batching, *op.scatter_dims_to_operand_dims)),
        **{k: v for k, v in op.properties.items() if k in kept},
    )
    b.done()


@dataclass(frozen=True)
class BatchedGatherScatterNormalizerPass(RulePass):
    """Writes gathers and scatters with batching dimensions as ones without.

    Before and after:

        %g = f32[3,2] gather(f32[3,9] %x, s32[3,2,1] %i), operand_batching_dims={0}, …
          =>   %g = f32[3,2] gather(%x, s32[3,2,2] concatenate(iota, %i)), start_index_map={0,1}, …

    Indices of a type too narrow to count a batch become s32. Nothing is said of their order any more.
    Source: XLA's pass of this name.
    """

    name = "batched_gather_scatter_normalizer"
    rules: ClassVar[tuple[Rule, ...]] = (gather_in_batches, scatter_in_batches)
