"""Rules of scatter, and of sums of scatters that add."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import AddOp, ConcatenateOp, MapOp, ScatterOp, TransposeOp, TupleOp
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    has_one_user,
    is_array,
    made_by,
    sized,
)
from mlirhlo.rewrites.algsimp.mapping import reducer
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(ScatterOp)
def scatter_of_nothing(op: ScatterOp, rewriter: Rewriter) -> None:
    """scatter(x, i, u) => x, every u empty"""
    count = len(op.inputs) // 2
    if any(array(u).element_count for u in op.inputs[count + 1 :]):
        return
    if is_array(op):
        forward(op, rewriter, op.inputs[0])
        return
    b = Builder(op, rewriter)
    b.like(TupleOp, *op.inputs[:count])
    b.done()


@rule(ScatterOp)
def scatter_of_whole(op: ScatterOp, rewriter: Rewriter) -> None:
    """scatter(x, i, u) => map(f, x, u), no indices, u of the shape of x"""
    if len(op.inputs) != 3 or not is_array(op) or array(op.inputs[1]).element_count:
        return
    x, _, update = op.inputs
    if array(x).dimensions != array(update).dimensions or not array(x).element_count:
        return
    if array(x).is_dynamic or op.update_window_dims != tuple(range(array(x).rank)):
        return
    b = Builder(op, rewriter)
    over = integers(tuple(range(array(x).rank)))
    b.like(MapOp, x, update, dimensions=over, to_apply=op.properties["to_apply"])
    b.done()


_NUMBERS = (
    "update_window_dims",
    "inserted_window_dims",
    "scatter_dims_to_operand_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "index_vector_dim",
)


def _adding(value: SSAValue, rewriter: Rewriter) -> ScatterOp | None:
    """The scatter that makes `value` for one user by adding updates."""
    scatter = made_by(value, ScatterOp)
    if scatter is None or len(scatter.inputs) != 3 or not has_one_user(value):
        return None
    if scatter.control_predecessors or array(value).is_dynamic:
        return None
    return scatter if reducer(scatter.to_apply, rewriter) is AddOp else None


def _alike(a: ScatterOp, b: ScatterOp) -> bool:
    """Whether updates of both could stand in one scatter."""
    if any(op.indices_are_sorted or op.unique_indices for op in (a, b)):
        return False
    if any(a.properties.get(key) != b.properties.get(key) for key in _NUMBERS):
        return False
    windows = [[array(op.inputs[2]).dimensions[d] for d in op.update_window_dims] for op in (a, b)]
    return windows[0] == windows[1] and element(a.inputs[1]) is element(b.inputs[1])


def _joined(a: ScatterOp, b: ScatterOp) -> tuple[int, int] | None:
    """The dimension of the indices, and that of the updates, in which they can be concatenated."""
    i, j = array(a.inputs[1]), array(b.inputs[1])
    if i.rank != j.rank:
        return None
    places = [d for d in range(i.rank) if d != a.index_vector_dim]
    free = [d for d in places if d not in a.scatter_indices_batching_dims]
    found = [d for d in range(i.rank) if i.dimensions[d] != j.dimensions[d]] or free
    if len(found) != 1 or found[0] not in free:
        return None
    updates = [d for d in range(array(a.inputs[2]).rank) if d not in a.update_window_dims]
    return found[0], updates[places.index(found[0])]


def _concatenated(b: Builder, x: SSAValue, y: SSAValue, dim: int) -> ConcatenateOp:
    sizes = list(array(x).dimensions)
    sizes[dim] += array(y).dimensions[dim]
    return b(ConcatenateOp, x, y, shape=sized(array(x), sizes), dimensions=integers((dim,)))


def _scatter(b: Builder, like: ScatterOp, *operands: SSAValue | ScatterOp | AddOp) -> ScatterOp:
    kept = {key: like.properties[key] for key in _NUMBERS if key in like.properties}
    flags = ("indices_are_sorted", "unique_indices", "to_apply")
    kept |= {key: like.properties[key] for key in flags if key in like.properties}
    return b.like(ScatterOp, *operands, **kept)


@rule(AddOp, needs=LI, contract="rounding", reads=(ScatterOp,))
def add_of_scatters(op: AddOp, rewriter: Rewriter) -> None:
    """scatter_add(a, i, u) + scatter_add(b, j, v) => scatter_add(a + b, concat(i, j), concat(u, v))"""
    first, second = _adding(op.lhs, rewriter), _adding(op.rhs, rewriter)
    if first is None or second is None or first is second or not _alike(first, second):
        return
    dims = _joined(first, second)
    if dims is None:
        return
    (a, i, u), (c, j, v) = first.inputs, second.inputs
    if array(u).element_count + array(v).element_count >= array(op).element_count:
        return
    b = Builder(op, rewriter)
    indices, updates = _concatenated(b, i, j, dims[0]), _concatenated(b, u, v, dims[1])
    _scatter(b, first, b.like(AddOp, a, c), indices.output, updates.output)
    b.done()


@rule(AddOp, needs=LI, contract="rounding", reads=(ScatterOp,))
def add_of_scatters_apart(op: AddOp, rewriter: Rewriter) -> None:
    """scatter_add(a, i, u) + scatter_add(b, j, v) => scatter_add(scatter_add(a + b, j, v), i, u)"""
    first, second = _adding(op.lhs, rewriter), _adding(op.rhs, rewriter)
    if first is None or second is None or first is second or not _alike(first, second):
        return
    (a, i, u), (c, j, v) = first.inputs, second.inputs
    small = array(u).element_count + array(v).element_count < array(op).element_count
    if small and _joined(first, second) is not None:
        return
    b = Builder(op, rewriter)
    inner = _scatter(b, second, b.like(AddOp, a, c), j, v)
    _scatter(b, first, inner, i, u)
    b.done()


@rule(AddOp, needs=LI, contract="rounding", reads=(ScatterOp,))
def add_of_scatter(op: AddOp, rewriter: Rewriter) -> None:
    """x + scatter_add(a, i, u) => scatter_add(x + a, i, u)"""
    first, second = _adding(op.lhs, rewriter), _adding(op.rhs, rewriter)
    if first is not None and second is not None and _alike(first, second):
        return
    scatter, x = (first, op.rhs) if first is not None else (second, op.lhs)
    if scatter is None or made_by(x, ScatterOp) is scatter:
        return
    a, i, u = scatter.inputs
    b = Builder(op, rewriter)
    _scatter(b, scatter, b.like(AddOp, x, a), i, u)
    b.done()


def _run(sizes: Sequence[int], window: Sequence[int]) -> int:
    """Elements that a window of a row-major array writes one after the other."""
    run = 1
    for size, part in zip(reversed(sizes), reversed(window), strict=True):
        run *= part
        if part != size:
            break
    return run


@rule(TransposeOp, needs=("enable_fold_transpose_into_scatter", *LI), reads=(ScatterOp,))
def transpose_of_scatter(op: TransposeOp, rewriter: Rewriter) -> None:
    """transpose(scatter(x, i, u)) => scatter(transpose(x), i, transpose(u)), what is written being as contiguous"""
    scatter = made_by(op.operand, ScatterOp)
    if scatter is None or len(scatter.inputs) != 3 or not has_one_user(scatter.output):
        return
    if scatter.input_batching_dims or scatter.control_predecessors or array(scatter).is_dynamic:
        return
    x, indices, updates = scatter.inputs
    order = op.dimensions
    places = [order.index(dim) for dim in range(len(order))]
    window = dict.fromkeys(scatter.inserted_window_dims, 1)
    inside = [dim for dim in range(len(order)) if dim not in window]
    of_updates = dict(zip(inside, scatter.update_window_dims, strict=True))
    window |= {dim: array(updates).dimensions[of_updates[dim]] for dim in inside}
    sizes, parts = array(x).dimensions, [window[dim] for dim in range(len(order))]
    if _run([sizes[d] for d in order], [parts[d] for d in order]) < _run(sizes, parts):
        return
    turned = list(range(array(updates).rank))
    moved = [of_updates[dim] for dim in order if dim in of_updates]
    for place, source in zip(scatter.update_window_dims, moved, strict=True):
        turned[place] = source
    b = Builder(op, rewriter)
    operand = b.transpose(x, order)
    if turned != sorted(turned):
        updates = b.transpose(updates, turned).output
    kept = {key: scatter.properties[key] for key in _NUMBERS if key in scatter.properties}
    for key in ("indices_are_sorted", "unique_indices", "to_apply"):
        if key in scatter.properties:
            kept[key] = scatter.properties[key]
    kept["inserted_window_dims"] = integers(
        tuple(sorted(places[d] for d in scatter.inserted_window_dims))
    )
    kept["scatter_dims_to_operand_dims"] = integers(
        tuple(places[d] for d in scatter.scatter_dims_to_operand_dims)
    )
    b.like(ScatterOp, operand, indices, updates, **kept)
    b.done()


RULES = (
    scatter_of_nothing,
    scatter_of_whole,
    add_of_scatters,
    add_of_scatters_apart,
    add_of_scatter,
    transpose_of_scatter,
)
