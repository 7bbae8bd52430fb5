"""Rules of broadcast."""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.ops import (
    BroadcastOp,
    DynamicSliceOp,
    Instruction,
    IotaOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.ops.base import OP_CLASSES
from mlirhlo.dialects.hlo.table import Movement, opcodes
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    is_array,
    is_scalar_broadcast,
    made_by,
    own_properties,
    sized,
    typed,
)
from mlirhlo.rewrites.rules import Rewriter, rule

LI = ("!is_layout_sensitive",)


@rule(BroadcastOp, needs=LI)
def broadcast_of_same_count(op: BroadcastOp, rewriter: Rewriter) -> None:
    """broadcast(x) => reshape(x), as many elements in the same order"""
    small, dims = array(op.operand), op.dimensions
    if small.element_count != array(op).element_count or list(dims) != sorted(dims):
        return
    if small.is_dynamic or array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    b.reshape(op.operand, op.shape)
    b.done()


@rule(BroadcastOp, needs=LI)
def broadcast_that_transposes(op: BroadcastOp, rewriter: Rewriter) -> None:
    """broadcast(x) => transpose(x), of the same rank and count"""
    small, dims = array(op.operand), op.dimensions
    if len(dims) != array(op).rank or small.element_count != array(op).element_count:
        return
    if list(dims) == sorted(dims) or small.is_dynamic:
        return
    order = tuple(dims.index(d) for d in range(len(dims)))
    if tuple(small.dimensions[d] for d in order) != array(op).dimensions:
        return
    b = Builder(op, rewriter)
    b.like(TransposeOp, op.operand, dimensions=integers(order))
    b.done()


@rule(BroadcastOp, needs=LI, reads=(BroadcastOp,))
def broadcast_of_broadcast(op: BroadcastOp, rewriter: Rewriter) -> None:
    """broadcast(broadcast(x)) => broadcast(x)"""
    if (inner := made_by(op.operand, BroadcastOp)) is not None:
        b = Builder(op, rewriter)
        b.broadcast(inner.operand, [op.dimensions[d] for d in inner.dimensions], op.shape)
        b.done()


@rule(BroadcastOp, needs=LI, reads=(IotaOp,))
def broadcast_of_iota(op: BroadcastOp, rewriter: Rewriter) -> None:
    """broadcast(iota) => iota"""
    if (inner := made_by(op.operand, IotaOp)) is not None and not array(op).is_dynamic:
        b = Builder(op, rewriter)
        b.like(IotaOp, iota_dimension=integer(op.dimensions[inner.iota_dimension]))
        b.done()


@rule(BroadcastOp, needs=LI, reads=(ReshapeOp,))
def broadcast_of_inserting_reshape(op: BroadcastOp, rewriter: Rewriter) -> None:
    """broadcast(reshape(x)) => broadcast(x), the reshape only inserting dimensions of size 1"""
    inner = made_by(op.operand, ReshapeOp)
    if inner is None or array(inner).is_dynamic:
        return
    inserted = inserted_ones(inner)
    if not inserted:
        return
    kept = [d for i, d in enumerate(op.dimensions) if i not in inserted]
    b = Builder(op, rewriter)
    b.broadcast(inner.operand, kept, op.shape)
    b.done()


def inserted_ones(op: ReshapeOp) -> tuple[int, ...] | None:
    """Result dimensions that a reshape inserts, when it only inserts ones; else None."""
    small, big = array(op.operand).dimensions, array(op).dimensions
    found: list[int] = []
    place = 0
    for dim, size in enumerate(big):
        if place < len(small) and small[place] == size:
            place += 1
        elif size == 1:
            found.append(dim)
        else:
            return None
    return tuple(found) if place == len(small) else None


@rule(BroadcastOp, needs=("enable_broadcast_degenerate_dimension", *LI))
def broadcast_of_degenerate(op: BroadcastOp, rewriter: Rewriter) -> None:
    """broadcast(x) => broadcast(reshape(x)), dimensions of size 1 gone from x"""
    small = array(op.operand)
    if 1 not in small.dimensions or small.is_dynamic or array(op).is_dynamic:
        return
    if small.element_count == array(op).element_count:
        return
    keep = [d for d, size in enumerate(small.dimensions) if size != 1]
    b = Builder(op, rewriter)
    squeezed = b.reshape(op.operand, sized(small, [small.dimensions[d] for d in keep]))
    b.broadcast(squeezed, [op.dimensions[d] for d in keep], op.shape)
    b.done()


def _scalar_user(op: Instruction, rewriter: Rewriter) -> None:
    source = is_scalar_broadcast(op.operands[0])
    if source is None or array(op).is_dynamic or array(source).is_dynamic:
        return
    b = Builder(op, rewriter)
    if array(op).dimensions:
        b.broadcast(source.operand, (), op.shape)
        b.done()
    elif not op.control_predecessors:
        rewriter.replace_by_value(op, source.operand)
        rewriter.erase_unread(source)


@rule(ReshapeOp, TransposeOp, ReverseOp, SliceOp, DynamicSliceOp, reads=(BroadcastOp,))
def movement_of_scalar_broadcast(op: Instruction, rewriter: Rewriter) -> None:
    """f(bc(x)) => bc(x), x a scalar, f reshape, transpose, reverse, slice, dynamic-slice"""
    _scalar_user(op, rewriter)


ELEMENTWISE = opcodes(lambda row: row.elementwise and row.movement is not Movement.COPY)


@rule(
    *(OP_CLASSES[name] for name in sorted(ELEMENTWISE)),
    needs=("enable_sink_broadcast",),
    reads=(BroadcastOp,),
)
def elementwise_of_broadcasts(op: Instruction, rewriter: Rewriter) -> None:
    """f(bc(x), bc(y)) => bc(f(x, y)), f element-wise, x and y scalars or broadcast alike"""
    if type(op.inputs[0].owner) is not BroadcastOp:
        return
    found = [owner for v in op.inputs if isinstance(owner := v.owner, BroadcastOp)]
    if len(found) != len(op.inputs) or op.control_predecessors:
        return
    if not is_array(op) or array(op).is_dynamic:
        return
    wide = [s for s in found if array(s.operand).dimensions]
    first = wide[0] if wide else found[0]
    small = array(first.operand)
    for other in found:
        if array(other).dimensions != array(op).dimensions:
            return
    for other in wide:
        if array(other.operand).dimensions != small.dimensions:
            return
        if other.dimensions != first.dimensions:
            return
    if small.element_count >= array(op).element_count:
        return
    b = Builder(op, rewriter)
    operands = [
        s.operand
        if array(s.operand).dimensions == small.dimensions
        else b.spread(s.operand, typed(sized(small, small.dimensions), element(s))).output
        for s in found
    ]
    shape = typed(small, array(op).element_type)
    inner = b(type(op), *operands, shape=shape, **own_properties(op))
    b.broadcast(inner, first.dimensions, op.shape)
    b.done()


RULES = (
    broadcast_of_broadcast,
    broadcast_of_iota,
    broadcast_of_inserting_reshape,
    broadcast_that_transposes,
    broadcast_of_same_count,
    broadcast_of_degenerate,
    movement_of_scalar_broadcast,
    elementwise_of_broadcasts,
)
