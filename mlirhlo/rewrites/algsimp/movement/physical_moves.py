"""Rules of bitcast and copy, and of movements that are bitcasts where layouts are assigned."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import (
    BitcastConvertOp,
    BitcastOp,
    BroadcastOp,
    CopyOp,
    Instruction,
    ReshapeOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.ops.base import Unary
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    has_one_user,
    is_array,
    made_by,
    own_properties,
)
from mlirhlo.rewrites.algsimp.movement.broadcast import ELEMENTWISE
from mlirhlo.rewrites.algsimp.movement.physical import (
    is_plain,
    reshape_is_bitcast,
    reshaped_in_place,
    same_memory,
    transpose_is_bitcast,
    transposition,
)
from mlirhlo.rewrites.rules import Rewriter, rule

LS = ("is_layout_sensitive",)


@rule(BitcastOp, reads=(BitcastOp,))
def bitcast_of_bitcast(op: BitcastOp, rewriter: Rewriter) -> None:
    """bitcast(bitcast(x)) => bitcast(x)"""
    inner = made_by(op.operand, BitcastOp)
    if inner is not None and not op.control_predecessors:
        b = Builder(op, rewriter)
        b.like(BitcastOp, inner.operand)
        b.done()


@rule(BitcastOp)
def bitcast_to_same_shape(op: BitcastOp, rewriter: Rewriter) -> None:
    """bitcast(x) => x, x of that shape"""
    if is_array(op) and is_array(op.operand) and op.shape == array(op.operand):
        forward(op, rewriter, op.operand)


@rule(BitcastOp)
def bitcast_of_elementwise_of_bitcast(op: BitcastOp, rewriter: Rewriter) -> None:
    """bitcast(f(bitcast(x))) => bitcast(f(x)), f element-wise of one operand"""
    middle = op.operand.owner
    if not isinstance(middle, Unary) or middle.opcode.name not in ELEMENTWISE:
        return
    inner = made_by(middle.operand, BitcastOp)
    if inner is None or not has_one_user(op.operand) or op.control_predecessors:
        return
    if middle.control_predecessors or len({element(v) for v in _chain(op, middle, inner)}) != 1:
        return
    if not all(is_plain(array(v)) for v in _chain(op, middle, inner)):
        return
    b = Builder(op, rewriter)
    inner_shape, kept = array(inner.operand), own_properties(middle)
    b.like(BitcastOp, b(type(middle), inner.operand, shape=inner_shape, **kept))
    b.done()


def _chain(op: BitcastOp, middle: Unary, inner: BitcastOp) -> tuple[SSAValue, ...]:
    return (op.output, middle.output, inner.output, inner.operand)


@rule(BitcastOp, reads=(BroadcastOp,))
def bitcast_of_broadcast(op: BitcastOp, rewriter: Rewriter) -> None:
    """bitcast(broadcast(x)) => broadcast(x), the bitcast being a transpose"""
    inner = made_by(op.operand, BroadcastOp)
    if inner is None or op.control_predecessors or element(op) is not element(inner):
        return
    order = transposition(array(inner), array(op))
    if order is not None:
        b = Builder(op, rewriter)
        b.broadcast(inner.operand, [order.index(d) for d in inner.dimensions], op.shape)
        b.done()


@rule(BitcastConvertOp, needs=("rewrite_no_op_bitcast_convert_to_bitcast", *LS))
def bitcast_convert_in_place(op: BitcastConvertOp, rewriter: Rewriter) -> None:
    """bitcast-convert(x) => bitcast(x), where the bytes stand as they are"""
    source, result = array(op.operand), array(op)
    if not (is_plain(source) and is_plain(result)) or "pred" in (
        source.element_type.name,
        result.element_type.name,
    ):
        return
    if min(source.element_type.bits, result.element_type.bits) < 8:
        return
    wide, narrow = (source, result) if source.rank < result.rank else (result, source)
    # A dimension that splits elements has to be the most minor one, the rest in the same order.
    order = (narrow.layout or wide.layout).minor_to_major if narrow.layout and wide.layout else ()
    if narrow.rank > wide.rank:
        if not order or order[0] != narrow.rank - 1:
            return
        order = order[1:]
    if wide.layout is None or wide.layout.minor_to_major != order:
        return
    b = Builder(op, rewriter)
    b.like(BitcastOp, op.operand)
    b.done()


# ---------------------------------------------------------------- movements that move nothing


@rule(ReshapeOp, needs=LS)
def reshape_in_place(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(x) => bitcast(x), every byte staying"""
    if reshape_is_bitcast(array(op.operand), array(op)):
        _bitcast(op, rewriter, op.operand)


