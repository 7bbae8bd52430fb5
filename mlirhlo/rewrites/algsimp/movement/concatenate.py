"""Rules of concatenate and pad."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import BroadcastOp, ConcatenateOp, PadOp, SliceOp
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    forward,
    is_scalar_broadcast,
    made_by,
    paddings,
    sized,
    slices,
)
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
from mlirhlo.rewrites.algsimp.movement.slicing import parts_of
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(ConcatenateOp)
def concatenate_of_one(op: ConcatenateOp, rewriter: Rewriter) -> None:
    """concat(x) => x"""
    if len(op.inputs) == 1:
        forward(op, rewriter, op.inputs[0])


@rule(ConcatenateOp)
def concatenate_of_empty(op: ConcatenateOp, rewriter: Rewriter) -> None:
    """concat(a, e, …) => concat(a, …), e empty"""
    if array(op).is_dynamic or len(op.inputs) == 1:
        return
    full = [v for v in op.inputs if array(v).element_count]
    if len(full) == len(op.inputs):
        return
    if len(full) <= 1:
        forward(op, rewriter, full[0] if full else op.inputs[0])
        return
    b = Builder(op, rewriter)
    b.like(ConcatenateOp, *full, dimensions=op.properties["dimensions"])
    b.done()


@rule(ConcatenateOp, needs=LI)
def concatenate_of_concatenate(op: ConcatenateOp, rewriter: Rewriter) -> None:
    """concat(a, concat(b, c)) => concat(a, b, c)"""
    values: list[SSAValue] = []
    for value in op.inputs:
        inner = made_by(value, ConcatenateOp)
        same = inner is not None and inner.dimensions == op.dimensions
        values += inner.inputs if same and inner is not None else [value]
    if len(values) == len(op.inputs):
        return
    b = Builder(op, rewriter)
    b.like(ConcatenateOp, *values, dimensions=op.properties["dimensions"])
    b.done()


@rule(ConcatenateOp, needs=LI)
def concatenate_of_abutting_slices(op: ConcatenateOp, rewriter: Rewriter) -> None:
    """concat(slice(x, i, j), slice(x, j, k)) => slice(x, i, k)"""
    dim = op.dimensions[0]
    runs: list[list[SSAValue]] = [[op.inputs[0]]]
    for value in op.inputs[1:]:
        if _abut(runs[-1][-1], value, dim):
            runs[-1].append(value)
        else:
            runs.append([value])
    if len(runs) == len(op.inputs):
        return
    b = Builder(op, rewriter)
    values = [_slice_of_all(run, dim, b) if len(run) > 1 else run[0] for run in runs]
    b.like(ConcatenateOp, *values, dimensions=op.properties["dimensions"])
    b.done()


def _abut(left: SSAValue, right: SSAValue, dim: int) -> bool:
    """Whether they are slices of one array, one behind the other in a dimension."""
    a, c = made_by(left, SliceOp), made_by(right, SliceOp)
    if a is None or c is None or a.operand is not c.operand or array(a.operand).is_dynamic:
        return False
    p, q = parts_of(a), parts_of(c)
    if any(d.stride != 1 for d in (*p, *q)) or p[dim].limit != q[dim].start:
        return False
    return all(p[d] == q[d] for d in range(len(p)) if d != dim)


def _slice_of_all(run: list[SSAValue], dim: int, b: Builder) -> SSAValue:
    """One slice for those of a run, of which each abuts the next."""
    first, last = made_by(run[0], SliceOp), made_by(run[-1], SliceOp)
    assert first is not None
    assert last is not None
    bounds = [(d.start, d.limit, 1) for d in parts_of(first)]
    bounds[dim] = (bounds[dim][0], parts_of(last)[dim].limit, 1)
    shape = sized(array(b.op), [limit - start for start, limit, _ in bounds])
    return b(SliceOp, first.operand, shape=shape, slice=slices(bounds)).output


@rule(ConcatenateOp, needs=LI)
def concatenate_with_scalar_broadcast(op: ConcatenateOp, rewriter: Rewriter) -> None:
    """concat(bc(v), x) => pad(x, v), low; concat(x, bc(v)) => pad(x, v), high; v a scalar"""
    if len(op.inputs) != 2 or array(op).is_dynamic:
        return
    for place in (0, 1):
        spread, x = is_scalar_broadcast(op.inputs[place]), op.inputs[1 - place]
        if spread is None:
            continue
        size = array(spread).dimensions[op.dimensions[0]]
        config = [(0, 0, 0)] * array(op).rank
        config[op.dimensions[0]] = (0, size, 0) if place else (size, 0, 0)
        b = Builder(op, rewriter)
        b.like(PadOp, x, spread.operand, padding=paddings(config))
        b.done()
        return


@rule(ConcatenateOp, needs=LI)
def concatenate_of_same(op: ConcatenateOp, rewriter: Rewriter) -> None:
    """concat(x, x, …) => bc(reshape(x)), x of size 1 there"""
    dim, first = op.dimensions[0], op.inputs[0]
    if len(op.inputs) < 2 or any(v is not first for v in op.inputs):
        return
    shape = array(first)
    if shape.dimensions[dim] != 1 or shape.is_dynamic:
        return
    kept = [d for d in range(shape.rank) if d != dim]
    b = Builder(op, rewriter)
    squeezed = b.reshape(first, sized(shape, [shape.dimensions[d] for d in kept]))
    b.broadcast(squeezed, kept, op.shape)
    b.done()


def _config(op: PadOp) -> list[tuple[int, int, int]]:
    assert op.padding is not None
    return [(d.low, d.high, d.interior) for d in op.padding.dimensions]


@rule(PadOp)
def pad_of_empty(op: PadOp, rewriter: Rewriter) -> None:
    """pad(x, v) => bc(v), x empty"""
    if array(op.operand).element_count or array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    b.broadcast(op.padding_value, (), op.shape)
    b.done()


@rule(PadOp)
def pad_by_nothing(op: PadOp, rewriter: Rewriter) -> None:
    """pad(x, v) => x, nothing padded"""
    if not any(map(any, _config(op))):
        forward(op, rewriter, op.operand)


@rule(PadOp)
def pad_between_one_element(op: PadOp, rewriter: Rewriter) -> None:
    """pad(x, v) => pad(x, v), no interior padding where x has size 1"""
    sizes, config = array(op.operand).dimensions, _config(op)
    cleared = [
        (low, high, 0 if n == 1 else interior)
        for n, (low, high, interior) in zip(sizes, config, strict=True)
    ]
    if cleared != config:
        b = Builder(op, rewriter)
        b.like(PadOp, op.operand, op.padding_value, padding=paddings(cleared))
        b.done()


@rule(PadOp, needs=("enable_negative_padding_replacement",))
def pad_by_negative_edges(op: PadOp, rewriter: Rewriter) -> None:
    """pad(x, v) => slice(pad(x, v)), edges that crop made a slice"""
    config = _config(op)
    if all(low >= 0 and high >= 0 for low, high, _ in config) or array(op).is_dynamic:
        return
    kept = [(max(low, 0), max(high, 0), interior) for low, high, interior in config]
    sizes = [
        n + max(0, n - 1) * interior + low + high
        for n, (low, high, interior) in zip(array(op.operand).dimensions, kept, strict=True)
    ]
    shape = array(op)
    b = Builder(op, rewriter)
    big = type(shape)(shape.element_type, tuple(sizes), (), shape.layout)
    padded = b(PadOp, op.operand, op.padding_value, shape=big, padding=paddings(kept))
    bounds = [
        (max(-low, 0), n - max(-high, 0), 1)
        for n, (low, high, _) in zip(sizes, config, strict=True)
    ]
    b.like(SliceOp, padded, slice=slices(bounds))
    b.done()


@rule(PadOp, needs=LI, reads=(BroadcastOp,))
def pad_of_broadcast(op: PadOp, rewriter: Rewriter) -> None:
    """pad(broadcast(x), v) => broadcast(pad(broadcast(x), v)), only dimensions of x padded"""
    inner = made_by(op.operand, BroadcastOp)
    if inner is None or not op.operand.has_one_use() or array(op).is_dynamic:
        return
    config = _config(op)
    padded = [d for d, part in enumerate(config) if any(part)]
    own = [d for d in range(len(config)) if d in padded or d in inner.dimensions]
    if len(own) == len(config) or any(d not in padded for d in inner.dimensions):
        return
    b = Builder(op, rewriter)
    sizes = array(inner).dimensions
    small = b.broadcast(
        inner.operand,
        [own.index(d) for d in inner.dimensions],
        sized(array(op), [sizes[d] for d in own]),
    )
    shape = sized(array(op), [array(op).dimensions[d] for d in own])
    part = b(
        PadOp, small, op.padding_value, shape=shape, padding=paddings([config[d] for d in own])
    )
    b.broadcast(part, own, op.shape)
    b.done()


RULES = (
    concatenate_of_one,
    concatenate_of_empty,
    concatenate_of_concatenate,
    concatenate_of_abutting_slices,
    concatenate_of_same,
    concatenate_with_scalar_broadcast,
    pad_of_empty,
    pad_by_nothing,
    pad_between_one_element,
    pad_by_negative_edges,
    pad_of_broadcast,
)
