"""Dynamic slices, gathers and scatters on tiles: each device does what falls into its own tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mlirhlo.dialects.hlo import element_types as et
from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import DynamicSliceOp, DynamicUpdateSliceOp, GatherOp, ScatterOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.spmd.emit import Value, array_of, dense, sized
from mlirhlo.rewrites.spmd.factors import sizes_of
from mlirhlo.rewrites.spmd.grid import Axes
from mlirhlo.rewrites.spmd.part import Part
from mlirhlo.rewrites.spmd.reducers import combination, identity, opcode_of, sole
from mlirhlo.rewrites.spmd.tiles.local import Leaf, Work, handles, with_cuts


def _signed(work: Work, value: Value) -> Value:
    """Indices as s32, or s64 where they are wider: starts before a tile are negative."""
    type_ = array_of(value).element_type
    wide = type_.bits > 32 or type_ is et.U32
    target = et.S64 if wide else et.S32
    if type_ is target:
        return value
    return work.emit.make("convert", (value,), dense(target, array_of(value).dimensions))


def _clamped(work: Work, value: Value, low: int, high: int) -> Value:
    shape = array_of(value)
    bounds = [work.emit.constant(n, shape.element_type) for n in (low, high)]
    return work.emit.make("clamp", (bounds[0], value, bounds[1]), shape)


def _less_start(work: Work, index: Value, axes: Axes, tile: int) -> Value:
    """An index in a tile's own numbers."""
    shape = array_of(index)
    start = work.emit.coordinate(work.grid, axes, tile)
    if shape.element_type is not et.S32:
        start = work.emit.make("convert", (start,), dense(shape.element_type, ()))
    if shape.rank:
        start = work.emit.broadcast(start, shape)
    return work.emit.binary("subtract", index, start)


@handles("dynamic-slice")
def dynamic_slice(work: Work) -> list[Leaf]:
    """A slice of the tile with nothing around it; the sum over devices is the slice."""
    op = work.op
    assert isinstance(op, DynamicSliceOp)
    part = work.part(0)
    starts = [work.value(k) for k in range(1, len(work.operands))]
    value = part.value
    sizes = list(op.dynamic_slice_sizes)
    type_ = part.shape.element_type
    opcode, nothing = sole(type_)
    for dim, axes in enumerate(part.placement.dims):
        n, size = part.shape.dimensions[dim], sizes[dim]
        if not axes:
            continue
        if n == size:
            sizes[dim] = array_of(value).dimensions[dim]
            continue
        tile = array_of(value).dimensions[dim]
        start = _clamped(work, _signed(work, starts[dim]), 0, n - size)
        start = _less_start(work, start, axes, tile)
        value = work.emit.pad(value, dim, size, size, work.emit.constant(nothing, type_))
        shift = work.emit.constant(size, array_of(start).element_type)
        start = work.emit.binary("add", start, shift)
        starts[dim] = _clamped(work, start, 0, tile + size)
    if any(array_of(s).element_type is not array_of(starts[0]).element_type for s in starts):
        starts = [_wide(work, s) for s in starts]
    properties = {**op.properties, "dynamic_slice_sizes": integers(tuple(sizes))}
    result = sized(cast(ArrayShape, op.shape), sizes)
    found = work.emit.like(op, (value, *starts), result, properties)
    return work.parts(found, combination(work, opcode, type_))


def _wide(work: Work, value: Value) -> Value:
    if array_of(value).element_type is et.S64:
        return value
    return work.emit.make("convert", (value,), dense(et.S64, ()))


@handles("dynamic-update-slice")
def dynamic_update_slice(work: Work) -> list[Leaf]:
    """What of the update falls into the tile is written; the tile has room around it for the rest."""
    op = work.op
    assert isinstance(op, DynamicUpdateSliceOp)
    part, update = work.part(0), work.part(1)
    starts = [work.value(k) for k in range(2, len(work.operands))]
    value, trims = part.value, list[tuple[int, int, int]]()
    for dim, axes in enumerate(part.placement.dims):
        n, size = part.shape.dimensions[dim], update.shape.dimensions[dim]
        if not axes or n == size:
            continue
        tile = array_of(value).dimensions[dim]
        start = _clamped(work, _signed(work, starts[dim]), 0, n - size)
        start = _less_start(work, start, axes, tile)
        value = work.emit.pad(value, dim, size, size, None)
        shift = work.emit.constant(size, array_of(start).element_type)
        starts[dim] = _clamped(work, work.emit.binary("add", start, shift), 0, tile + size)
        trims.append((dim, size, tile))
    if any(array_of(s).element_type is not array_of(starts[0]).element_type for s in starts):
        starts = [_wide(work, s) for s in starts]
    found = work.emit.like(op, (value, update.value, *starts), array_of(value), op.properties)
    for dim, size, tile in trims:
        found = work.emit.slice(found, dim, size, size + tile)
    return work.parts(found)


def _places(
    work: Work, indices: Value, vector_dim: int, offsets: Sequence[tuple[int, Axes, int] | None]
) -> Value:
    """The index vectors in tiles' own numbers: for each entry its (size, axes, tile), or None."""
    emit = work.emit
    shape = array_of(indices)
    if vector_dim == shape.rank:
        (offset,) = offsets
        assert offset is not None
        return _less_start(work, indices, offset[1], offset[2])
    columns: list[Value] = []
    for k, offset in enumerate(offsets):
        column = emit.slice(indices, vector_dim, k, k + 1)
        if offset is not None:
            column = _less_start(work, column, offset[1], offset[2])
        columns.append(column)
    if len(columns) == 1:
        return columns[0]
    return emit.make("concatenate", columns, shape, {"dimensions": integers((vector_dim,))})


