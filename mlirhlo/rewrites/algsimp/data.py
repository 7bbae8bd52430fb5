"""Rules of constant, iota, get-tuple-element, sort, gather, reduce and optimization barriers."""

from __future__ import annotations

import math

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BroadcastOp,
    ConstantOp,
    GatherOp,
    GetTupleElementOp,
    IotaOp,
    MultiplyOp,
    ParameterOp,
    ReduceOp,
    ReshapeOp,
    SortOp,
    TransposeOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.broadcast import LI
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    forward,
    is_array,
    literal_of,
    made_by,
    options_of,
    sized,
    splat_bytes,
)
from mlirhlo.rewrites.algsimp.mapping import called
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(ConstantOp)
def constant_of_equals(op: ConstantOp, rewriter: Rewriter) -> None:
    """constant({c, c, …}) => bc(c)"""
    literal = literal_of(op.output)
    if literal is None or array(op).element_count <= 1:
        return
    if (one := splat_bytes(op.output)) is None:
        return
    b = Builder(op, rewriter)
    scalar = b.constant(
        Literal(ArrayShape(literal.element_type, (), (), sized(array(op), ()).layout), one)
    )
    b.spread(scalar, array(op))
    b.done()


_LONGEST_IOTA = 1 << 16
"""Longer constants are not looked at: numbers that long are weights, not iotas."""


@rule(ConstantOp)
def constant_of_iota(op: ConstantOp, rewriter: Rewriter) -> None:
    """constant({0, 1, 2, …}) => iota"""
    literal = literal_of(op.output)
    if literal is None or not literal.element_type.is_integer or array(op).rank != 1:
        return
    if not 1 < array(op).element_count <= _LONGEST_IOTA or literal.element_type.bits < 8:
        return
    import numpy as np

    values = literal.array
    if values[0] == 0 and bool((values == np.arange(len(values))).all()):
        b = Builder(op, rewriter)
        b.like(IotaOp, iota_dimension=integer(0))
        b.done()


@rule(IotaOp)
def iota_of_one(op: IotaOp, rewriter: Rewriter) -> None:
    """iota => 0, its dimension of size at most 1"""
    if array(op).dimensions[op.iota_dimension] <= 1 and not array(op).is_dynamic:
        b = Builder(op, rewriter)
        b.splat(array(op), 0)
        b.done()


@rule(GetTupleElementOp)
def get_tuple_element_of_tuple(op: GetTupleElementOp, rewriter: Rewriter) -> None:
    """get-tuple-element(tuple(…, x_i, …), i) => x_i"""
    if (built := made_by(op.operand, TupleOp)) is not None:
        forward(op, rewriter, built.inputs[op.index])


@rule(SortOp)
def sort_of_one(op: SortOp, rewriter: Rewriter) -> None:
    """sort(x, …) => x, the dimension of size at most 1"""
    dim, first = op.dimensions[0], array(op.inputs[0])
    if first.is_dynamic or (first.dimensions[dim] > 1 and first.element_count):
        return
    if is_array(op):
        forward(op, rewriter, op.inputs[0])
        return
    b = Builder(op, rewriter)
    b.like(TupleOp, *op.inputs)
    b.done()


