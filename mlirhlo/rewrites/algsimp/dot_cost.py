"""Rules of dot that are done where they save work; all wait for an option."""

from __future__ import annotations

import math

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BroadcastOp,
    DotOp,
    PadOp,
    ReduceOp,
    ReverseOp,
    SliceOp,
)
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    has_one_user,
    is_all,
    is_array,
    made_by,
    options_of,
    sized,
    slices,
)
from mlirhlo.rewrites.algsimp.dot import (
    batch_of,
    contracted_of,
    flops_of,
    free_of,
    is_plain,
    numbers,
)
from mlirhlo.rewrites.algsimp.mapping import reducer
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
from mlirhlo.rewrites.algsimp.movement.slicing import parts_of
from mlirhlo.rewrites.computations import binary_computation
from mlirhlo.rewrites.rules import Rewriter, rule

_REORDERING = ("use_associative_reordering", *LI)
_RAISING = ("raise_slice_and_reduce_through_dot", *LI)


def _is_static(op: DotOp) -> bool:
    return is_plain(op) and not any(array(v).is_dynamic for v in (op.output, *op.inputs))


def _inner(op: DotOp, side: int) -> DotOp | None:
    """The dot without batches that makes an operand of one, of the same element types."""
    inner = made_by(op.inputs[side], DotOp)
    if inner is None or not (_is_static(op) and _is_static(inner)):
        return None
    if not has_one_user(inner.output) or inner.control_predecessors:
        return None
    if op.lhs_batch_dims or inner.lhs_batch_dims:
        return None
    types = {element(v) for v in (op.output, inner.output, *op.inputs, *inner.inputs)}
    return inner if len(types) == 1 else None


def _saves(op: DotOp, inner: DotOp, flops: int, rewriter: Rewriter) -> bool:
    """Whether the flops of two dots are more than what replaces them by the threshold."""
    threshold = options_of(rewriter).associative_reordering_threshold
    return flops_of(op) + flops_of(inner) > threshold * max(flops, 1)


@rule(DotOp, contract="rounding", needs=_REORDERING)
def dot_of_dot_on_the_left(op: DotOp, rewriter: Rewriter) -> None:
    """dot(dot(a, b), c) => dot(a, dot(b, c)), the flops so many fewer; no batches"""
    inner = _inner(op, 0)
    if inner is None:
        return
    left, right = free_of(inner, 0), free_of(inner, 1)
    if any(d < len(left) for d in op.lhs_contracting_dims):
        return
    (a, c), d = inner.inputs, op.inputs[1]
    summed = [right[dim - len(left)] for dim in op.lhs_contracting_dims]
    kept = [dim for dim in range(array(c).rank) if dim not in summed]
    last = free_of(op, 1)
    sizes = [*(array(c).dimensions[n] for n in kept), *(array(d).dimensions[n] for n in last)]
    flops = math.prod(sizes) * math.prod(array(c).dimensions[n] for n in summed)
    outer = array(op).element_count * math.prod(
        array(a).dimensions[n] for n in inner.lhs_contracting_dims
    )
    if not _saves(op, inner, flops + outer, rewriter):
        return
    b = Builder(op, rewriter)
    first = numbers(op, None, (summed, op.rhs_contracting_dims))
    part = b(DotOp, c, d, shape=sized(array(op), sizes), **first)
    places = [kept.index(n) for n in inner.rhs_contracting_dims]
    b.like(DotOp, a, part, **numbers(op, None, (inner.lhs_contracting_dims, places)))
    b.done()


@rule(DotOp, contract="rounding", needs=_REORDERING)
def dot_of_dot_on_the_right(op: DotOp, rewriter: Rewriter) -> None:
    """dot(a, dot(b, c)) => dot(dot(a, b), c), the flops so many fewer; no batches"""
    inner = _inner(op, 1)
    if inner is None:
        return
    left = free_of(inner, 0)
    if any(d >= len(left) for d in op.rhs_contracting_dims):
        return
    a, (c, d) = op.inputs[0], inner.inputs
    summed = [left[dim] for dim in op.rhs_contracting_dims]
    kept = [dim for dim in range(array(c).rank) if dim not in summed]
    first = free_of(op, 0)
    sizes = [*(array(a).dimensions[n] for n in first), *(array(c).dimensions[n] for n in kept)]
    flops = math.prod(sizes) * math.prod(array(c).dimensions[n] for n in summed)
    outer = array(op).element_count * math.prod(
        array(d).dimensions[n] for n in inner.rhs_contracting_dims
    )
    if not _saves(op, inner, flops + outer, rewriter):
        return
    b = Builder(op, rewriter)
    properties = numbers(op, None, (op.lhs_contracting_dims, summed))
    part = b(DotOp, a, c, shape=sized(array(op), sizes), **properties)
    places = [len(first) + kept.index(n) for n in inner.lhs_contracting_dims]
    b.like(DotOp, part, d, **numbers(op, None, (places, inner.rhs_contracting_dims)))
    b.done()