@handles("gather")
def gather(work: Work) -> list[Leaf]:
    """A gather from the tile. Where an indexed dimension is cut, rows of other devices are nothing, and
    the sum over devices is the result.
    """
    op = work.op
    assert isinstance(op, GatherOp)
    part, rows = work.part(0), work.part(1)
    sizes = list(op.slice_sizes)
    for dim, axes in enumerate(part.placement.dims):
        if axes and dim not in op.collapsed_slice_dims and dim not in op.operand_batching_dims:
            sizes[dim] = array_of(part.value).dimensions[dim]
    result = cast(ArrayShape, work.local_result())
    properties = {**op.properties, "slice_sizes": integers(tuple(sizes))}
    if not work.partial:
        return work.parts(work.emit.like(op, (part.value, rows.value), result, properties))
    emit = work.emit
    indices = _clamped_rows(work, op, _signed(work, rows.value))
    offsets: list[tuple[int, Axes, int] | None] = []
    for dim in op.start_index_map:
        axes = part.placement.dims[dim]
        tile = array_of(part.value).dimensions[dim]
        is_cut = bool(axes) and dim in op.collapsed_slice_dims
        offsets.append((part.shape.dimensions[dim], axes, tile) if is_cut else None)
    local = _places(work, indices, op.index_vector_dim, offsets)
    found = emit.like(op, (part.value, local), result, properties)
    inside: Value | None = None
    for k, offset in enumerate(offsets):
        if offset is None:
            continue
        column = local
        if op.index_vector_dim < array_of(local).rank:
            column = emit.slice(local, op.index_vector_dim, k, k + 1)
            flat = [
                n for d, n in enumerate(array_of(column).dimensions) if d != op.index_vector_dim
            ]
            column = emit.reshape(column, flat)
        shape = array_of(column)
        for bound, direction in ((0, "GE"), (offset[2], "LT")):
            limit = emit.broadcast(emit.constant(bound, shape.element_type), shape)
            within = emit.compare(column, limit, direction)
            inside = within if inside is None else emit.binary("and", inside, within)
    assert inside is not None
    batch = [d for d in range(result.rank) if d not in op.offset_dims]
    mask = emit.broadcast(inside, dense(et.PRED, result.dimensions), batch)
    opcode, nothing = sole(result.element_type)
    found = emit.select(mask, found, emit.constant(nothing, result.element_type))
    return work.parts(found, combination(work, opcode, result.element_type))


def _clamped_rows(work: Work, op: GatherOp, indices: Value) -> Value:
    """Indices clamped as the whole gather clamps them."""
    emit, sizes = work.emit, sizes_of(op.input_shapes[0])
    most = [sizes[d] - op.slice_sizes[d] for d in op.start_index_map]
    shape = array_of(indices)
    if op.index_vector_dim == shape.rank or len(most) == 1:
        return _clamped(work, indices, 0, most[0])
    limits = emit.broadcast(emit.constant(most, shape.element_type), shape, (op.index_vector_dim,))
    zero = emit.broadcast(emit.constant(0, shape.element_type), shape)
    return emit.binary("minimum", emit.binary("maximum", indices, zero), limits)


@handles("scatter")
def scatter(work: Work) -> list[Leaf]:
    """A scatter into the tile. Updates for rows of other devices are out of its bounds; where updates are
    spread over devices, the tiles they make are joined as the updates are.
    """
    op = work.op
    assert isinstance(op, ScatterOp)
    count = (len(op.inputs) - 1) // 2
    if work.partial:
        opcode = opcode_of(work.computations[op.to_apply]) if count == 1 else None
        part = work.operands[0]
        neutral = None
        if opcode is not None and isinstance(part, Part):
            neutral = identity(opcode, part.shape.element_type)
        if opcode is None or neutral is None or not _even_rows(work, count):
            return scatter(with_cuts(work, work.factors.reduced))
    inputs = [work.part(k) for k in range(count)]
    values = [part.value for part in inputs]
    placement, whole = inputs[0].placement, inputs[0].shape.dimensions
    cut = [d for d in op.inserted_window_dims if placement.dims[d]]
    rows = work.part(count).value
    if cut:
        rows = _signed(work, rows)
        offsets: list[tuple[int, Axes, int] | None] = []
        for dim in op.scatter_dims_to_operand_dims:
            tile = array_of(values[0]).dimensions[dim]
            offsets.append((whole[dim], placement.dims[dim], tile) if dim in cut else None)
        rows = _places(work, rows, op.index_vector_dim, offsets)
    combine = ""
    if work.partial:
        opcode = opcode_of(work.computations[op.to_apply])
        type_ = inputs[0].shape.element_type
        assert opcode is not None
        combine = combination(work, opcode, type_)
        # One device of those that share a tile begins with it, the others with nothing.
        emit = work.emit
        number = emit.coordinate(work.grid, work.partial)
        first = emit.compare(number, emit.constant(0, et.S32), "EQ")
        values[0] = emit.select(first, values[0], emit.constant(identity(opcode, type_), type_))
    updates = [work.value(count + 1 + k) for k in range(count)]
    result = work.local_result()
    found = work.emit.like(op, (*values, rows, *updates), result, op.properties)
    return work.parts(found, combine)


def _even_rows(work: Work, count: int) -> bool:
    """Whether no device has padding among its updates."""
    op = cast(ScatterOp, work.op)
    for dim, factors in enumerate(work.factors.operands[count]):
        n = sizes_of(op.input_shapes[count])[dim]
        if n % work.grid.product(work.axes(factors)):
            return False
    return True
