"""All-gathers of less: in front of broadcasts, and without dimensions of size 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import AllGatherOp, BroadcastOp, Instruction
from mlirhlo.rewrites.algsimp.common import Builder, array, is_array, made_by, own_properties, sized
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


def _is_plain(op: AllGatherOp) -> bool:
    return (
        len(op.inputs) == 1 and is_array(op) and not (op.constrain_layout or array(op).is_dynamic)
    )


def _gather(
    b: Builder, op: AllGatherOp, value: SSAValue | Instruction, sizes: Sequence[int], dim: int
) -> Instruction:
    """An all-gather as `op` to other sizes, along another dimension."""
    kept = own_properties(op) | {"dimensions": integers((dim,))}
    return b(AllGatherOp, value, shape=sized(array(value), sizes), **kept)


@rule(AllGatherOp, reads=(BroadcastOp,))
def gather_of_broadcast(op: AllGatherOp, rewriter: Rewriter) -> None:
    """all-gather(broadcast(x)) => broadcast(all-gather(x)); reshaped, where x lacks the dimension"""
    broadcast = made_by(op.inputs[0], BroadcastOp) if len(op.inputs) == 1 else None
    if broadcast is None or not _is_plain(op) or broadcast.control_predecessors:
        return
    (dim,), dims, sizes = op.dimensions, broadcast.dimensions, array(op).dimensions
    if prod(n for d, n in enumerate(sizes) if d != dim and d not in dims) <= 1:
        return
    x = broadcast.operand
    own = list(array(x).dimensions)
    b = Builder(op, rewriter)
    if dim in dims:
        place = dims.index(dim)
        own[place] = sizes[dim]
        b.broadcast(_gather(b, op, x, own, place), dims, op.shape)
        b.done()
        return
    tile = array(broadcast).dimensions[dim]
    if not tile:
        return
    # Devices are a dimension of their own, and one with the dimension in the end.
    count = sizes[dim] // tile
    gathered = _gather(b, op, b.reshape(x, sized(array(x), (1, *own))), (count, *own), 0)
    spread = (*sizes[:dim], count, tile, *sizes[dim + 1 :])
    moved = (dim, *(d + (d > dim) for d in dims))
    b.reshape(b.broadcast(gathered, moved, sized(array(op), spread)), op.shape)
    b.done()


@rule(AllGatherOp)
def gather_of_dimensions_of_one(op: AllGatherOp, rewriter: Rewriter) -> None:
    """all-gather(x) => reshape(all-gather(reshape(x))), without other dimensions of size 1"""
    if not _is_plain(op):
        return
    (dim,), sizes = op.dimensions, array(op).dimensions
    kept = [d for d, n in enumerate(sizes) if n != 1 or d == dim]
    if len(kept) == len(sizes) or sizes[dim] == 1:
        return
    source = array(op.inputs[0])
    b = Builder(op, rewriter)
    smaller = b.reshape(op.inputs[0], sized(source, [source.dimensions[d] for d in kept]))
    b.reshape(_gather(b, op, smaller, [sizes[d] for d in kept], kept.index(dim)), op.shape)
    b.done()


@dataclass(frozen=True)
class AllGatherBroadcastReorderPass(RulePass):
    """Gathers what is broadcast before it is, so that devices send less.

    Before and after, on 4 devices:

        %g = f32[8,16] all-gather(f32[2,16] broadcast(f32[2] %x), dimensions={0}), dimensions={0}, …
          =>   %g = f32[8] all-gather(%x), dimensions={0}, …   %b = f32[8,16] broadcast(%g), dimensions={0}

    Where the gathered dimension is one that the broadcast adds, the devices become a dimension of their own in
    between. Layouts that are constrained keep the all-gather. Source: XLA's pass of this name.
    """

    name = "all-gather-bcast-reorder"
    rules: ClassVar[tuple[Rule, ...]] = (gather_of_broadcast,)


@dataclass(frozen=True)
class AllGatherRemoveDegenerateDimsPass(RulePass):
    """Gathers arrays without their dimensions of size 1.

    Before and after, on 4 devices:

        %g = f32[1,8,1] all-gather(f32[1,2,1] %x), dimensions={1}, …
          =>   %g = f32[8] all-gather(f32[2] reshape(%x)), dimensions={0}, …   f32[1,8,1] reshape(%g)

    Source: XLA's pass of this name.
    """

    name = "all-gather-remove-degenerate-dims"
    rules: ClassVar[tuple[Rule, ...]] = (gather_of_dimensions_of_one,)
