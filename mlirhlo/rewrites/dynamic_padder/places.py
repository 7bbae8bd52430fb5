"""Reads and writes at places given as numbers: places out of use must not be reached."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.ops import DynamicSliceOp, DynamicUpdateSliceOp, GatherOp, ScatterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.dynamic_padder.bounded import Bounded, Scope, Tree, handles, static
from mlirhlo.rewrites.legalize.indexed_loops import S32
from mlirhlo.rewrites.linear_algebra.client import Value


def _wide(type_: PrimitiveType) -> PrimitiveType:
    """A type that numbers of `type_` and sizes both fit in."""
    if type_.bits < 32 or type_ is S32:
        return S32
    return type_ if type_.bits == 64 else PRIMITIVE_TYPES["s64"]


def _starts(indices: Sequence[Bounded]) -> list[Value] | None:
    """Start indices as scalars that sizes can be compared with; None where they are one vector."""
    if any(index.data.rank for index in indices):
        return None
    return [index.data.convert(_wide(index.data.type)) for index in indices]


@handles("dynamic-slice")
def dynamic_slice(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Starts are clamped by the sizes in use; a dimension that stays dynamic has what is in use of it."""
    assert isinstance(op, DynamicSliceOp)
    assert isinstance(op.shape, ArrayShape)
    found, *indices = (scope.array(tree) for tree in operands)
    starts = _starts(indices)
    if starts is None:
        return None
    sizes: list[Value | None] = [None] * op.shape.rank
    for dim, size in enumerate(found.sizes):
        if size is None:
            continue
        width, type_ = op.dynamic_slice_sizes[dim], starts[dim].type
        if width == found.bounds[dim]:
            starts[dim], sizes[dim] = scope.graph.scalar(type_, 0), size
        else:
            last = (size - width).maximum(0)
            starts[dim] = starts[dim].minimum(last.convert(type_))
            sizes[dim] = size.minimum(width)
    made = scope.again(op, [found.data, *starts], static(op.shape))
    return Bounded(scope.value(made.output), tuple(sizes))