@rule(GatherOp)
def gather_of_empty(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(x, i) => bc(0), x empty"""
    if array(op.operand).element_count or array(op).is_dynamic or not array(op).dimensions:
        return
    b = Builder(op, rewriter)
    b.splat(array(op), 0)
    b.done()


@rule(GatherOp, needs=LI)
def gather_of_one_element(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(x, i) => bc(x), x of one element"""
    source = array(op.operand)
    if source.element_count != 1 or array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    scalar = b.reshape(op.operand, sized(source, ())) if source.dimensions else None
    if scalar is not None:
        b.spread(scalar, array(op))
        b.done()


@rule(ReduceOp)
def reduce_of_empty(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(x, init) => bc(init), x or the result empty"""
    if not is_array(op) or len(op.inputs) != 2 or array(op).is_dynamic:
        return
    if array(op).element_count and array(op.inputs[0]).element_count:
        return
    b = Builder(op, rewriter)
    if array(op).dimensions:
        b.broadcast(op.inputs[1], (), op.shape)
        b.done()
    else:
        forward(op, rewriter, op.inputs[1])


@rule(ReduceOp, needs=LI, contract="zeros")
def reduce_of_same_count(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(x, init) => reshape(x), dimensions of size 1 reduced; init is an identity"""
    if not is_array(op) or len(op.inputs) != 2:
        return
    source = array(op.inputs[0])
    if source.element_count != array(op).element_count or not source.element_count:
        return
    if source.is_dynamic or source.element_type is not array(op).element_type:
        return
    b = Builder(op, rewriter)
    b.reshape(op.inputs[0], op.shape)
    b.done()


@rule(ReduceOp, needs=LI, contract="rounding")
def reduce_of_transpose(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(transpose(x), init) => transpose(reduce(x, init))"""
    if not is_array(op) or len(op.inputs) != 2:
        return
    inner = made_by(op.inputs[0], TransposeOp)
    if inner is None or array(inner).is_dynamic:
        return
    always = options_of(rewriter).unconditionally_simplify_reduce_of_transpose_or_reshape
    if array(op).rank >= 2 and not always and not op.inputs[0].has_one_use():
        return
    dims = tuple(sorted(inner.dimensions[d] for d in op.dimensions))
    kept = [inner.dimensions[d] for d in range(array(inner).rank) if d not in op.dimensions]
    source = array(inner.operand)
    shape = sized(array(op), [source.dimensions[d] for d in sorted(kept)])
    b = Builder(op, rewriter)
    properties = {"dimensions": integers(dims), "to_apply": op.properties["to_apply"]}
    folded = b(ReduceOp, inner.operand, op.inputs[1], shape=shape, **properties)
    if kept != sorted(kept):
        order = integers(tuple(sorted(kept).index(d) for d in kept))
        b.like(TransposeOp, folded, dimensions=order)
    b.done()


@rule(ReduceOp, needs=("enable_reduce_of_reshape", *LI), contract="rounding")
def reduce_of_reshape(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(reshape(x), init) => reduce(x, init), the reshape touching reduced dimensions only"""
    if not is_array(op) or len(op.inputs) != 2:
        return
    inner = made_by(op.inputs[0], ReshapeOp)
    if inner is None or array(inner).is_dynamic or array(inner.operand).is_dynamic:
        return
    from mlirhlo.rewrites.algsimp.reshape import unmodified

    if not array(inner).element_count:
        return
    source = array(inner.operand)
    same = unmodified(array(inner), source)
    kept = [d for d in range(array(inner).rank) if d not in op.dimensions]
    if any(d not in same for d in kept):
        return
    there = [same[d] for d in kept]
    dims = tuple(d for d in range(source.rank) if d not in there)
    if there != sorted(there) or not dims:
        return
    b = Builder(op, rewriter)
    properties = {"dimensions": integers(dims), "to_apply": op.properties["to_apply"]}
    b.like(ReduceOp, inner.operand, op.inputs[1], **properties)
    b.done()


@rule(ReduceOp, needs=LI)
def reduce_of_broadcast(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(broadcast(x), init) => broadcast(reduce(x, init)), dimensions of x reduced only"""
    if not is_array(op) or len(op.inputs) != 2:
        return
    inner = made_by(op.inputs[0], BroadcastOp)
    if inner is None or not inner.dimensions or array(inner).is_dynamic:
        return
    if any(d not in inner.dimensions for d in op.dimensions):
        return
    small = array(inner.operand)
    dims = tuple(sorted(inner.dimensions.index(d) for d in op.dimensions))
    left = [d for d in range(small.rank) if d not in dims]
    kept = [d for d in range(array(inner).rank) if d not in op.dimensions]
    b = Builder(op, rewriter)
    shape = sized(array(op), [small.dimensions[d] for d in left])
    properties = {"dimensions": integers(dims), "to_apply": op.properties["to_apply"]}
    folded = b(ReduceOp, inner.operand, op.inputs[1], shape=shape, **properties)
    b.broadcast(folded, [kept.index(inner.dimensions[d]) for d in left], op.shape)
    b.done()


@rule(ConstantOp)
def constant_of_scaled_iota(op: ConstantOp, rewriter: Rewriter) -> None:
    """constant({0, s, 2 s, …}) => iota * bc(s), s more than 1"""
    literal = literal_of(op.output)
    if literal is None or not literal.element_type.is_integer or array(op).rank != 1:
        return
    if not 1 < array(op).element_count <= _LONGEST_IOTA or literal.element_type.bits < 8:
        return
    import numpy as np

    values = literal.array
    step, count = int(values[1]), len(values)
    most = (1 << (literal.element_type.bits - literal.element_type.is_signed)) - 1
    if values[0] != 0 or step <= 1 or step * (count - 1) > most:
        return
    if bool((values == np.arange(count, dtype=values.dtype) * values[1]).all()):
        b = Builder(op, rewriter)
        b.like(MultiplyOp, b.like(IotaOp, iota_dimension=integer(0)), b.splat(array(op), step))
        b.done()


@rule(ReduceOp, needs=LI, contract="rounding")
def reduce_of_added_dimensions(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce_add(broadcast(x), init) => bc(init) + x * count, dimensions not of x reduced only"""
    if not is_array(op) or len(op.inputs) != 2 or array(op).is_dynamic:
        return
    inner = made_by(op.inputs[0], BroadcastOp)
    if inner is None or any(d in inner.dimensions for d in op.dimensions):
        return
    computation = called(op, op.to_apply)
    root = computation.terminator.root.owner if computation is not None else None
    if not isinstance(root, AddOp) or {type(v.owner) for v in root.inputs} != {ParameterOp}:
        return
    if root.lhs is root.rhs or array(op).element_type.name == "pred":
        return
    count = math.prod(array(inner).dimensions[d] for d in op.dimensions)
    if not array(op).element_type.is_float and count >= 1 << (array(op).element_type.bits - 1):
        return
    kept = [d for d in range(array(inner).rank) if d not in op.dimensions]
    b = Builder(op, rewriter)
    shape = sized(array(op), array(op).dimensions)
    spread = b.broadcast(inner.operand, [kept.index(d) for d in inner.dimensions], shape)
    product = b(MultiplyOp, spread, b.splat(shape, count), shape=shape)
    b.like(AddOp, b.spread(op.inputs[1], shape), product)
    b.done()


RULES = (
    constant_of_equals,
    constant_of_iota,
    constant_of_scaled_iota,
    iota_of_one,
    get_tuple_element_of_tuple,
    sort_of_one,
    gather_of_empty,
    gather_of_one_element,
    reduce_of_empty,
    reduce_of_same_count,
    reduce_of_transpose,
    reduce_of_reshape,
    reduce_of_broadcast,
    reduce_of_added_dimensions,
)
