"""Data movement on tiles: slices, pads, concatenations, reversals; constants and iotas."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from mlirhlo.dialects.hlo import element_types as et
from mlirhlo.dialects.hlo.attributes.dimensions import (
    Padding,
    PaddingAttr,
    PaddingDimension,
    Slice,
    SliceAttr,
    SliceDimension,
)
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops import (
    ConcatenateOp,
    ConstantOp,
    IotaOp,
    PadOp,
    ReverseOp,
    SliceOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.spmd.emit import Emitter, Value, array_of, sized
from mlirhlo.rewrites.spmd.factors import Dims, sizes_of
from mlirhlo.rewrites.spmd.grid import Axes, whole
from mlirhlo.rewrites.spmd.halo import fetch
from mlirhlo.rewrites.spmd.part import Part, reshard
from mlirhlo.rewrites.spmd.reducers import combination, sole
from mlirhlo.rewrites.spmd.tiles.local import Leaf, Work, handles, plain


def _cut_and_shifted(work: Work, dims: Dims) -> list[int]:
    """Dimensions that are cut and whose elements move."""
    axes = work.placement(dims).dims
    return [d for d, f in enumerate(dims) if axes[d] and set(f) & work.factors.shifted]


def _tile(work: Work, dim: int) -> int:
    """Size of a tile of the result."""
    placement = work.placement(work.factors.results[0])
    return -(-sizes_of(work.op.shape)[dim] // placement.tiles(dim))


@handles("slice", shifts=True)
def slice_(work: Work) -> list[Leaf]:
    """A slice of tiles: along cut dimensions each device fetches what its tile of the result shows. A slice
    of one element is a sum to which all but its owner give nothing.
    """
    op = work.op
    assert isinstance(op, SliceOp)
    part, emit = work.part(0), work.emit
    bounds = list(op.slices.dimensions) if op.slices is not None else []
    moving = _cut_and_shifted(work, work.factors.operands[0])
    value = part.value
    owner: list[tuple[Axes, int]] = []
    for dim, b in enumerate(tuple(bounds)):
        axes, have = part.placement.dims[dim], array_of(value).dimensions[dim]
        if dim in moving:
            tile = _tile(work, dim)
            size = max((tile - 1) * b.stride + 1, 0)
            here = replace(part, value=value, known=[])
            value = fetch(here, dim, b.start, tile * b.stride, size, None, emit)
            bounds[dim] = SliceDimension(0, size, b.stride)
        elif axes and set(work.factors.operands[0][dim]) & work.factors.reduced:
            start = b.start % have
            bounds[dim] = SliceDimension(start, start + 1)
            owner.append((axes, b.start // have))
        elif axes:
            bounds[dim] = SliceDimension(0, have)
    properties = {**op.properties, "slice": SliceAttr(Slice(tuple(bounds)))}
    value = emit.like(op, (value,), work.local_result(), properties)
    type_ = part.shape.element_type
    opcode, nothing = sole(type_)
    for axes, number in owner:
        here_is = emit.coordinate(work.grid, axes)
        is_owner = emit.compare(here_is, emit.constant(number, et.S32), "EQ")
        value = emit.select(is_owner, value, emit.constant(nothing, type_))
    return work.parts(value, combination(work, opcode, type_))


@handles("pad", shifts=True)
def pad(work: Work) -> list[Leaf]:
    """A pad of tiles; along cut dimensions fetching fills the edges."""
    op = work.op
    assert isinstance(op, PadOp)
    part, fill = work.part(0), work.value(1)
    edges = list(op.padding.dimensions) if op.padding is not None else []
    value = part.value
    for dim in _cut_and_shifted(work, work.factors.operands[0]):
        tile, low = _tile(work, dim), edges[dim].low
        here = replace(part, value=value, known=[])
        value = fetch(here, dim, -low, tile, tile, fill, work.emit)
        edges[dim] = PaddingDimension()
    if not any(e.low or e.high or e.interior for e in edges):
        return work.parts(value)
    properties = {**op.properties, "padding": PaddingAttr(Padding(tuple(edges)))}
    return work.parts(work.emit.like(op, (value, fill), work.local_result(), properties))


@handles("concatenate", shifts=True)
def concatenate(work: Work) -> list[Leaf]:
    """A concatenation of tiles; along a cut dimension each device fetches what of every operand lies in
    its tile of the result, and selects.
    """
    op = work.op
    assert isinstance(op, ConcatenateOp)
    (dim,) = op.dimensions
    if not _cut_and_shifted(work, work.factors.results[0]):
        return plain(work)
    tile, first = _tile(work, dim), 0
    placement = work.placement(work.factors.results[0])
    emit = work.emit
    found: Value | None = None
    for k in range(len(work.operands)):
        part = work.part(k)
        value = fetch(part, dim, -first, tile, tile, None, emit)
        if found is None:
            found = value
        else:
            start = emit.coordinate(placement.grid, placement.dims[dim], tile)
            here = emit.iota(array_of(value).dimensions, dim, start)
            border = emit.broadcast(
                emit.constant(first, array_of(here).element_type), array_of(here)
            )
            found = emit.select(emit.compare(here, border, "GE"), value, found)
        first += part.shape.dimensions[dim]
    assert found is not None
    return work.parts(found)


@handles("reverse", shifts=True)
def reverse(work: Work) -> list[Leaf]:
    """Every device reverses the tile that becomes its own."""
    op = work.op
    assert isinstance(op, ReverseOp)
    part = work.part(0)
    value = part.value
    for dim in _cut_and_shifted(work, work.factors.operands[0]):
        tile, n = _tile(work, dim), part.shape.dimensions[dim]
        here = replace(part, value=value, known=[])
        value = fetch(here, dim, n - tile, -tile, tile, None, work.emit)
    return work.parts(work.emit.like(op, (value,), work.local_result(), op.properties))


@handles("iota")
def iota(work: Work) -> list[Leaf]:
    """An iota of a tile, begun at the tile's start."""
    op = work.op
    assert isinstance(op, IotaOp)
    shape = cast(ArrayShape, work.local_result())
    value = work.emit.like(op, (), shape, op.properties)
    placement = work.placement(work.factors.results[0])
    axes = placement.dims[op.iota_dimension]
    if axes:
        tile = shape.dimensions[op.iota_dimension]
        start = work.emit.coordinate(placement.grid, axes, tile)
        scalar = sized(shape, ())
        if array_of(start).element_type is not shape.element_type:
            start = work.emit.make("convert", (start,), scalar)
        value = work.emit.binary("add", value, work.emit.broadcast(start, shape))
    return work.parts(value)


