"""Ops that read or write at places given as operands: dynamic slices, gather, scatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.dynamic import bounded, cut_to, in_use, is_dynamic, sizes_of, whole
from mlirhlo.interp.numerics import work_dtype
from mlirhlo.interp.ownership import is_free
from mlirhlo.interp.reducers import Reducer, reducer_of
from mlirhlo.interp.registry import Array, DynamicArray, Frame, Program, Run, Value, prepares

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.data_movement import (
        DynamicSliceOp,
        DynamicUpdateSliceOp,
        GatherOp,
        ScatterOp,
    )


def _starts(indices: Sequence[Array], sizes: Sequence[int], window: Sequence[int]) -> list[int]:
    """Start indices clamped so that the window lies inside; one rank-1 index or scalars."""
    if len(indices) == 1 and indices[0].ndim == 1:
        numbers = [int(index) for index in indices[0]]
    else:
        numbers = [int(index) for index in indices]
    return [
        max(0, min(number, size - width))
        for number, size, width in zip(numbers, sizes, window, strict=True)
    ]


@prepares("dynamic-slice")
def dynamic_slice(op: DynamicSliceOp, program: Program) -> Run:
    """A slice at start indices given as operands, clamped into the array: as far as it goes, into what is in use."""
    window, shape = op.dynamic_slice_sizes, cast(ArrayShape, op.shape)

    def run(inputs: Sequence[Any], frame: Frame) -> Array | DynamicArray:
        operand = inputs[0]
        sizes = sizes_of(operand)
        indices = [cast(Array, in_use(index)) for index in inputs[1:]]
        starts = _starts(indices, sizes, window)
        index = tuple(slice(s, s + w) for s, w in zip(starts, window, strict=True))
        return cut_to(whole(operand)[index], shape, sizes)

    return run


@prepares("dynamic-update-slice")
def dynamic_update_slice(op: DynamicUpdateSliceOp, program: Program) -> Run:
    """The array with a slice replaced, start indices clamped.

    A dynamic array is written to anywhere in its room: what is put behind the elements in use is
    there once `set-dimension-size` takes it into use.
    """

    def run(inputs: Sequence[Any], frame: Frame) -> Array | DynamicArray:
        if isinstance(inputs[0], DynamicArray):
            target = inputs[0]
            return DynamicArray(cast(Array, run([target.data, *inputs[1:]], frame)), target.sizes)
        in_place = is_free(inputs)
        operand, update = inputs[0], inputs[1]
        if isinstance(update, DynamicArray):
            update = update.valid
        starts = _starts(inputs[2:], operand.shape, update.shape)
        result = operand if in_place else operand.copy()
        result[tuple(slice(s, s + w) for s, w in zip(starts, update.shape, strict=True))] = update
        return result

    return run


# ---------------------------------------------------------------- gather


@prepares("gather")
def gather(op: GatherOp, program: Program) -> Run:
    """Slices of the operand at the indices, which are clamped into the array.

    A dimension that is read whole is as large as the operand's part in use. Of others as much is read as the slice
    sizes say, if need be of what is not in use.
    """
    offset_dims, declared = op.offset_dims, cast(ArrayShape, op.shape)
    bounds = cast(ArrayShape, op.input_shapes[0]).dimensions
    collapsed = {*op.collapsed_slice_dims, *op.operand_batching_dims}
    batching = tuple(zip(op.operand_batching_dims, op.start_indices_batching_dims, strict=True))
    index_map, vector_dim = op.start_index_map, op.index_vector_dim

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        used, operand, indices = sizes_of(inputs[0]), whole(inputs[0]), inputs[1]
        slice_sizes = [
            used[dim] if width == bounds[dim] and dim not in collapsed else width
            for dim, width in enumerate(op.slice_sizes)
        ]
        places = index_components(indices, vector_dim)
        batch_shape = places[0].shape if places else indices.shape[:-1]
        if not places:
            batch_shape = tuple(s for d, s in enumerate(indices.shape) if d != vector_dim)
        kept = [dim for dim in range(operand.ndim) if dim not in collapsed]
        rank = len(batch_shape) + len(kept)
        batch_dims = [dim for dim in range(rank) if dim not in offset_dims]
        # One index array per operand dimension, shaped to broadcast to the result.
        index: list[Array] = []
        for dim in range(operand.ndim):
            size, width = used[dim], slice_sizes[dim]
            place = np.zeros((1,) * rank, dtype=np.int64)
            if dim in index_map:
                start = as_signed(places[index_map.index(dim)])
                start = np.clip(start, 0, max(size - width, 0))
                place = place + _spread(start, batch_dims, rank)
            for own, of_indices in batching:
                if own == dim:
                    at = of_indices - (vector_dim < of_indices)
                    place = place + _along(batch_shape[at], batch_dims[at], rank)
            if dim in kept:
                place = place + _along(width, offset_dims[kept.index(dim)], rank)
            index.append(place)
        if not index:
            return np.broadcast_to(operand, _result_shape(batch_shape, batch_dims, [], (), rank))
        shape = _result_shape(
            batch_shape, batch_dims, [slice_sizes[dim] for dim in kept], offset_dims, rank
        )
        if 0 in shape:
            return np.empty(shape, dtype=operand.dtype)
        return np.broadcast_to(operand[tuple(index)], shape)

    def dynamic(inputs: Sequence[Any], frame: Frame) -> Value:
        return bounded(run([inputs[0], in_use(inputs[1])], frame), declared)

    return dynamic if declared.is_dynamic or any(map(is_dynamic, op.input_shapes)) else run


def _result_shape(
    batch: Sequence[int],
    batch_dims: Sequence[int],
    offsets: Sequence[int],
    offset_dims: Sequence[int],
    rank: int,
) -> tuple[int, ...]:
    shape = [1] * rank
    for dim, size in zip((*batch_dims, *offset_dims), (*batch, *offsets), strict=True):
        shape[dim] = size
    return tuple(shape)


def as_signed(places: Array) -> Array:
    """Indices as s64; u64 ones beyond it stay out of range."""
    if places.dtype == np.uint64:
        places = np.minimum(places, np.uint64(np.iinfo(np.int64).max))
    return places.astype(np.int64)


def index_components(indices: Array, vector_dim: int) -> list[Array]:
    """The parts of the index vectors, each with the batch shape."""
    if vector_dim == indices.ndim:
        return [indices]
    return [indices.take(k, axis=vector_dim) for k in range(indices.shape[vector_dim])]


def _spread(array: Array, dims: Sequence[int], rank: int) -> Array:
    """`array` with its dimensions at `dims` (ascending) of `rank`."""
    shape = [1] * rank
    for size, dim in zip(array.shape, dims, strict=True):
        shape[dim] = size
    return array.reshape(shape)


def _along(size: int, dim: int, rank: int) -> Array:
    """0, 1, … size - 1 along dimension `dim` of `rank`."""
    shape = [1] * rank
    shape[dim] = size
    return np.arange(size, dtype=np.int64).reshape(shape)


# ---------------------------------------------------------------- scatter


@prepares("scatter")
def scatter(op: ScatterOp, program: Program) -> Run:
    """Inputs with updates combined in at the indices.

    A window that does not lie inside the input as a whole is left out. Updates of one place
    combine in row-major order of the updates.
    """
    count = len(op.inputs) // 2
    window_dims, inserted = op.update_window_dims, op.inserted_window_dims
    batching = tuple(zip(op.input_batching_dims, op.scatter_indices_batching_dims, strict=True))
    index_map, vector_dim = op.scatter_dims_to_operand_dims, op.index_vector_dim
    skipped = {*inserted, *op.input_batching_dims}
    reducer = reducer_of(program, op.to_apply)
    is_tuple = isinstance(op.shape, TupleShape)

    def targets(shape: tuple[int, ...], indices: Array, updates: tuple[int, ...]) -> Array:
        """Flat place in the input of every update element, -1 for those left out."""
        rank = len(updates)
        scatter_dims = [dim for dim in range(rank) if dim not in window_dims]
        places = index_components(indices, vector_dim)
        kept = [dim for dim in range(len(shape)) if dim not in skipped]
        inside = np.ones((1,) * rank, dtype=np.bool_)
        flat = np.zeros((1,) * rank, dtype=np.int64)
        for dim, size in enumerate(shape):
            width = updates[window_dims[kept.index(dim)]] if dim in kept else 1
            place = np.zeros((1,) * rank, dtype=np.int64)
            if dim in index_map:
                start = _spread(as_signed(places[index_map.index(dim)]), scatter_dims, rank)
                inside = inside & (start >= 0) & (start <= size - width)
                place = place + np.where(inside, start, 0)
            for own, of_indices in batching:
                if own == dim:
                    at = scatter_dims[of_indices - (vector_dim < of_indices)]
                    place = place + _along(updates[at], at, rank)
            if dim in kept:
                place = place + _along(width, window_dims[kept.index(dim)], rank)
            flat = flat * size + place
        return np.broadcast_to(np.where(inside, flat, -1), updates).reshape(-1)

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        in_place = count == 1 and is_free(inputs)
        arrays, indices, updates = inputs[:count], inputs[count], inputs[count + 1 :]
        flat = targets(arrays[0].shape, indices, updates[0].shape)
        inside = flat >= 0
        values = [update.reshape(-1) for update in updates]
        if not inside.all():
            flat = flat[inside]
            values = [value[inside] for value in values]
        results = [array.reshape(-1) if in_place else array.flatten() for array in arrays]
        if flat.size:
            combine_at(results, flat, values, reducer, frame)
        shaped = [r.reshape(a.shape) for r, a in zip(results, arrays, strict=True)]
        return tuple(shaped) if is_tuple else shaped[0]

    return run


def combine_at(
    results: list[Array], places: Array, values: list[Array], reducer: Reducer, frame: Frame
) -> None:
    """Combines `values` into `results` at flat `places`, in order, in place."""
    if len(results) == 1 and reducer.takes_last:
        results[0][places] = values[0]  # numpy keeps the last of equal places
        return
    ufunc = reducer.ufunc
    if len(results) == 1 and ufunc is not None:
        work = work_dtype(reducer.element_type)
        if work == results[0].dtype:
            ufunc.at(results[0], places, values[0])
            return
    # Occurrence k of each place goes into round k, so that a round has no place twice.
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    starts = np.flatnonzero(first)
    occurrence = np.arange(ordered.size) - np.repeat(starts, np.diff(starts, append=ordered.size))
    for round_ in range(int(occurrence.max()) + 1):
        chosen = order[occurrence == round_]
        at = places[chosen]
        old = [result[at] for result in results]
        new = frame.call_elementwise(reducer.name, [*old, *(value[chosen] for value in values)])
        for result, value in zip(results, new, strict=True):
            result[at] = value
