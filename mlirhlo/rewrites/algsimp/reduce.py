"""Rules of reduce."""

from __future__ import annotations

import math
from itertools import islice
from typing import TypeAlias

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    AndOp,
    BroadcastOp,
    CompareOp,
    ComputationOp,
    ConcatenateOp,
    DotOp,
    GetTupleElementOp,
    Instruction,
    IotaOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    NegateOp,
    OrOp,
    ParameterOp,
    ReduceOp,
    ReshapeOp,
    SelectOp,
    TransposeOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.algsimp.arithmetic.minmax import is_end
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    has_one_user,
    is_all,
    is_array,
    is_scalar_broadcast,
    made_by,
    options_of,
    sized,
    splat_bytes,
    splat_of,
    starts_neutral,
)
from mlirhlo.rewrites.algsimp.dot import is_plain
from mlirhlo.rewrites.algsimp.mapping import reducer
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
from mlirhlo.rewrites.algsimp.movement.physical import reshape_is_bitcast
from mlirhlo.rewrites.algsimp.movement.reshape import unmodified
from mlirhlo.rewrites.computations import add_rerooted
from mlirhlo.rewrites.rules import Rewriter, rule

Extreme: TypeAlias = type[MaximumOp] | type[MinimumOp]


def is_single(op: ReduceOp) -> bool:
    """Whether one array is reduced to one array."""
    return is_array(op) and len(op.inputs) == 2


def _over(op: ReduceOp, dims: tuple[int, ...]) -> dict[str, Attribute]:
    """Properties of a reduce by the same computation over other dimensions."""
    return {"dimensions": integers(dims), "to_apply": op.properties["to_apply"]}


def _same_start(a: SSAValue, b: SSAValue) -> bool:
    """Whether both are the same initial value."""
    return a is b or (splat_bytes(a) is not None and splat_bytes(a) == splat_bytes(b))