# ---------------------------------------------------------------- work moved to the smaller operand


def _sides(side: int, this: SSAValue, other: SSAValue) -> tuple[SSAValue, SSAValue]:
    return (this, other) if side == 0 else (other, this)


def _mirrored(op: DotOp, side: int, dims: tuple[int, ...]) -> tuple[int, ...] | None:
    """Contracting dimensions of the other operand that meet these; None where some meet none."""
    mine, other = contracted_of(op, side), contracted_of(op, 1 - side)
    return tuple(other[mine.index(d)] for d in dims) if {*dims} <= {*mine} else None


def _numbers(op: DotOp) -> dict[str, Attribute]:
    sides = (op.lhs_batch_dims, op.rhs_batch_dims)
    return numbers(op, sides, (op.lhs_contracting_dims, op.rhs_contracting_dims))


@rule(DotOp, contract="rounding", needs=_REORDERING)
def dot_of_reverse(op: DotOp, rewriter: Rewriter) -> None:
    """dot(reverse(a), b) => dot(a, reverse(b)), contracted dimensions reversed; b so much smaller"""
    if not _is_static(op):
        return
    for side in (0, 1):
        turned, other = made_by(op.inputs[side], ReverseOp), op.inputs[1 - side]
        if turned is None or (dims := _mirrored(op, side, turned.dimensions)) is None:
            continue
        threshold = options_of(rewriter).associative_reordering_threshold
        if array(turned).element_count <= threshold * array(other).element_count:
            continue
        b = Builder(op, rewriter)
        back = b(ReverseOp, other, shape=array(other), dimensions=integers(dims)).output
        b.like(DotOp, *_sides(side, turned.operand, back), **_numbers(op))
        b.done()
        return


@rule(DotOp, contract="rounding", needs=_REORDERING)
def dot_of_pad(op: DotOp, rewriter: Rewriter) -> None:
    """dot(pad(a, 0), b) => dot(a, slice(b)), contracted dimensions padded; the flops so many fewer"""
    if not _is_static(op):
        return
    for side in (0, 1):
        pad, other = made_by(op.inputs[side], PadOp), op.inputs[1 - side]
        if pad is None or pad.padding is None or not is_all(pad.padding_value, 0):
            continue
        edges = pad.padding.dimensions
        padded = tuple(d for d, e in enumerate(edges) if e.low or e.high or e.interior)
        dims = _mirrored(op, side, padded)
        source = array(pad.operand)
        if dims is None or any(e.low < 0 or e.high < 0 for e in edges) or not source.element_count:
            continue
        threshold = options_of(rewriter).associative_reordering_threshold
        if array(pad).element_count <= threshold * source.element_count:
            continue
        bounds = [(0, n, 1) for n in array(other).dimensions]
        sizes = list(array(other).dimensions)
        for mine, theirs in zip(padded, dims, strict=True):
            edge, sizes[theirs] = edges[mine], source.dimensions[mine]
            step = edge.interior + 1
            bounds[theirs] = (edge.low, edge.low + (sizes[theirs] - 1) * step + 1, step)
        b = Builder(op, rewriter)
        cut = b(SliceOp, other, shape=sized(array(other), sizes), slice=slices(bounds)).output
        b.like(DotOp, *_sides(side, pad.operand, cut), **_numbers(op))
        b.done()
        return


