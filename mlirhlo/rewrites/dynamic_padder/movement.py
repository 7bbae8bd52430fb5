"""Element by element, and data on the move: what keeps places, and what must put elements elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.ops import (
    BroadcastOp,
    ConcatenateOp,
    DynamicReshapeOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.dynamic import equal_runs, reshape_groups
from mlirhlo.rewrites.dynamic_padder.bounded import (
    Bounded,
    Scope,
    Sizes,
    Tree,
    handles,
    masked,
    merged,
    same_number,
    static,
)
from mlirhlo.rewrites.legalize.indexed_loops import S32, plain
from mlirhlo.rewrites.linear_algebra.client import Value


def elementwise(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Places stay: what is not in use is computed too, and not read.

    Where operands are not equally large, a single element in use is repeated; else the smallest counts.
    """
    shape = op.shape
    if not isinstance(shape, ArrayShape):
        return None
    arrays = [scope.array(tree) for tree in operands]
    data = [a.data for a in arrays]
    sizes: list[Value | None] = [None] * shape.rank
    alike = [k for k, a in enumerate(arrays) if a.data.rank == shape.rank]
    for dim in range(shape.rank):
        known = [(k, size) for k in alike if (size := arrays[k].sizes[dim]) is not None]
        if not known:
            continue
        sizes[dim] = known[0][1]
        if all(same_number(known[0][1], size) for _, size in known[1:]):
            continue
        used = known[0][1]
        for _, size in known[1:]:
            both = size.compare("EQ", 1).select(used, used.minimum(size))
            used = used.compare("EQ", 1).select(size, both)
        sizes[dim] = used
        for k, size in known:
            first = data[k].slice(*((0, 1 if d == dim else n) for d, n in enumerate(data[k].sizes)))
            others = [d for d in range(shape.rank) if d != dim]
            first = first.reshape(*(data[k].sizes[d] for d in others))
            again = first.broadcast_in_dim(data[k].sizes, others)
            data[k] = size.compare("EQ", 1).select(again, data[k])
    made = scope.again(op, data, static(shape))
    return Bounded(scope.value(made.output), tuple(sizes))


