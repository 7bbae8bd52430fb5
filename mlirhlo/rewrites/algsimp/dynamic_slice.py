"""Rules of dynamic-slice and dynamic-update-slice."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BroadcastOp,
    ClampOp,
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    SliceOp,
    TransposeOp,
)
from mlirhlo.rewrites.algsimp.broadcast import LI
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    is_all,
    is_constant,
    literal_of,
    made_by,
    options_of,
    sized,
    slices,
)
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(DynamicSliceOp)
def dynamic_slice_of_all(op: DynamicSliceOp, rewriter: Rewriter) -> None:
    """dynamic-slice(x, i) => x, all of it"""
    if array(op).dimensions == array(op.inputs[0]).dimensions:
        forward(op, rewriter, op.inputs[0])


@rule(DynamicSliceOp, DynamicUpdateSliceOp)
def full_dimension_starts_at_zero(
    op: DynamicSliceOp | DynamicUpdateSliceOp, rewriter: Rewriter
) -> None:
    """dynamic-slice(x, i) => dynamic-slice(x, 0), of a dimension taken whole; as well of update"""
    first = 1 if isinstance(op, DynamicSliceOp) else 2
    part = array(op) if first == 1 else array(op.inputs[1])
    whole, starts = array(op.inputs[0]), op.inputs[first:]
    if len(starts) != whole.rank or whole.is_dynamic or part.dimensions == whole.dimensions:
        return
    wanted = [
        n == m and not is_all(s, 0)
        for n, m, s in zip(whole.dimensions, part.dimensions, starts, strict=True)
    ]
    if not any(wanted):
        return
    b = Builder(op, rewriter)
    zero = b.scalar(element(starts[0]), 0).output
    new = [zero if at else s for at, s in zip(wanted, starts, strict=True)]
    kept = {k: v for k, v in op.properties.items() if k == "dynamic_slice_sizes"}
    b.like(type(op), *op.inputs[:first], *new, **kept)
    b.done()


def constant_starts(starts: tuple[SSAValue, ...]) -> list[int] | None:
    """Start indices that are scalar constants."""
    found: list[int] = []
    for start in starts:
        literal = literal_of(start)
        if literal is None or array(start).dimensions:
            return None
        found.append(int(literal.item()))
    return found


@rule(DynamicSliceOp)
def dynamic_slice_at_constants(op: DynamicSliceOp, rewriter: Rewriter) -> None:
    """dynamic-slice(x, C) => slice(x), C not negative, x not constant"""
    if options_of(rewriter).disable_dynamic_slice_to_slice_conversion:
        return
    whole, starts = array(op.inputs[0]), constant_starts(op.inputs[1:])
    if starts is None or is_constant(op.inputs[0]) or whole.is_dynamic or len(starts) != whole.rank:
        return
    if any(start < 0 for start in starts):
        return
    mine, old = array(op).layout, whole.layout
    if mine is not None and old is not None and mine.memory_space != old.memory_space:
        return
    bounds: list[tuple[int, int, int]] = []
    for start, size, count in zip(starts, whole.dimensions, array(op).dimensions, strict=True):
        low = min(start, size - count)
        bounds.append((low, low + count, 1))
    b = Builder(op, rewriter)
    b.like(SliceOp, op.inputs[0], slice=slices(bounds))
    b.done()


@rule(DynamicSliceOp, needs=LI)
def dynamic_slice_of_broadcast(op: DynamicSliceOp, rewriter: Rewriter) -> None:
    """dynamic-slice(broadcast(x), i) => broadcast(dynamic-slice(x, i))"""
    inner = made_by(op.inputs[0], BroadcastOp)
    if inner is None or not inner.dimensions or array(inner).is_dynamic:
        return
    starts = op.inputs[1:]
    if len(starts) != array(inner).rank:
        return
    sizes = [array(op).dimensions[d] for d in inner.dimensions]
    b = Builder(op, rewriter)
    cut = b(
        DynamicSliceOp,
        inner.operand,
        *(starts[d] for d in inner.dimensions),
        shape=sized(array(op), sizes),
        dynamic_slice_sizes=integers(tuple(sizes)),
    )
    b.broadcast(cut, inner.dimensions, op.shape)
    b.done()


@rule(DynamicSliceOp, needs=LI)
def dynamic_slice_of_transpose(op: DynamicSliceOp, rewriter: Rewriter) -> None:
    """dynamic-slice(transpose(x), i) => transpose(dynamic-slice(x, i))"""
    inner = made_by(op.inputs[0], TransposeOp)
    if inner is None or array(inner).is_dynamic or len(op.inputs) - 1 != array(inner).rank:
        return
    places = [inner.dimensions.index(d) for d in range(array(inner).rank)]
    sizes = [array(op).dimensions[p] for p in places]
    b = Builder(op, rewriter)
    cut = b(
        DynamicSliceOp,
        inner.operand,
        *(op.inputs[1 + p] for p in places),
        shape=sized(array(op), sizes),
        dynamic_slice_sizes=integers(tuple(sizes)),
    )
    b.like(TransposeOp, cut, dimensions=inner.properties["dimensions"])
    b.done()


@rule(DynamicSliceOp, needs=LI)
def dynamic_slice_of_dynamic_slice(op: DynamicSliceOp, rewriter: Rewriter) -> None:
    """dynamic-slice(dynamic-slice(x, i), j) => dynamic-slice(x, clamp(i) + clamp(j))"""
    inner = made_by(op.inputs[0], DynamicSliceOp)
    if inner is None or inner.control_predecessors or array(inner.inputs[0]).is_dynamic:
        return
    outer_starts, starts = op.inputs[1:], inner.inputs[1:]
    rank = array(op).rank
    if len(starts) != rank or len(outer_starts) != rank:
        return
    pairs = list(zip(starts, outer_starts, strict=True))
    if any(element(i) is not element(j) or element(i).bits < 32 for i, j in pairs):
        return
    b = Builder(op, rewriter)
    new: list[SSAValue] = []
    shapes = (array(inner.inputs[0]), array(inner), array(op))
    for (i, j), n, m, k in zip(pairs, *(s.dimensions for s in shapes), strict=True):
        type_ = element(i)
        zero = b.scalar(type_, 0)
        low = b(ClampOp, zero, i, b.scalar(type_, n - m), shape=array(i))
        more = b(ClampOp, zero, j, b.scalar(type_, m - k), shape=array(j))
        new.append(b.on(AddOp, low, more).output)
    b.like(
        DynamicSliceOp,
        inner.inputs[0],
        *new,
        dynamic_slice_sizes=op.properties["dynamic_slice_sizes"],
    )
    b.done()


@rule(DynamicUpdateSliceOp)
def update_of_all(op: DynamicUpdateSliceOp, rewriter: Rewriter) -> None:
    """dynamic-update-slice(x, u, i) => u, all of x updated"""
    if array(op).dimensions == array(op.inputs[1]).dimensions:
        forward(op, rewriter, op.inputs[1])


@rule(DynamicUpdateSliceOp)
def update_by_empty(op: DynamicUpdateSliceOp, rewriter: Rewriter) -> None:
    """dynamic-update-slice(x, u, i) => x, u empty"""
    if not array(op.inputs[1]).element_count and array(op).element_count:
        forward(op, rewriter, op.inputs[0])


RULES = (
    dynamic_slice_of_all,
    full_dimension_starts_at_zero,
    dynamic_slice_at_constants,
    dynamic_slice_of_broadcast,
    dynamic_slice_of_transpose,
    dynamic_slice_of_dynamic_slice,
    update_of_all,
    update_by_empty,
)