@rule(DotOp, contract="rounding", needs=_REORDERING)
def dot_of_broadcast(op: DotOp, rewriter: Rewriter) -> None:
    """dot(bc(a), b) => dot(a, reduce_add(b)), contracted dimensions added; the flops so many fewer"""
    if not _is_static(op) or element(op).name == "pred":
        return
    for side in (0, 1):
        spread, other = made_by(op.inputs[side], BroadcastOp), op.inputs[1 - side]
        if spread is None or list(spread.dimensions) != sorted(spread.dimensions):
            continue
        added = tuple(d for d in range(array(spread).rank) if d not in spread.dimensions)
        dims = _mirrored(op, side, added)
        count = math.prod(array(spread).dimensions[d] for d in added)
        if (
            dims is None
            or not dims
            or count <= options_of(rewriter).associative_reordering_threshold
        ):
            continue
        left = [d for d in range(array(other).rank) if d not in dims]
        b = Builder(op, rewriter)
        type_ = element(other)
        total = b(
            ReduceOp,
            other,
            b.scalar(type_, 0),
            shape=sized(array(other), [array(other).dimensions[d] for d in left]),
            dimensions=integers(tuple(sorted(dims))),
            to_apply=binary_computation(op, "add", type_),
        ).output
        place = {d: k for k, d in enumerate(spread.dimensions)}, {d: k for k, d in enumerate(left)}
        own = [[place[0][d] for d in dims_ if d in place[0]] for dims_ in _dims(op, side)]
        theirs = [[place[1][d] for d in dims_ if d in place[1]] for dims_ in _dims(op, 1 - side)]
        pairs = [(x, y) if side == 0 else (y, x) for x, y in zip(own, theirs, strict=True)]
        b.like(DotOp, *_sides(side, spread.operand, total), **numbers(op, pairs[0], pairs[1]))
        b.done()
        return


def _dims(op: DotOp, side: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return batch_of(op, side), contracted_of(op, side)


# ---------------------------------------------------------------- less of the result


@rule(SliceOp, contract="rounding", needs=_RAISING, reads=(DotOp,))
def slice_of_dot(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(dot(a, b)) => dot(slice(a), slice(b)), the flops so many fewer"""
    inner = made_by(op.operand, DotOp)
    if inner is None or not _is_static(inner) or not has_one_user(op.operand):
        return
    if inner.control_predecessors or not array(op).element_count:
        return
    threshold = options_of(rewriter).raise_slice_and_reduce_through_dot_threshold
    if array(inner).element_count <= threshold * array(op).element_count:
        return
    parts, batch = parts_of(op), len(inner.lhs_batch_dims)
    left = len(free_of(inner, 0))
    b = Builder(op, rewriter)
    operands: list[SSAValue] = []
    for side, value in enumerate(inner.inputs):
        bounds = [(0, n, 1) for n in array(value).dimensions]
        first = batch + (left if side else 0)
        for k, dim in [
            *enumerate(batch_of(inner, side)),
            *enumerate(free_of(inner, side), first),
        ]:
            bounds[dim] = (parts[k].start, parts[k].limit, parts[k].stride)
        if bounds != [(0, n, 1) for n in array(value).dimensions]:
            shape = sized(array(value), [-(-(hi - lo) // step) for lo, hi, step in bounds])
            value = b(SliceOp, value, shape=shape, slice=slices(bounds)).output
        operands.append(value)
    b.like(DotOp, *operands, **_numbers(inner))
    b.done()


@rule(ReduceOp, contract="rounding", needs=_RAISING, reads=(DotOp,))
def reduce_of_dot(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce_add(dot(a, b), 0) => dot(reduce_add(a, 0), reduce_add(b, 0)), the flops so many fewer"""
    if not is_array(op) or len(op.inputs) != 2 or not is_all(op.inputs[1], 0):
        return
    inner = made_by(op.inputs[0], DotOp)
    if inner is None or not _is_static(inner) or inner.lhs_batch_dims:
        return
    if not has_one_user(inner.output) or inner.control_predecessors:
        return
    if reducer(op.to_apply, rewriter) is not AddOp or element(op).name == "pred":
        return
    if any(element(v) is not element(op) for v in inner.inputs):
        return
    threshold = options_of(rewriter).raise_slice_and_reduce_through_dot_threshold
    if array(inner).element_count <= threshold * array(op).element_count:
        return
    left = len(free_of(inner, 0))
    b = Builder(op, rewriter)
    operands: list[SSAValue] = []
    contracted: list[list[int]] = []
    for side, value in enumerate(inner.inputs):
        first = left if side else 0
        free = free_of(inner, side)
        dims = [d for k, d in enumerate(free, first) if k in op.dimensions]
        kept = [d for d in range(array(value).rank) if d not in dims]
        contracted.append([kept.index(d) for d in contracted_of(inner, side)])
        if dims:
            value = b(
                ReduceOp,
                value,
                op.inputs[1],
                shape=sized(array(value), [array(value).dimensions[d] for d in kept]),
                dimensions=integers(tuple(dims)),
                to_apply=op.properties["to_apply"],
            ).output
        operands.append(value)
    b.like(DotOp, *operands, **numbers(inner, None, (contracted[0], contracted[1])))
    b.done()


RULES = (
    dot_of_dot_on_the_left,
    dot_of_dot_on_the_right,
    dot_of_reverse,
    dot_of_pad,
    dot_of_broadcast,
    slice_of_dot,
    reduce_of_dot,
)
