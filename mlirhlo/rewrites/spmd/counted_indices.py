"""Gathers and scatters whose indices count along a dimension of their own, as batches.

    gather(x, concat(iota, i))  reads for each row of indices from the row of x of the same number

as `x[arange(n), i]` does. So the two dimensions can be cut alike, and no device needs rows of another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.element_types import Kind
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    BroadcastOp,
    CompareOp,
    ConcatenateOp,
    ConvertOp,
    CopyOp,
    CustomCallOp,
    GatherOp,
    IotaOp,
    ReshapeOp,
    ScatterOp,
    SelectOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.algsimp.common import array, is_all
from mlirhlo.rewrites.rules import Rewriter


@dataclass(frozen=True, slots=True)
class Counted:
    """One part of the indices that counts."""

    operand_dim: int
    """What it is an index into."""
    indices_dim: int
    """Along which it counts, from 0 to the last element of `operand_dim`."""
    part: int
    """Its place in the concatenation that makes the indices."""


def counted(op: GatherOp | ScatterOp) -> tuple[Counted, ...]:
    """The parts of the indices that count; at least one part is not among them."""
    indices = op.inputs[_indices_at(op)]
    joined, sizes = indices.owner, array(op.inputs[0]).dimensions
    if not isinstance(joined, ConcatenateOp) or joined.dimensions[0] != op.index_vector_dim:
        return ()
    if isinstance(op, GatherOp):
        index_map, single, batches = (
            op.start_index_map,
            op.collapsed_slice_dims,
            op.start_indices_batching_dims,
        )
    else:
        index_map, single, batches = (
            op.scatter_dims_to_operand_dims,
            op.inserted_window_dims,
            op.scatter_indices_batching_dims,
        )
    widths = [array(part).dimensions[op.index_vector_dim] for part in joined.inputs]
    found: dict[int, Counted] = {}
    for number, (part, end) in enumerate(zip(joined.inputs, accumulate(widths), strict=True)):
        dim = counting(part) if widths[number] == 1 else None
        if dim is None or dim == op.index_vector_dim or dim in batches or dim in found:
            continue
        into = index_map[end - 1]
        if into in single and sizes[into] == array(part).dimensions[dim]:
            found[dim] = Counted(into, dim, number)
    if len(found) == len(joined.inputs):
        found.popitem()
    return tuple(found.values())


def _indices_at(op: GatherOp | ScatterOp) -> int:
    return 1 if isinstance(op, GatherOp) else (len(op.inputs) - 1) // 2


def counting(value: SSAValue) -> int | None:
    """The dimension along which an array of integers counts from 0; None for others."""
    op, shape = value.owner, shape_of(value.type)
    if not isinstance(shape, ArrayShape) or shape.is_dynamic:
        return None
    if shape.element_type.kind not in (Kind.SIGNED, Kind.UNSIGNED):
        return None
    if isinstance(op, IotaOp):
        bits = shape.element_type.bits - 1
        return op.iota_dimension if shape.dimensions[op.iota_dimension] <= 1 << bits else None
    if isinstance(op, SelectOp):
        return counting(op.inputs[2]) if _is_never(op.inputs[0]) else None
    is_mark = isinstance(op, CustomCallOp) and op.custom_call_target == "Sharding"
    if not is_mark and not isinstance(
        op, BroadcastOp | ConvertOp | CopyOp | ReshapeOp | TransposeOp
    ):
        return None
    assert isinstance(op, Instruction)
    below = counting(op.inputs[0])
    if below is None:
        return None
    source = array(op.inputs[0]).dimensions
    if isinstance(op, ConvertOp):
        return below if source[below] <= 1 << (shape.element_type.bits - 1) else None
    if isinstance(op, BroadcastOp):
        return op.dimensions[below]
    if isinstance(op, TransposeOp):
        return op.dimensions.index(below)
    if isinstance(op, ReshapeOp):
        return _after_reshape(source, below, shape.dimensions)
    return below


def _after_reshape(source: tuple[int, ...], dim: int, target: tuple[int, ...]) -> int | None:
    """Where a dimension is that stands whole, with as many elements before it and behind it."""
    before, size = math.prod(source[:dim]), source[dim]
    for place, n in enumerate(target):
        if n == size and math.prod(target[:place]) == before:
            return place
    return None


def _is_never(value: SSAValue) -> bool:
    """Whether a condition asks if what counts is negative."""
    op = value.owner
    if not isinstance(op, CompareOp) or op.direction != "LT":
        return False
    return counting(op.inputs[0]) is not None and is_all(op.inputs[1], 0)


def count_as_batches(module: HloModule) -> bool:
    """Makes batching dimensions of what is counted along; whether there was any."""
    changed = False
    for op in (*module.instructions_of(GatherOp), *module.instructions_of(ScatterOp)):
        assert isinstance(op, GatherOp | ScatterOp)
        if parts := counted(op):
            _batch(op, parts)
            changed = True
    return changed


def _batch(op: GatherOp | ScatterOp, parts: tuple[Counted, ...]) -> None:
    if isinstance(op, GatherOp):
        names = ("collapsed_slice_dims", "start_index_map", "operand_batching_dims")
        places = "start_indices_batching_dims"
    else:
        names = ("inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims")
        places = "scatter_indices_batching_dims"
    single, index_map, batching = (_ints(op, name) for name in names)
    pairs = dict(zip(batching, _ints(op, places), strict=True))
    pairs |= {part.operand_dim: part.indices_dim for part in parts}
    dims = sorted(pairs)
    gone = {part.operand_dim for part in parts}
    properties: dict[str, Attribute] = {
        **{
            k: v
            for k, v in op.properties.items()
            if k not in ("proto_id", "indices_are_sorted", "unique_indices")
        },
        names[0]: integers(tuple(d for d in single if d not in gone)),
        names[1]: integers(tuple(d for d in index_map if d not in gone)),
        names[2]: integers(tuple(dims)),
        places: integers(tuple(pairs[d] for d in dims)),
    }
    at = _indices_at(op)
    operands = list(op.operands)
    operands[at] = _without(op.inputs[at], {part.part for part in parts}, op)
    Rewriter(op).replace(op, make(op.opcode.name, operands, op.shape, properties))


def _ints(op: Instruction, name: str) -> tuple[int, ...]:
    found = op.properties.get(name)
    return tuple(found.get_values()) if isinstance(found, DenseArrayBase) else ()


def _without(indices: SSAValue, gone: set[int], op: Instruction) -> SSAValue:
    """A concatenation of the other parts, before `op`."""
    joined = indices.owner
    assert isinstance(joined, ConcatenateOp)
    kept = [part for number, part in enumerate(joined.inputs) if number not in gone]
    if len(kept) == 1:
        return kept[0]
    dim = joined.dimensions[0]
    sizes = list(array(indices).dimensions)
    sizes[dim] = sum(array(part).dimensions[dim] for part in kept)
    old = array(indices)
    shape = ArrayShape(old.element_type, tuple(sizes), (), old.layout)
    made = make("concatenate", kept, shape, {"dimensions": integers((dim,))})
    block = op.parent
    assert block is not None
    block.insert_op_before(made, op)
    return made.output