@handles("iota")
def iota(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """All of it is in use."""
    shape = op.shape
    assert isinstance(shape, ArrayShape)
    made = scope.value(scope.again(op, [], static(shape)).output)
    return Bounded(made, (None,) * made.rank)


@handles("broadcast")
def broadcast(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Dimensions take their sizes along."""
    assert isinstance(op, BroadcastOp)
    assert isinstance(op.shape, ArrayShape)
    found = scope.array(operands[0])
    made = scope.again(op, [found.data], static(op.shape))
    sizes: list[Value | None] = [None] * op.shape.rank
    for dim, size in zip(op.dimensions, found.sizes, strict=True):
        sizes[dim] = size
    return Bounded(scope.value(made.output), tuple(sizes))


@handles("transpose")
def transpose(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Dimensions take their sizes along."""
    assert isinstance(op, TransposeOp)
    assert isinstance(op.shape, ArrayShape)
    found = scope.array(operands[0])
    made = scope.again(op, [found.data], static(op.shape))
    return Bounded(scope.value(made.output), tuple(found.sizes[d] for d in op.dimensions))


@handles("slice")
def slice_(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Of a dimension that stays dynamic, what is in use of the part; of others the part is taken to be in use."""
    assert isinstance(op, SliceOp)
    assert isinstance(op.shape, ArrayShape)
    assert op.slices is not None
    found = scope.array(operands[0])
    made = scope.again(op, [found.data], static(op.shape))
    sizes: list[Value | None] = []
    for dim, (size, part) in enumerate(zip(found.sizes, op.slices.dimensions, strict=True)):
        bound, stays = found.bounds[dim], op.shape.is_dynamic_dimension(dim)
        if size is not None and stays and (part.start, part.limit, part.stride) != (0, bound, 1):
            size = (size.minimum(part.limit) - part.start).maximum(0)
            size = size if part.stride == 1 else (size + (part.stride - 1)) / part.stride
        sizes.append(size if stays else None)
    return Bounded(scope.value(made.output), tuple(sizes))


@handles("pad")
def pad(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Behind the elements in use comes padding, in the room that others had too."""
    assert isinstance(op, PadOp)
    assert isinstance(op.shape, ArrayShape)
    assert op.padding is not None
    found, fill = scope.array(operands[0]), scope.array(operands[1])
    edges = op.padding.dimensions
    followed = [d for d, edge in enumerate(edges) if edge.high > 0 or edge.interior]
    data = masked(found, followed, fill.data)
    made = scope.again(op, [data, fill.data], static(op.shape))
    sizes: list[Value | None] = []
    for size, edge in zip(found.sizes, edges, strict=True):
        if size is not None and (edge.low, edge.high, edge.interior) != (0, 0, 0):
            inside = (size - 1).maximum(0) * edge.interior
            size = (size + inside + (edge.low + edge.high)).maximum(0)
        sizes.append(size)
    return Bounded(scope.value(made.output), tuple(sizes))


@handles("concatenate")
def concatenate(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Each part is written where the elements in use of those before it end."""
    assert isinstance(op, ConcatenateOp)
    assert isinstance(op.shape, ArrayShape)
    arrays, dim = [scope.array(tree) for tree in operands], op.dimensions[0]
    made = scope.again(op, [a.data for a in arrays], static(op.shape))
    data = scope.value(made.output)
    sizes = list(merged(*arrays))
    sizes[dim] = None
    if any(a.sizes[dim] is not None for a in arrays):
        zero, end, moved = scope.number(0), scope.number(0), False
        for part in arrays:
            if moved:
                starts = [end if d == dim else zero for d in range(data.rank)]
                data = data.graph.make(
                    "dynamic-update-slice", data, part.data, *starts, shape=static(op.shape)
                )
            moved |= part.sizes[dim] is not None
            end = end + (part.sizes[dim] or part.bounds[dim])
        sizes[dim] = end
    return Bounded(data, tuple(sizes))


@handles("reverse")
def reverse(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Turned round, the elements in use are the last ones; they are taken to the front."""
    assert isinstance(op, ReverseOp)
    assert isinstance(op.shape, ArrayShape)
    found = scope.array(operands[0])
    data = scope.value(scope.again(op, [found.data], static(op.shape)).output)
    turned = [d for d in op.dimensions if found.sizes[d] is not None]
    if turned:
        bounds, zero = data.sizes, scope.number(0)
        starts = [zero] * data.rank
        for dim in turned:
            starts[dim] = scope.number(bounds[dim]) - (found.sizes[dim] or bounds[dim])
        wide = data.pad([(0, bounds[d] if d in turned else 0) for d in range(data.rank)])
        data = wide.graph.make(
            "dynamic-slice",
            wide,
            *starts,
            shape=static(op.shape),
            dynamic_slice_sizes=integers(bounds),
        )
    return Bounded(data, found.sizes)


# ---------------------------------------------------------------- reshapes


@handles("reshape")
def reshape(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """The elements in use in their order under other sizes; one size of a group follows from the others."""
    assert isinstance(op, ReshapeOp)
    shape = op.shape
    assert isinstance(shape, ArrayShape)
    found = scope.array(operands[0])
    bounds = shape.dimensions
    sizes: list[Value | None] = [None] * shape.rank
    operand = op.input_shapes[0]
    assert isinstance(operand, ArrayShape)
    groups = reshape_groups(operand, shape, op.inferred_dimension)
    for given, wanted, free in groups:
        used = [size for d in given if (size := found.sizes[d]) is not None]
        rest = math.prod(bounds[d] for d in wanted if d != free)
        if free < 0 or not used or not rest:
            continue
        count = scope.number(math.prod(found.bounds[d] for d in given if found.sizes[d] is None))
        for size in used:
            count = count * size
        sizes[free] = count / rest if rest > 1 else count
    return _placed(scope, op, found, shape, tuple(sizes), [group[:2] for group in groups])


@handles("dynamic-reshape")
def dynamic_reshape(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """The elements in use in their order under sizes that are given."""
    assert isinstance(op, DynamicReshapeOp)
    shape = op.shape
    assert isinstance(shape, ArrayShape)
    found, *given = (scope.array(tree) for tree in operands)
    sizes = tuple(
        size.data.convert(S32) if shape.is_dynamic_dimension(d) else None
        for d, size in enumerate(given)
    )
    groups = _with_sizes(equal_runs(found.bounds, shape.dimensions), found.sizes, sizes)
    return _placed(scope, op, found, shape, sizes, groups)


def _placed(
    scope: Scope,
    op: Instruction,
    found: Bounded,
    shape: ArrayShape,
    sizes: Sizes,
    groups: Sequence[tuple[list[int], list[int]]],
) -> Bounded:
    """An array in the room of `shape`, the n-th element in use at the n-th place in use.

    Each group has as many elements in use on both sides. Where all but the first of a group are full on both
    sides, elements have their places already; others are gathered, along the group as one dimension.
    """
    bounds = shape.dimensions
    data, flat = found.data, False
    for number, (given, wanted) in enumerate(groups):
        if 0 in bounds or (
            _in_order(given, found.bounds, found.sizes) and _in_order(wanted, bounds, sizes)
        ):
            continue
        if not flat:
            data = data.reshape(*(math.prod(found.bounds[d] for d in g) for g, _ in groups))
            flat = True
        place = _element_number(scope, [(bounds[d], sizes[d]) for d in wanted])
        place = _place_of(place, [(found.bounds[d], found.sizes[d]) for d in given])
        data = _taken(data, place, number)
    data = data.graph.make("reshape", data, shape=static(shape))
    data.op.instruction_name = op.instruction_name
    return Bounded(data, sizes)


def _with_sizes(
    groups: list[tuple[list[int], list[int]]], first: Sizes, second: Sizes
) -> list[tuple[list[int], list[int]]]:
    """Groups with as many elements in use on both sides: those with sizes, and what is between, as one."""
    sized = [
        k
        for k, (given, wanted) in enumerate(groups)
        if any(first[d] is not None for d in given) or any(second[d] is not None for d in wanted)
    ]
    if len(sized) < 2:
        return groups
    start, end = sized[0], sized[-1] + 1
    together = groups[start:end]
    one = (
        [d for given, _ in together for d in given],
        [d for _, wanted in together for d in wanted],
    )
    return [*groups[:start], one, *groups[end:]]


def _in_order(dims: Sequence[int], bounds: Sequence[int], sizes: Sizes) -> bool:
    """Whether the elements in use are the first of the dimensions as one."""
    real = [d for d in dims if bounds[d] != 1 or sizes[d] is not None]
    return all(sizes[d] is None for d in real[1:])


def _element_number(scope: Scope, dims: Sequence[tuple[int, Value | None]]) -> Value:
    """For each place of the dimensions as one, the number of its element among those in use."""
    count = math.prod(bound for bound, _ in dims)
    left = scope.graph.iota(S32, (count,))
    number: Value | None = None
    weight: Value | None = None
    for bound, size in reversed(dims):
        own = left.elementwise("remainder", bound)
        number = own if number is None or weight is None else number + own * weight
        used = size or scope.number(bound)
        weight = used if weight is None else weight * used
        left = left / bound
    assert number is not None
    return number


def _place_of(number: Value, dims: Sequence[tuple[int, Value | None]]) -> Value:
    """The place, in the dimensions as one, of the element of a number among those in use."""
    place: Value | None = None
    stride = 1
    for position, (bound, size) in reversed(list(enumerate(dims))):
        used: Value | int = size or bound
        own = number if position == 0 else number.elementwise("remainder", used)
        place = own * stride if place is None else place + own * stride
        number = number / used
        stride *= bound
    assert place is not None
    return place


def _taken(data: Value, places: Value, dim: int) -> Value:
    """`data` with the elements along `dim` that are at `places`, one number each."""
    sizes = data.sizes
    others = tuple(d for d in range(data.rank) if d != dim)
    found = (*sizes[:dim], places.sizes[0], *sizes[dim + 1 :])
    return data.graph.make(
        "gather",
        data,
        places,
        shape=plain(data.type, found),
        offset_dims=integers(others),
        collapsed_slice_dims=integers((dim,)),
        start_index_map=integers((dim,)),
        index_vector_dim=integer(1),
        slice_sizes=integers(tuple(1 if d == dim else n for d, n in enumerate(sizes))),
    )
