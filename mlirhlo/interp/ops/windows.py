"""Reduce-window and select-and-scatter: sliding windows over padded, dilated arrays."""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowDimension
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.interp.numerics import work_dtype, wrap
from mlirhlo.interp.ops.data_movement import padded
from mlirhlo.interp.ops.indexing import combine_at
from mlirhlo.interp.reducers import (
    Reducer,
    combine,
    fold_dtype,
    identity_element,
    reducer_of,
)
from mlirhlo.interp.registry import Array, Frame, Program, Run, Value, prepares

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.reduction import ReduceWindowOp, SelectAndScatterOp


@dataclass(frozen=True, slots=True)
class WindowPlaces:
    """A window over an array of known sizes."""

    window: Window
    sizes: tuple[int, ...]

    @property
    def edges(self) -> list[tuple[int, int, int]]:
        """Padding in the form of `padded`: base dilation is interior padding."""
        return [
            (d.padding_low, d.padding_high, d.base_dilation - 1) for d in self.window.dimensions
        ]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of places of the window, the sizes of the result."""
        counts: list[int] = []
        for size, d in zip(self.sizes, self.window.dimensions, strict=True):
            full = (
                d.padding_low + d.padding_high + (max(size - 1, 0) * d.base_dilation + min(size, 1))
            )
            reach = (d.size - 1) * d.window_dilation + 1
            counts.append((full - reach) // d.stride + 1 if full >= reach and d.size else 0)
        return tuple(counts)

    @property
    def positions(self) -> Iterator[tuple[int, ...]]:
        """Positions within the window, row-major."""
        return product(*(range(d.size) for d in self.window.dimensions))

    def view(self, array: Array, position: Sequence[int]) -> Array:
        """Of a padded array, the element at one position of every window."""
        index: list[slice] = []
        for at, count, d in zip(position, self.counts, self.window.dimensions, strict=True):
            if d.window_reversal:
                at = d.size - 1 - at
            start = at * d.window_dilation
            index.append(slice(start, start + (count - 1) * d.stride + 1, d.stride))
        return array[tuple(index)]

    def windows(self, array: Array) -> Array:
        """Of a padded array, all windows: places, then positions within the window."""
        dims = self.window.dimensions
        strides = [s * d.stride for s, d in zip(array.strides, dims, strict=True)]
        strides += [s * d.window_dilation for s, d in zip(array.strides, dims, strict=True)]
        shape = (*self.counts, *(d.size for d in dims))
        return as_strided(array, shape, strides, writeable=False)


@prepares("reduce-window")
def reduce_window(op: ReduceWindowOp, program: Program) -> Run:
    """Each window folded by a computation from initial values; padding and gaps take no part."""
    count = len(op.inputs) // 2
    window = op.window
    reducer = reducer_of(program, op.to_apply)
    is_tuple = isinstance(op.shape, TupleShape)
    recognised = count == 1 and reducer.ufunc is not None and not is_tuple

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        arrays, initials = inputs[:count], inputs[count:]
        places = WindowPlaces(window, arrays[0].shape)
        if recognised:
            return _fold_windows(places, arrays[0], initials[0], reducer)
        results = _call_windows(places, arrays, initials, reducer.name, frame)
        return results if is_tuple else results[0]

    return run


def _fold_windows(places: WindowPlaces, array: Array, initial: Array, reducer: Reducer) -> Array:
    type_ = reducer.element_type
    work, wide = work_dtype(type_), fold_dtype(reducer)
    counts = places.counts
    if 0 in counts:
        return np.zeros(counts, dtype=type_.dtype)
    # The identity in padding and gaps leaves them out.
    identity = identity_element(reducer).astype(wide)
    result = padded(array.astype(work).astype(wide), identity, places.edges)
    for axis, (dimension, count) in enumerate(zip(places.window.dimensions, counts, strict=True)):
        result = _fold_axis(result, axis, dimension, count, reducer)
    return wrap(combine(reducer, initial.astype(work), result.astype(work)), type_.dtype)


def _fold_axis(
    array: Array, axis: int, dimension: WindowDimension, count: int, reducer: Reducer
) -> Array:
    """Windows of one dimension, put together from windows whose sizes are powers of two.

    The recognised operations commute, so dimensions may fold one after the other.
    """
    block = np.moveaxis(array, axis, 0)
    reach = (count - 1) * dimension.stride + 1
    result: Array | None = None
    offset, width = 0, 1
    while width <= dimension.size:
        if dimension.size & width:
            start = offset * dimension.window_dilation
            piece = block[start : start + reach]
            result = piece if result is None else combine(reducer, result, piece)
            offset += width
        step = width * dimension.window_dilation
        width *= 2
        if width <= dimension.size:
            block = combine(reducer, block[:-step], block[step:])
    assert result is not None
    return np.moveaxis(result[:: dimension.stride], 0, axis)


def _call_windows(
    places: WindowPlaces,
    arrays: Sequence[Array],
    initials: Sequence[Array],
    name: str,
    frame: Frame,
) -> tuple[Array, ...]:
    counts = places.counts
    state = tuple(
        np.broadcast_to(np.asarray(i).astype(a.dtype), counts)
        for i, a in zip(initials, arrays, strict=True)
    )
    if 0 in counts:
        return state
    along = _running_dimension(places)
    if along is not None:
        return _running(along, arrays, state, name, frame)
    filled = [padded(a, np.zeros((), a.dtype), places.edges) for a in arrays]
    inside = _inside(places)
    for position in places.positions:
        chosen = places.view(inside, position)
        if not np.any(chosen):
            continue
        new = frame.call_elementwise(name, [*state, *(places.view(f, position) for f in filled)])
        state = tuple(np.where(chosen, n, s) for n, s in zip(new, state, strict=True))
    return state


def _running_dimension(places: WindowPlaces) -> int | None:
    """The dimension along which each window ends at its place and reaches back to the first element."""
    found: int | None = None
    for d, (w, size) in enumerate(zip(places.window.dimensions, places.sizes, strict=True)):
        plain = w.stride == w.window_dilation == w.base_dilation == 1 and not w.window_reversal
        if plain and w.size == 1 and not (w.padding_low or w.padding_high):
            continue
        reaches_back = w.size == size == w.padding_low + 1 and not w.padding_high
        if found is not None or not plain or not reaches_back:
            return None
        found = d
    return found


def _running(
    along: int, arrays: Sequence[Array], initial: Sequence[Array], name: str, frame: Frame
) -> tuple[Array, ...]:
    """The same folds, each made of the one before it."""
    rows = [np.moveaxis(a, along, 0) for a in arrays]
    results = [np.empty_like(r) for r in rows]
    state = [np.moveaxis(i, along, 0)[0] for i in initial]
    for at in range(len(rows[0])):
        state = list(frame.call_elementwise(name, [*state, *(r[at] for r in rows)]))
        for result, part in zip(results, state, strict=True):
            result[at] = part
    return tuple(np.moveaxis(r, 0, along) for r in results)


def _inside(places: WindowPlaces) -> Array:
    """Where the padded array has elements of its own."""
    return padded(np.ones(places.sizes, np.bool_), np.zeros((), np.bool_), places.edges)


@prepares("select-and-scatter")
def select_and_scatter(op: SelectAndScatterOp, program: Program) -> Run:
    """Source values combined in where the selected element of each window lies.

    The first element of a window stays selected until `select(selected, other)` is false.
    """
    window = op.window
    select = op.select
    reducer = reducer_of(program, op.scatter)

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        operand, source, initial = inputs
        places = WindowPlaces(window, operand.shape)
        result = np.full(operand.size, initial, dtype=operand.dtype)
        if source.size:
            chosen = selected(places, operand, select, frame).reshape(-1)
            inside = chosen >= 0
            combine_at(
                [result],
                chosen[inside],
                [np.ascontiguousarray(source).reshape(-1)[inside]],
                reducer,
                frame,
            )
        return result.reshape(operand.shape)

    return run


def selected(places: WindowPlaces, operand: Array, select: str, frame: Frame) -> Array:
    """Flat index in the operand of the selected element of every window; -1 for none."""
    numbers = np.arange(operand.size, dtype=np.int64).reshape(operand.shape)
    filled = padded(numbers, np.array(-1), places.edges)
    flat = operand.reshape(-1)
    chosen = np.full(places.counts, -1, dtype=np.int64)
    value = np.zeros(places.counts, dtype=operand.dtype)
    for position in places.positions:
        at = places.view(filled, position)
        other = flat[at]
        (keeps,) = frame.call_elementwise(select, [value, other])
        taken = (at >= 0) & ((chosen < 0) | ~keeps)
        chosen = np.where(taken, at, chosen)
        value = np.where(taken, other, value)
    return chosen