@handles("constant")
def constant(work: Work) -> list[Leaf]:
    """A constant of one value is one everywhere; of any other, each device takes its tile."""
    op = work.op
    assert isinstance(op, ConstantOp)
    shape, literal = op.shape, op.literal
    if not isinstance(shape, ArrayShape) or literal is None:
        return work.parts(work.emit.like(op, (), op.shape, op.properties))
    local = cast(ArrayShape, work.local_result())
    if local == shape:
        return work.parts(_written(work, local, literal))
    if not literal.is_elided and _is_splat(literal):
        import numpy as np

        values = np.broadcast_to(literal.array.reshape(-1)[:1].reshape(()), local.dimensions)
        return work.parts(_written(work, local, Literal.from_array(local, values)))
    value = _written(work, shape, literal)
    full = Part(value, shape, whole(work.grid, shape.rank, work.manual))
    return [reshard(full, work.placement(work.factors.results[0]), work.emit)]


def _written(work: Work, shape: ArrayShape, literal: Literal) -> Value:
    if isinstance(work.emit, Emitter) and not shape.rank:
        return work.emit.make("constant", (), shape, {"literal": LiteralAttr(literal)})
    return work.emit.like(work.op, (), shape, {"literal": LiteralAttr(literal)})


def _is_splat(literal: Literal) -> bool:
    data, width = literal.data, literal.element_type.byte_size
    return len(data) > 0 and data == data[:width] * (len(data) // width)