@rule(ReduceOp)
def reduce_of_empty(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(x, init) => bc(init), x or the result empty"""
    if not is_single(op) or array(op).is_dynamic:
        return
    if array(op).element_count and array(op.inputs[0]).element_count:
        return
    b = Builder(op, rewriter)
    if array(op).dimensions:
        b.broadcast(op.inputs[1], (), op.shape)
        b.done()
    else:
        forward(op, rewriter, op.inputs[1])


@rule(ReduceOp, contract="zeros")
def reduce_of_same_count(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(x, init) => f(bc(init), reshape(x)), dimensions of size 1 reduced; reshape(x) for a neutral init

    Of several arrays, whose inits are neutral: a tuple of their reshapes. Where layouts are assigned, only if every
    byte stays.
    """
    source, result = array(op.inputs[0]), op.shape
    shapes = result.elements if isinstance(result, TupleShape) else (result,)
    if any(source.dimensions[d] != 1 for d in op.dimensions) or not source.element_count:
        return
    values = op.inputs[: len(shapes)]
    for value, shape in zip(values, shapes, strict=True):
        assert isinstance(shape, ArrayShape)
        if array(value).is_dynamic or array(value).element_type is not shape.element_type:
            return
        if options_of(rewriter).is_layout_sensitive and not reshape_is_bitcast(array(value), shape):
            return
    cls = None
    if not starts_neutral(op, rewriter.computation(op.to_apply)):
        cls = reducer(op.to_apply, rewriter) if is_single(op) else None
        if cls is None:
            return
    b = Builder(op, rewriter)
    parts = [b.reshape(value, shape) for value, shape in zip(values, shapes, strict=True)]
    if cls is not None:
        b.like(cls, b.spread(op.inputs[1], array(op)), *parts)
    if isinstance(result, TupleShape):
        b.like(TupleOp, *parts)
    b.done()


@rule(ReduceOp, needs=LI, contract="rounding", reads=(TransposeOp,))
def reduce_of_transpose(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(transpose(x), init) => transpose(reduce(x, init))"""
    if not is_single(op):
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


@rule(ReduceOp, needs=("enable_reduce_of_reshape", *LI), contract="rounding", reads=(ReshapeOp,))
def reduce_of_reshape(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(reshape(x), init) => reduce(x, init), the reshape touching reduced dimensions only"""
    if not is_single(op):
        return
    inner = made_by(op.inputs[0], ReshapeOp)
    if inner is None or array(inner).is_dynamic or array(inner.operand).is_dynamic:
        return
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


@rule(ReduceOp, needs=LI, reads=(BroadcastOp,))
def reduce_of_broadcast(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(broadcast(x), init) => broadcast(reduce(x, init)), dimensions of x reduced only"""
    if not is_single(op):
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


@rule(ReduceOp, needs=LI, contract="rounding", reads=(BroadcastOp,))
def reduce_of_added_dimensions(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce_add(broadcast(x), init) => bc(init) + x * count, dimensions not of x reduced only"""
    if not is_single(op) or array(op).is_dynamic:
        return
    inner = made_by(op.inputs[0], BroadcastOp)
    if inner is None or any(d in inner.dimensions for d in op.dimensions):
        return
    if reducer(op.to_apply, rewriter) is not AddOp or element(op).name == "pred":
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


@rule(ReduceOp)
def reduce_of_one_in_tuple(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(x, init) of a tuple of one => tuple(reduce(x, init))"""
    if is_array(op) or len(op.inputs) != 2:
        return
    computation = rewriter.computation(op.to_apply)
    root = None if computation is None else computation.root
    if computation is None or not isinstance(root, TupleOp) or len(root.inputs) != 1:
        return
    plain = add_rerooted(op, computation, root.inputs[0])
    shape = op.shape
    assert isinstance(shape, TupleShape)
    b = Builder(op, rewriter)
    properties = {"dimensions": op.properties["dimensions"], "to_apply": plain}
    b.like(TupleOp, b(ReduceOp, *op.inputs, shape=shape.elements[0], **properties))
    b.done()


@rule(ReduceOp, needs=LI, contract="zeros", reads=(NegateOp,))
def reduce_of_negate(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce_add(-x, 0) => -reduce_add(x, 0), floats"""
    if not is_single(op) or not element(op).is_float or not is_all(op.inputs[1], 0):
        return
    inner = made_by(op.inputs[0], NegateOp)
    if inner is None or reducer(op.to_apply, rewriter) is not AddOp:
        return
    b = Builder(op, rewriter)
    folded = b(ReduceOp, inner.operand, op.inputs[1], shape=array(op), **_over(op, op.dimensions))
    b.like(NegateOp, folded)
    b.done()


_MOST_READERS = 64
"""Of an array, among which one that computes the same is looked for."""


@rule(ReduceOp, needs=LI, contract="rounding", reads=(ReduceOp,))
def reduce_of_reduce(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(reduce(x, init), init) => reduce(x, init), over the dimensions of both; a neutral init"""
    inner = made_by(op.inputs[0], ReduceOp)
    if not is_single(op) or inner is None or not is_single(inner) or inner.control_predecessors:
        return
    if not _same_start(op.inputs[1], inner.inputs[1]) or not starts_neutral(
        op, rewriter.computation(op.to_apply)
    ):
        return
    if op.to_apply != inner.to_apply:
        cls = reducer(op.to_apply, rewriter)
        if (
            cls is None
            or cls.opcode.identity is None
            or cls is not reducer(inner.to_apply, rewriter)
        ):
            return
    source = array(inner.inputs[0])
    kept = [d for d in range(source.rank) if d not in inner.dimensions]
    dims = tuple(sorted((*inner.dimensions, *(kept[d] for d in op.dimensions))))
    b = Builder(op, rewriter)
    b.like(ReduceOp, inner.inputs[0], op.inputs[1], **_over(op, dims))
    b.done()


@rule(ReduceOp, needs=("enable_reduce_of_reshape", *LI), contract="rounding", reads=(ReshapeOp,))
def reduce_beside_reshape(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(reshape(x), init) => reshape(reduce(x, init)), the reshape touching kept dimensions only"""
    inner = made_by(op.inputs[0], ReshapeOp)
    if not is_single(op) or inner is None or array(inner).is_dynamic:
        return
    source = array(inner.operand)
    always = options_of(rewriter).unconditionally_simplify_reduce_of_transpose_or_reshape
    if not source.element_count or not (always or has_one_user(op.inputs[0])):
        return
    same = unmodified(array(inner), source)
    if any(d not in same for d in op.dimensions) or not op.dimensions:
        return
    dims = tuple(sorted(same[d] for d in op.dimensions))
    shape = sized(array(op), [n for d, n in enumerate(source.dimensions) if d not in dims])
    b = Builder(op, rewriter)
    folded = b(ReduceOp, inner.operand, op.inputs[1], shape=shape, **_over(op, dims))
    b.reshape(folded, op.shape)
    b.done()


@rule(ReduceOp, needs=LI, contract="rounding", reads=(ConcatenateOp,))
def reduce_of_concatenate(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(concat(a, b, …), init) => f(reduce(a, init), reduce(b, init), …), joined where reduced; a neutral init"""
    inner = made_by(op.inputs[0], ConcatenateOp)
    if not is_single(op) or inner is None or array(inner).is_dynamic:
        return
    cls = reducer(op.to_apply, rewriter)
    if cls is None or not starts_neutral(op, rewriter.computation(op.to_apply)):
        return
    if inner.dimensions[0] not in op.dimensions:
        return
    always = options_of(rewriter).enable_unconditional_reduce_of_concat_replacement
    sizes = {array(v).dimensions for v in inner.inputs}
    if not always and len(sizes) > 1 and array(op).dimensions:
        return
    b = Builder(op, rewriter)
    parts = [
        b(ReduceOp, v, op.inputs[1], shape=array(op), **_over(op, op.dimensions))
        for v in inner.inputs
    ]
    whole: Instruction = parts[0]
    for part in parts[1:]:
        whole = b.like(cls, whole, part)
    b.done(whole)


@rule(ReduceOp, needs=LI, contract="rounding", reads=(DotOp,))
def reduce_of_batched_dot(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce_add(dot(a, b), 0) => dot(a, b), the batch dimensions reduced now contracted"""
    inner = made_by(op.inputs[0], DotOp)
    if not is_single(op) or inner is None or not is_plain(inner) or not is_all(op.inputs[1], 0):
        return
    if not has_one_user(op.inputs[0]) or inner.control_predecessors:
        return
    batch = len(inner.lhs_batch_dims)
    if any(d >= batch for d in op.dimensions):
        return
    if reducer(op.to_apply, rewriter) is not AddOp:
        return
    properties: dict[str, Attribute] = {}
    if (precision := inner.properties.get("operand_precision")) is not None:
        properties["operand_precision"] = precision
    for side, batch_dims, contracted in (
        ("lhs", inner.lhs_batch_dims, inner.lhs_contracting_dims),
        ("rhs", inner.rhs_batch_dims, inner.rhs_contracting_dims),
    ):
        moved = tuple(batch_dims[d] for d in op.dimensions)
        left = tuple(d for d in batch_dims if d not in moved)
        properties[f"{side}_contracting_dims"] = integers((*moved, *contracted))
        if left:
            properties[f"{side}_batch_dims"] = integers(left)
    b = Builder(op, rewriter)
    b.like(DotOp, *inner.inputs, **properties)
    b.done()


@rule(ReduceOp, needs=LI, reads=(BroadcastOp,))
def reduce_of_scalar_broadcast(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(bc(x), init) => f(x, init), f maximum, minimum, and, or; x a scalar, all of it reduced"""
    spread = is_scalar_broadcast(op.inputs[0])
    if not is_single(op) or spread is None or array(op).dimensions:
        return
    if array(spread).is_dynamic or not array(spread).element_count:
        return
    cls = reducer(op.to_apply, rewriter)
    if cls is not None and cls.opcode.idempotent:
        b = Builder(op, rewriter)
        b.like(cls, spread.operand, op.inputs[1])
        b.done()


# ---------------------------------------------------------------- the place of an extreme


def arg_extreme(computation: ComputationOp | None) -> Extreme | None:
    """MaximumOp or MinimumOp, if a computation keeps the greater (less) of two values with its index.

    Its parameters are two pairs of value and index; a NaN wins, and the lesser index among equals.
    """
    root = None if computation is None else computation.root
    if not isinstance(root, TupleOp) or len(root.inputs) != 2:
        return None
    value, place = (made_by(v, SelectOp) for v in root.inputs)
    if value is None or place is None:
        return None
    a, b = value.on_true, value.on_false
    i, j = place.on_true, place.on_false
    if [_number(v) for v in (a, i, b, j)] not in ([0, 1, 2, 3], [2, 3, 0, 1]):
        return None
    better = _better(value.predicate, a, b)
    either = made_by(place.predicate, OrOp)
    if better is None or either is None:
        return None
    for same, tied in ((either.lhs, either.rhs), (either.rhs, either.lhs)):
        both = made_by(tied, AndOp)
        if same is not value.predicate or both is None:
            continue
        for equal, earlier in ((both.lhs, both.rhs), (both.rhs, both.lhs)):
            if _compares(equal, "EQ", a, b) and _compares(earlier, "LT", i, j):
                return better
    return None


def _number(value: SSAValue) -> int | None:
    owner = value.owner
    return owner.parameter_number if isinstance(owner, ParameterOp) else None


def _compares(value: SSAValue, direction: str, a: SSAValue, b: SSAValue) -> bool:
    compare = made_by(value, CompareOp)
    return (
        compare is not None
        and compare.direction == direction
        and (compare.lhs, compare.rhs) == (a, b)
    )


def _better(value: SSAValue, a: SSAValue, b: SSAValue) -> Extreme | None:
    """Whether `value` says that `a` is greater (less) than `b`, or a NaN where there are any."""
    parts: tuple[SSAValue, ...] = (value,)
    if element(a).is_float:
        either = made_by(value, OrOp)
        if either is None:
            return None
        parts = (either.lhs, either.rhs)
        if not any(_compares(part, "NE", a, a) for part in parts):
            return None
    for part in parts:
        if _compares(part, "GT", a, b):
            return MaximumOp
        if _compares(part, "LT", a, b):
            return MinimumOp
    return None


@rule(ReduceOp, needs=LI, reads=(IotaOp,))
def reduce_to_place_in_constant(op: ReduceOp, rewriter: Rewriter) -> None:
    """arg-max(bc(C), iota) => (bc(C), bc(0)), the iota along a reduced dimension; as well arg-min"""
    if is_array(op) or len(op.inputs) != 4 or not is_all(op.inputs[3], 0):
        return
    extreme = arg_extreme(rewriter.computation(op.to_apply))
    spread, iota = is_scalar_broadcast(op.inputs[0]), made_by(op.inputs[1], IotaOp)
    if extreme is None or spread is None or iota is None or array(spread).is_dynamic:
        return
    if iota.iota_dimension not in op.dimensions or not array(spread).element_count:
        return
    found, start = splat_of(op.inputs[0]), splat_of(op.inputs[2])
    if found is None or start is None or found != found or start != start:
        return
    if start > found if extreme is MaximumOp else start < found:
        return
    shape = op.shape
    assert isinstance(shape, TupleShape)
    values, places = shape.elements
    assert isinstance(values, ArrayShape)
    assert isinstance(places, ArrayShape)
    b = Builder(op, rewriter)
    b.like(TupleOp, b.spread(spread.operand, values), b.splat(places, 0))
    b.done()


@rule(ReduceOp, needs=LI, looks_far=True)
def reduce_to_extreme_with_place(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce_max(x, -inf) => get-tuple-element(arg-max(x), 0), where that is computed; as well min"""
    if op.inputs[0].has_one_use() or not is_single(op):
        return
    cls = reducer(op.to_apply, rewriter)
    if cls not in (MaximumOp, MinimumOp) or not is_end(op.inputs[1], cls is MinimumOp):
        return
    others = [
        user
        for use in islice(op.inputs[0].uses, _MOST_READERS)
        if isinstance(user := use.operation, ReduceOp)
        and use.index == 0
        and len(user.inputs) == 4
        and user.dimensions == op.dimensions
    ]
    for other in others:
        if not is_end(other.inputs[2], cls is MinimumOp):
            continue
        if arg_extreme(rewriter.computation(other.to_apply)) is not cls:
            continue
        if other.parent is op.parent and other.is_before_in_block(op):
            b = Builder(op, rewriter)
            b.like(GetTupleElementOp, other, index=integer(0))
            b.done()
            return


RULES = (
    reduce_of_one_in_tuple,
    reduce_of_empty,
    reduce_of_same_count,
    reduce_to_place_in_constant,
    reduce_of_negate,
    reduce_of_transpose,
    reduce_of_reduce,
    reduce_of_reshape,
    reduce_beside_reshape,
    reduce_of_concatenate,
    reduce_of_batched_dot,
    reduce_of_scalar_broadcast,
    reduce_of_broadcast,
    reduce_of_added_dimensions,
    reduce_to_extreme_with_place,
)