@handles("dynamic-update-slice")
def dynamic_update_slice(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Starts are clamped by the room. Of an update, what is out of use writes what was there."""
    assert isinstance(op, DynamicUpdateSliceOp)
    assert isinstance(op.shape, ArrayShape)
    found, update, *indices = (scope.array(tree) for tree in operands)
    starts = _starts(indices)
    if starts is None:
        return None
    bounds, room = found.bounds, update.bounds
    open_ = [d for d, size in enumerate(update.sizes) if size is not None]
    if not open_:
        given = [index.data for index in indices]
        made = scope.again(op, [found.data, update.data, *given], static(op.shape))
        return Bounded(scope.value(made.output), found.sizes)
    for dim in open_:
        part = update.sizes[dim]
        assert part is not None
        type_ = starts[dim].type
        last = scope.number(bounds[dim]) - part
        starts[dim] = starts[dim].maximum(0).minimum(last.convert(type_))
    # Room behind the array, so that the whole update fits wherever its part in use does.
    edges = [(0, room[d] if d in open_ else 0) for d in range(len(bounds))]
    wide = found.data.pad(edges)
    graph = scope.graph
    part_now = graph.make(
        "dynamic-slice",
        wide,
        *starts,
        shape=static(_array(update.data)),
        dynamic_slice_sizes=integers(room),
    )
    data = update.data
    for dim in open_:
        within = graph.iota(S32, room, dim).compare("LT", update.sizes[dim] or room[dim])
        data = within.select(data, part_now)
    written = scope.again(op, [wide, data, *starts], _array(wide))
    kept = scope.value(written.output).slice(*((0, bound) for bound in bounds))
    return Bounded(kept, found.sizes)


def _array(value: Value) -> ArrayShape:
    shape = value.op.shape
    assert isinstance(shape, ArrayShape)
    return shape


def _limits(scope: Scope, indices: Value, vector_dim: int, last: Sequence[Value | int]) -> Value:
    """The last place of each component of index vectors, in the shape of the indices."""
    graph = scope.graph
    values = [v.convert(indices.type) if isinstance(v, Value) else v for v in last]
    scalars = [graph.value(v, indices.type) for v in values]
    if vector_dim == indices.rank:
        return scalars[0].broadcast(indices.sizes) if indices.rank else scalars[0]
    vector = graph.concatenate([v.reshape(1) for v in scalars], 0)
    return vector.broadcast_in_dim(indices.sizes, (vector_dim,))


@handles("gather")
def gather(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Places are clamped by the sizes in use; dimensions read whole, and those of the indices, keep theirs."""
    assert isinstance(op, GatherOp)
    assert isinstance(op.shape, ArrayShape)
    x, places = (scope.array(tree) for tree in operands)
    indices = places.data
    mapped = op.start_index_map
    if any(x.sizes[d] is not None for d in mapped):
        indices = indices.convert(_wide(indices.type))
        last: list[Value | int] = []
        for dim in mapped:
            size, width = x.sizes[dim], op.slice_sizes[dim]
            last.append(x.bounds[dim] - width if size is None else (size - width).maximum(0))
        indices = indices.minimum(_limits(scope, indices, op.index_vector_dim, last))
    sizes: list[Value | None] = [None] * op.shape.rank
    gone = {*op.collapsed_slice_dims, *op.operand_batching_dims}
    kept = [d for d in range(len(x.sizes)) if d not in gone]
    for out, dim in zip(op.offset_dims, kept, strict=True):
        if op.slice_sizes[dim] == x.bounds[dim]:
            sizes[out] = x.sizes[dim]
    batches = [d for d in range(op.shape.rank) if d not in op.offset_dims]
    own = [d for d in range(len(places.sizes)) if d != op.index_vector_dim]
    for out, dim in zip(batches, own, strict=True):
        sizes[out] = places.sizes[dim]
    made = scope.again(op, [x.data, indices], static(op.shape))
    return Bounded(scope.value(made.output), tuple(sizes))


@handles("scatter")
def scatter(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Indices of updates that are out of use, or would leave what is in use, point out of range."""
    assert isinstance(op, ScatterOp)
    if not isinstance(op.shape, ArrayShape) or len(operands) != 3:
        return None
    x, places, update = (scope.array(tree) for tree in operands)
    gone = {*op.inserted_window_dims, *op.input_batching_dims}
    inside = [d for d in range(len(x.sizes)) if d not in gone]
    window = dict(zip(inside, op.update_window_dims, strict=True))
    for dim, of_update in window.items():
        size = update.sizes[of_update]
        same = x.sizes[dim] is not None and size is not None
        if size is not None and not (same and _is_one(size, x.sizes[dim])):
            return None
    mapped = op.scatter_dims_to_operand_dims
    rows = [d for d in range(len(update.sizes)) if d not in op.update_window_dims]
    own = [d for d in range(len(places.sizes)) if d != op.index_vector_dim]
    counts = [places.sizes[d] or update.sizes[r] for d, r in zip(own, rows, strict=True)]
    if not mapped and any(count is not None for count in counts):
        return None
    indices = places.data
    if any(c is not None for c in (*counts, *(x.sizes[d] for d in mapped))):
        indices = indices.convert(_wide(indices.type))
    nowhere = scope.graph.scalar(indices.type, -1)
    if any(x.sizes[d] is not None for d in mapped):
        last: list[Value | int] = []
        for dim in mapped:
            size = x.sizes[dim]
            width = update.bounds[window[dim]] if dim in window else 1
            last.append(x.bounds[dim] - width if size is None else size - width)
        limits = _limits(scope, indices, op.index_vector_dim, last)
        indices = indices.compare("LE", limits).select(indices, nowhere.broadcast(indices.sizes))
    for dim, count in zip(own, counts, strict=True):
        if count is not None:
            within = scope.graph.iota(S32, indices.sizes, dim).compare("LT", count)
            indices = within.select(indices, nowhere.broadcast(indices.sizes))
    made = scope.again(op, [x.data, indices, update.data], static(op.shape))
    made.properties.pop("indices_are_sorted", None)
    return Bounded(scope.value(made.output), x.sizes)


def _is_one(a: Value | None, b: Value | None) -> bool:
    """Whether two sizes are known to be one."""
    values: list[SSAValue] = [v.op.output for v in (a, b) if v is not None]
    return len(values) == 2 and values[0] is values[1]