@rule(TransposeOp, needs=LS)
def transpose_in_place(op: TransposeOp, rewriter: Rewriter) -> None:
    """transpose(x) => bitcast(x), every byte staying"""
    if transpose_is_bitcast(array(op.operand), array(op), op.dimensions):
        _bitcast(op, rewriter, op.operand)


def _bitcast(op: Instruction, rewriter: Rewriter, value: SSAValue) -> None:
    b = Builder(op, rewriter)
    b.like(BitcastOp, value)
    b.done()


def _movement(value: SSAValue) -> ReshapeOp | BitcastOp | None:
    """The reshape, or the bitcast that is one, that makes `value` for one user."""
    owner = value.owner
    if not isinstance(owner, (ReshapeOp, BitcastOp)) or not has_one_user(value):
        return None
    if owner.control_predecessors or element(owner) is not element(owner.operand):
        return None
    if isinstance(owner, BitcastOp) and not reshape_is_bitcast(array(owner.operand), array(owner)):
        return None
    return owner


@rule(ReshapeOp, needs=LS, reads=(BitcastOp,))
def reshape_of_bitcast(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(bitcast(x)) => reshape(x), the bitcast reshaping"""
    inner = _movement(op.operand)
    if isinstance(inner, BitcastOp) and not array(inner.operand).is_dynamic:
        b = Builder(op, rewriter)
        b.like(ReshapeOp, inner.operand)
        b.done()


@rule(CopyOp, needs=LS)
def copy_of_reshape_in_place(op: CopyOp, rewriter: Rewriter) -> None:
    """copy(reshape(x)) => bitcast(x), both together leaving every byte"""
    if is_array(op) and (inner := _movement(op.operand)) is not None:
        if reshape_is_bitcast(array(inner.operand), array(op)):
            _bitcast(op, rewriter, inner.operand)


@rule(CopyOp, needs=LS)
def copy_of_bitcast_of_copy(op: CopyOp, rewriter: Rewriter) -> None:
    """copy(bitcast(copy(x))) => copy(bitcast(x)), the bitcast reshaping"""
    inner = _movement(op.operand) if is_array(op) else None
    first = None if inner is None else made_by(inner.operand, CopyOp)
    if inner is None or first is None or first.control_predecessors:
        return
    if not has_one_user(first.output) or not same_memory(array(first.operand), array(op)):
        return
    shape = reshaped_in_place(array(first.operand), array(op).dimensions)
    if shape is None:
        return
    b = Builder(op, rewriter)
    b.like(CopyOp, b(BitcastOp, first.operand, shape=shape))
    b.done()


@rule(CopyOp, needs=LS, reads=(ReshapeOp,))
def copy_before_reshape(op: CopyOp, rewriter: Rewriter) -> None:
    """copy(reshape(x)) => bitcast(copy(x)), the reshape no bitcast, after the copy one"""
    inner = made_by(op.operand, ReshapeOp)
    if inner is None or not has_one_user(op.operand) or inner.control_predecessors:
        return
    source = array(inner.operand)
    if reshape_is_bitcast(source, array(inner)) or not same_memory(source, array(op)):
        return
    shape = reshaped_in_place(array(op), source.dimensions)
    if shape is None or shape == source or not is_plain(source):
        return
    b = Builder(op, rewriter)
    b.like(BitcastOp, b(CopyOp, inner.operand, shape=shape))
    b.done()


@rule(ReshapeOp, needs=LS, reads=(CopyOp,))
def reshape_of_copy(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(copy(x)) => copy(bitcast(x)), the reshape no bitcast, before the copy one"""
    inner = made_by(op.operand, CopyOp)
    if inner is None or not has_one_user(op.operand) or inner.control_predecessors:
        return
    source = array(inner.operand)
    if reshape_is_bitcast(array(inner), array(op)) or not same_memory(source, array(op)):
        return
    if (
        not is_plain(array(op))
        or (shape := reshaped_in_place(source, array(op).dimensions)) is None
    ):
        return
    b = Builder(op, rewriter)
    moved = b(BitcastOp, inner.operand, shape=shape)
    if shape == op.shape:
        b.done(moved)
        return
    b.like(CopyOp, moved)
    b.done()


RULES = (
    bitcast_to_same_shape,
    bitcast_of_bitcast,
    bitcast_of_elementwise_of_bitcast,
    bitcast_of_broadcast,
    bitcast_convert_in_place,
    reshape_in_place,
    transpose_in_place,
    reshape_of_bitcast,
    copy_of_reshape_in_place,
    copy_of_bitcast_of_copy,
    copy_before_reshape,
    reshape_of_copy,
)
