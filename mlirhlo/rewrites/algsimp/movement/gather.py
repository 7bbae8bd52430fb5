"""Rules of gather."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers, string
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.ops import (
    CompareOp,
    GatherOp,
    Instruction,
    PadOp,
    ReshapeOp,
    SelectOp,
    SliceOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    made_by,
    options_of,
    paddings,
    sized,
    slices,
    typed,
)
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
from mlirhlo.rewrites.rules import Rewriter, rule


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


@rule(GatherOp, needs=LI)
def gather_from_few(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(x, i) => select(i >= 2, x[2], select(i >= 1, x[1], x[0])), x a very small vector"""
    source, indices = array(op.operand), array(op.start_indices)
    if (
        source.rank != 1
        or not 1 < source.element_count <= options_of(rewriter).very_small_gather_size
    ):
        return
    if op.index_vector_dim != indices.rank or op.collapsed_slice_dims != (0,):
        return
    if source.is_dynamic or array(op).is_dynamic or element(op.start_indices).bits < 8:
        return
    b = Builder(op, rewriter)

    def at(place: int) -> Instruction:
        one = b(
            SliceOp, op.operand, shape=sized(source, (1,)), slice=slices([(place, place + 1, 1)])
        )
        return b.spread(b.reshape(one, sized(source, ())), array(op))

    result = at(0)
    for place in range(1, source.element_count):
        bound = b.splat(sized(indices, indices.dimensions), place)
        past = b(
            CompareOp,
            op.start_indices,
            bound,
            shape=typed(array(op), PRED),
            direction=string("GE"),
        )
        result = b.like(SelectOp, past, at(place), result)
    b.done(result)


@rule(GatherOp, needs=LI, reads=(PadOp,))
def gather_of_pad(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(pad(x, v), i) => pad(gather(x, i), v), padded where slices are whole, or in batches alike"""
    pad = made_by(op.operand, PadOp)
    if pad is None or pad.padding is None or array(pad).is_dynamic:
        return
    edges = [(edge.low, edge.high, edge.interior) for edge in pad.padding.dimensions]
    _gather_before_pad(op, rewriter, pad, edges, array(pad.operand))


@rule(GatherOp, needs=LI, reads=(ReshapeOp,))
def gather_of_reshaped_pad(op: GatherOp, rewriter: Rewriter) -> None:
    """gather(reshape(pad(x, v)), i) => pad(gather(reshape(x), i), v), no padded dimension reshaped"""
    moved = made_by(op.operand, ReshapeOp)
    pad = None if moved is None else made_by(moved.operand, PadOp)
    if moved is None or pad is None or pad.padding is None or array(moved).is_dynamic:
        return
    given, wanted = array(pad).dimensions, array(moved).dimensions
    edges, sizes = [(0, 0, 0)] * len(wanted), list(wanted)
    for dim, edge in enumerate(pad.padding.dimensions):
        widths = (edge.low, edge.high, edge.interior)
        if not any(widths):
            continue
        before = math.prod(given[:dim])
        same = [
            d
            for d, n in enumerate(wanted)
            if n == given[dim] and math.prod(wanted[:d]) == before and edges[d] == (0, 0, 0)
        ]
        if not same or not before * math.prod(given[dim:]):
            return
        edges[same[0]] = widths
        sizes[same[0]] = array(pad.operand).dimensions[dim]
    _gather_before_pad(op, rewriter, pad, edges, sized(array(pad), sizes))


def _gather_before_pad(
    op: GatherOp,
    rewriter: Rewriter,
    pad: PadOp,
    edges: Sequence[tuple[int, int, int]],
    source: ArrayShape,
) -> None:
    """Gathers from what is padded, as `source`, where the result can be padded instead.

    `edges`: low, high and interior padding of the gather's operand, a dimension each.
    """
    if array(op).is_dynamic or not source.element_count:
        return
    beside = made_by(op.start_indices, PadOp)
    offsets = [
        d
        for d in range(source.rank)
        if d not in op.collapsed_slice_dims and d not in op.operand_batching_dims
    ]
    batches = [d for d in range(array(op).rank) if d not in op.offset_dims]
    places = [d for d in range(array(op.start_indices).rank) if d != op.index_vector_dim]
    sizes, config = list(op.slice_sizes), [(0, 0, 0)] * array(op).rank
    matched: set[int] = set()
    for dim, widths in enumerate(edges):
        if not any(widths):
            continue
        if widths[0] < 0 or widths[1] < 0:
            return
        if dim in op.operand_batching_dims:
            index_dim = op.start_indices_batching_dims[op.operand_batching_dims.index(dim)]
            if beside is None or beside.padding is None:
                return
            other = beside.padding.dimensions[index_dim]
            if (other.low, other.high, other.interior) != widths:
                return
            matched.add(index_dim)
            config[batches[places.index(index_dim)]] = widths
        elif dim in offsets and dim not in op.start_index_map:
            if op.slice_sizes[dim] != array(op.operand).dimensions[dim]:
                return
            sizes[dim] = source.dimensions[dim]
            config[op.offset_dims[offsets.index(dim)]] = widths
        else:
            return
    indices = op.start_indices
    if matched:
        assert beside is not None
        assert beside.padding is not None
        others = enumerate(beside.padding.dimensions)
        if any((e.low, e.high, e.interior) != (0, 0, 0) and d not in matched for d, e in others):
            return
        indices = beside.operand
    b = Builder(op, rewriter)
    small = [
        (n - low - high + interior) // (interior + 1)
        for n, (low, high, interior) in zip(array(op).dimensions, config, strict=True)
    ]
    kept = {k: v for k, v in op.properties.items() if k in GATHER_NUMBERS}
    kept["slice_sizes"] = integers(tuple(sizes))
    operand: SSAValue | Instruction = pad.operand
    if array(operand).dimensions != source.dimensions:
        operand = b.reshape(operand, sized(source, source.dimensions))
    part = b(GatherOp, operand, indices, shape=sized(array(op), small), **kept)
    b.like(PadOp, part, pad.padding_value, padding=paddings(config))
    b.done()


GATHER_NUMBERS = frozenset(
    {
        *("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims"),
        *("start_indices_batching_dims", "index_vector_dim", "indices_are_sorted"),
    }
)


RULES = (
    gather_of_empty,
    gather_of_one_element,
    gather_from_few,
    gather_of_pad,
    gather_of_reshaped_pad,
)
