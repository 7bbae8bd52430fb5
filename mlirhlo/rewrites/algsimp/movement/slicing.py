"""Rules of slice."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.dimensions import SliceDimension
from mlirhlo.dialects.hlo.ops import (
    BroadcastOp,
    ConcatenateOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
)
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    forward,
    has_one_user,
    made_by,
    sized,
    slices,
)
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
from mlirhlo.rewrites.rules import Rewriter, rule


def parts_of(op: SliceOp) -> tuple[SliceDimension, ...]:
    """Start, limit and stride of every dimension."""
    assert op.slices is not None
    return op.slices.dimensions


@rule(SliceOp)
def slice_of_all(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(x) => x, all of it"""
    if array(op).dimensions == array(op.operand).dimensions:
        forward(op, rewriter, op.operand)


@rule(SliceOp, needs=LI, reads=(SliceOp,))
def slice_of_slice(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(slice(x)) => slice(x), both without strides"""
    inner = made_by(op.operand, SliceOp)
    if inner is None or array(inner.operand).is_dynamic:
        return
    pairs = list(zip(parts_of(inner), parts_of(op), strict=True))
    if any(a.stride != 1 or c.stride != 1 for a, c in pairs):
        return
    b = Builder(op, rewriter)
    both = [(a.start + c.start, a.start + c.limit, 1) for a, c in pairs]
    b.like(SliceOp, inner.operand, slice=slices(both))
    b.done()


@rule(SliceOp, needs=LI, reads=(BroadcastOp,))
def slice_of_broadcast(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(broadcast(x)) => broadcast(slice(x))"""
    inner = made_by(op.operand, BroadcastOp)
    if inner is None or not inner.dimensions or array(inner).is_dynamic:
        return
    small, parts = array(inner.operand), parts_of(op)
    cut = [parts[d] for d in inner.dimensions]
    b = Builder(op, rewriter)
    source = inner.operand
    if any(
        p.start or p.stride != 1 or p.limit != n for p, n in zip(cut, small.dimensions, strict=True)
    ):
        sizes = [array(op).dimensions[d] for d in inner.dimensions]
        every = slices([(p.start, p.limit, p.stride) for p in cut])
        source = b(SliceOp, source, shape=sized(small, sizes), slice=every).output
    b.broadcast(source, inner.dimensions, op.shape)
    b.done()


@rule(SliceOp, needs=LI, reads=(PadOp,))
def slice_of_pad(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(pad(x, v)) => bc(v), only padding; => slice(x), no padding"""
    inner = made_by(op.operand, PadOp)
    if inner is None or inner.padding is None or array(inner).is_dynamic:
        return
    source, padding = array(inner.operand), inner.padding.dimensions
    inside: list[tuple[int, int, int]] = []
    outside = False
    for part, pad, size in zip(parts_of(op), padding, source.dimensions, strict=True):
        stored = size + max(0, size - 1) * pad.interior
        if part.limit > part.start and (part.limit <= pad.low or part.start >= pad.low + stored):
            outside = True
        start, limit = part.start - pad.low, part.limit - pad.low
        if not pad.interior and start >= 0 and limit <= size:
            inside.append((start, limit, part.stride))
    b = Builder(op, rewriter)
    if outside and array(op).element_count:
        if not array(op).dimensions:
            forward(op, rewriter, inner.padding_value)
            return
        b.broadcast(inner.padding_value, (), op.shape)
        b.done()
    elif len(inside) == source.rank:
        b.like(SliceOp, inner.operand, slice=slices(inside))
        b.done()


@rule(SliceOp, needs=LI, reads=(ConcatenateOp,))
def slice_of_concatenate(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(concat(a, b, …)) => slice(concat(b, …)), of the operands that it reads"""
    inner = made_by(op.operand, ConcatenateOp)
    if inner is None or array(inner).is_dynamic or not array(op).element_count:
        return
    dim = inner.dimensions[0]
    part = parts_of(op)[dim]
    place = 0
    read: list[SSAValue] = []
    first: int | None = None
    for value in inner.inputs:
        size = array(value).dimensions[dim]
        if place < part.limit and place + size > part.start and size:
            first = place if first is None else first
            read.append(value)
        place += size
    if first is None or len(read) == len(inner.inputs):
        return
    if len(read) > 1 and not has_one_user(inner.output):
        return
    b = Builder(op, rewriter)
    source = read[0]
    if len(read) > 1:
        sizes = list(array(inner).dimensions)
        sizes[dim] = sum(array(v).dimensions[dim] for v in read)
        properties = {"dimensions": inner.properties["dimensions"]}
        source = b(ConcatenateOp, *read, shape=sized(array(inner), sizes), **properties).output
    bounds = [(p.start, p.limit, p.stride) for p in parts_of(op)]
    bounds[dim] = (part.start - first, part.limit - first, part.stride)
    b.like(SliceOp, source, slice=slices(bounds))
    b.done()


@rule(SliceOp, needs=LI, reads=(ReverseOp,))
def slice_of_reverse(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(reverse(x)) => reverse(slice(x))"""
    inner = made_by(op.operand, ReverseOp)
    if inner is None or array(inner).is_dynamic or not array(op).element_count:
        return
    bounds: list[tuple[int, int, int]] = []
    for dim, part in enumerate(parts_of(op)):
        size, count = array(inner).dimensions[dim], array(op).dimensions[dim]
        if dim in inner.dimensions:
            start = size - 1 - (part.start + (count - 1) * part.stride)
            bounds.append((start, size - part.start, part.stride))
        else:
            bounds.append((part.start, part.limit, part.stride))
    b = Builder(op, rewriter)
    cut = b.like(SliceOp, inner.operand, slice=slices(bounds))
    b.like(ReverseOp, cut, dimensions=inner.properties["dimensions"])
    b.done()


@rule(SliceOp)
def slice_of_one_with_stride(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(x) => slice(x), stride 1 where one element is taken"""
    parts, sizes = parts_of(op), array(op).dimensions
    if not any(p.stride != 1 and n == 1 for p, n in zip(parts, sizes, strict=True)):
        return
    b = Builder(op, rewriter)
    bounds = [
        (p.start, p.start + 1, 1) if n == 1 else (p.start, p.limit, p.stride)
        for p, n in zip(parts, sizes, strict=True)
    ]
    b.like(SliceOp, op.operand, slice=slices(bounds))
    b.done()


@rule(SliceOp, needs=LI, reads=(ReshapeOp,))
def slice_of_reshape(op: SliceOp, rewriter: Rewriter) -> None:
    """slice(reshape(x)) => reshape(slice(x)), of dimension 0 and a box of x"""
    inner = made_by(op.operand, ReshapeOp)
    if inner is None or array(inner).is_dynamic or not has_one_user(inner.output):
        return
    outer, source = array(inner).dimensions, array(inner.operand).dimensions
    parts = parts_of(op)
    if not source or not outer or not array(op).element_count:
        return
    if any(p.stride != 1 for p in parts) or parts[0].limit - parts[0].start == outer[0]:
        return
    if any(p.limit - p.start != n for p, n in zip(parts[1:], outer[1:], strict=True)):
        return
    bounds = _box(parts[0].start * math.prod(outer[1:]), array(op).element_count, source)
    if bounds is None:
        return
    b = Builder(op, rewriter)
    shape = sized(array(inner), [limit - start for start, limit, _ in bounds])
    b.reshape(b(SliceOp, inner.operand, shape=shape, slice=slices(bounds)), op.shape)
    b.done()


def _box(start: int, count: int, sizes: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Bounds by dimension of so many elements of an array in row-major order; None where they are no box."""
    bounds: list[tuple[int, int, int]] = []
    for size in reversed(sizes):
        place = start % size
        length = min(count, size)
        if count % length or place + length > size:
            return None
        bounds.append((place, place + length, 1))
        start, count = start // size, count // length
    return bounds[::-1]


RULES = (
    slice_of_all,
    slice_of_one_with_stride,
    slice_of_slice,
    slice_of_broadcast,
    slice_of_pad,
    slice_of_concatenate,
    slice_of_reverse,
    slice_of_reshape,
)
