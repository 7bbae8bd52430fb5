"""Rules of dynamic-slice and dynamic-update-slice."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.element_types import S32, U32
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BroadcastOp,
    ClampOp,
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    IotaOp,
    MultiplyOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    is_all,
    is_constant,
    is_scalar_broadcast,
    literal_of,
    made_by,
    options_of,
    paddings,
    sized,
    slices,
)
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
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
    if whole.is_dynamic or part.is_dynamic or part.dimensions == whole.dimensions:
        return
    if len(starts) != whole.rank:
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


def _both(b: Builder, i: SSAValue, most: int, j: SSAValue, more: int) -> SSAValue:
    """The sum of two start indices, each clamped to `0…most`, `0…more`; without those that can only be 0."""
    zero = b.scalar(element(i), 0).output
    terms = [_clamped(b, zero, k, end) for k, end in ((i, most), (j, more)) if end]
    if len(terms) == 2:
        return b.on(AddOp, *terms).output
    return terms[0] if terms else zero


def _clamped(b: Builder, zero: SSAValue, start: SSAValue, most: int) -> SSAValue:
    literal = literal_of(start)
    if literal is not None:
        return b.scalar(element(start), min(max(int(literal.item()), 0), most)).output
    return b(ClampOp, zero, start, b.scalar(element(start), most), shape=array(start)).output


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


@rule(DynamicSliceOp, needs=LI, reads=(BroadcastOp,))
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


@rule(DynamicSliceOp, needs=LI, reads=(TransposeOp,))
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


@rule(DynamicSliceOp, needs=LI, reads=(DynamicSliceOp,))
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
        new.append(_both(b, i, n - m, j, m - k))
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
    update = array(op.inputs[1])
    if array(op).dimensions == update.dimensions and not update.is_dynamic:
        forward(op, rewriter, op.inputs[1])


@rule(DynamicUpdateSliceOp)
def update_by_empty(op: DynamicUpdateSliceOp, rewriter: Rewriter) -> None:
    """dynamic-update-slice(x, u, i) => x, u empty"""
    if not array(op.inputs[1]).element_count and array(op).element_count:
        forward(op, rewriter, op.inputs[0])


@rule(DynamicSliceOp, needs=LI, reads=(ReshapeOp,))
def dynamic_slice_of_degenerate_reshape(op: DynamicSliceOp, rewriter: Rewriter) -> None:
    """dynamic-slice(reshape(x), i) => reshape(dynamic-slice(x, i)), only ones inserted or removed"""
    inner = made_by(op.inputs[0], ReshapeOp)
    if inner is None or array(inner).is_dynamic or len(op.inputs) - 1 != array(inner).rank:
        return
    outer, source = array(inner).dimensions, array(inner.operand).dimensions
    if [n for n in outer if n != 1] != [n for n in source if n != 1] or not op.inputs[1:]:
        return
    wide = iter([d for d, n in enumerate(outer) if n != 1])
    places = [None if n == 1 else next(wide) for n in source]
    b = Builder(op, rewriter)
    zero = b.scalar(element(op.inputs[1]), 0).output if None in places else None
    starts = [zero if place is None else op.inputs[1 + place] for place in places]
    sizes = tuple(1 if place is None else array(op).dimensions[place] for place in places)
    cut = b(
        DynamicSliceOp,
        inner.operand,
        *(start for start in starts if start is not None),
        shape=sized(array(op), sizes),
        dynamic_slice_sizes=integers(sizes),
    )
    b.reshape(cut, op.shape)
    b.done()


@rule(DynamicSliceOp, needs=LI, reads=(MultiplyOp,))
def dynamic_slice_of_iota(op: DynamicSliceOp, rewriter: Rewriter) -> None:
    """dynamic-slice(iota * bc(C), i) => reshape(clamp(0, i, n - 1) * C), one element of a vector"""
    source = array(op.inputs[0])
    if source.rank != 1 or array(op).dimensions != (1,) or len(op.inputs) != 2:
        return
    if element(op) not in (S32, U32) or element(op.inputs[1]) is not element(op):
        return
    product = made_by(op.inputs[0], MultiplyOp)
    if product is None:
        return
    for iota, scale in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        spread = is_scalar_broadcast(scale)
        if made_by(iota, IotaOp) is None or spread is None or not is_constant(spread.operand):
            continue
        b = Builder(op, rewriter)
        ends = b.scalar(element(op), 0), b.scalar(element(op), source.dimensions[0] - 1)
        place = b(ClampOp, ends[0], op.inputs[1], ends[1], shape=array(op.inputs[1]))
        b.reshape(b.on(MultiplyOp, place, spread.operand), op.shape)
        b.done()
        return


@rule(DynamicUpdateSliceOp, needs=("enable_dynamic_update_slice_to_pad",))
def update_of_scalar_broadcast(op: DynamicUpdateSliceOp, rewriter: Rewriter) -> None:
    """dynamic-update-slice(bc(v), u, C) => pad(u, v), v a scalar"""
    spread = is_scalar_broadcast(op.inputs[0])
    starts = constant_starts(op.inputs[2:])
    update = array(op.inputs[1])
    if spread is None or starts is None or array(op).is_dynamic or update.is_dynamic:
        return
    if len(starts) != update.rank:
        return
    config: list[tuple[int, int, int]] = []
    for start, size, part in zip(starts, array(op).dimensions, update.dimensions, strict=True):
        low = min(max(start, 0), size - part)
        config.append((low, size - part - low, 0))
    b = Builder(op, rewriter)
    b.like(PadOp, op.inputs[1], spread.operand, padding=paddings(config))
    b.done()


@rule(DynamicUpdateSliceOp)
def update_of_updated_slice(op: DynamicUpdateSliceOp, rewriter: Rewriter) -> None:
    """dus(a, dus(ds(a, i), c, j), i) => dus(a, c, clamp(i) + clamp(j))"""
    whole, outer, *starts = op.inputs
    inner = made_by(outer, DynamicUpdateSliceOp)
    if inner is None or inner.control_predecessors or len(starts) != array(whole).rank:
        return
    part, update, *offsets = inner.inputs
    cut = made_by(part, DynamicSliceOp)
    if cut is None or cut.control_predecessors or cut.inputs != (whole, *starts):
        return
    pairs = list(zip(starts, offsets, strict=True))
    shapes = (array(whole), array(part), array(update))
    if any(s.is_dynamic for s in shapes) or any(element(i) is not element(j) for i, j in pairs):
        return
    if any(element(i).bits < 32 for i in starts):
        return
    b = Builder(op, rewriter)
    new: list[SSAValue] = []
    for (i, j), n, m, k in zip(pairs, *(s.dimensions for s in shapes), strict=True):
        new.append(_both(b, i, n - m, j, m - k))
    b.like(DynamicUpdateSliceOp, whole, update, *new)
    b.done()


RULES = (
    dynamic_slice_of_all,
    full_dimension_starts_at_zero,
    dynamic_slice_at_constants,
    dynamic_slice_of_broadcast,
    dynamic_slice_of_transpose,
    dynamic_slice_of_dynamic_slice,
    dynamic_slice_of_degenerate_reshape,
    dynamic_slice_of_iota,
    update_of_all,
    update_by_empty,
    update_of_scalar_broadcast,
    update_of_updated_slice,
)
