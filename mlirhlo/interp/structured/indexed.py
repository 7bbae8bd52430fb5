"""Gather, scatter and select_and_scatter in numpy."""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowDimension
from mlirhlo.dialects.structured import GatherOp, ScatterOp, SelectAndScatterOp, sizes_of
from mlirhlo.dialects.structured.base import ints_of
from mlirhlo.interp.ops.indexing import as_signed, combine_at
from mlirhlo.interp.ops.windows import WindowPlaces, selected
from mlirhlo.interp.registry import Array
from mlirhlo.interp.structured.bodies import Bodies
from mlirhlo.interp.structured.dense import indices_of, read
from mlirhlo.interp.structured.registry import computes


@computes(GatherOp)
def run_gather(op: GatherOp, arrays: Sequence[Array], bodies: Bodies) -> Sequence[Array]:
    """Indices clamped, added to the offsets, read at once."""
    del bodies
    source, space = arrays[0], op.space
    if 0 in space:
        return [np.empty(space, source.dtype)]
    at = indices_of(op.offset_map, space)
    rows = zip(arrays[1:], op.index_maps, op.indexed, op.largest, strict=True)
    for array, map_, dim, limit in rows:
        at[dim] = at[dim] + np.clip(as_signed(read(array, map_, space)), 0, limit)
    return [np.broadcast_to(source[tuple(at)], space)]


@computes(ScatterOp)
def run_scatter(op: ScatterOp, arrays: Sequence[Array], bodies: Bodies) -> Sequence[Array]:
    """Updates combined one after the other, in row-major order."""
    count = len(op.targets)
    space, sizes = op.space, sizes_of(op.targets[0])
    indices = arrays[count : len(arrays) - count]
    at = indices_of(op.offset_map, space)
    inside = np.ones((1,) * len(space), np.bool_)
    for array, map_, dim, limit in zip(indices, op.index_maps, op.indexed, op.largest, strict=True):
        index = as_signed(read(array, map_, space))
        inside = inside & (index >= 0) & (index <= limit)
        at[dim] = at[dim] + np.clip(index, 0, limit)
    flat = np.zeros((1,) * len(space), np.int64)
    for index, size in zip(at, sizes, strict=True):
        flat = flat * size + index
    chosen = np.broadcast_to(inside, space).reshape(-1)
    places = np.broadcast_to(flat, space).reshape(-1)[chosen]
    values = [update.reshape(-1)[chosen] for update in arrays[len(arrays) - count :]]
    results = [array.flatten() for array in arrays[:count]]
    if places.size:
        combine_at(results, places, values, bodies.reducer(op.combiner), bodies.frame)
    return [result.reshape(sizes) for result in results]


@computes(SelectAndScatterOp)
def run_select_and_scatter(
    op: SelectAndScatterOp, arrays: Sequence[Array], bodies: Bodies
) -> Sequence[Array]:
    """The selected element of every window, then a scatter."""
    operand, source, init = arrays
    result = np.full(operand.size, init, operand.dtype)
    if source.size:
        places = WindowPlaces(_window(op, operand.shape, source.shape), operand.shape)
        chosen = selected(places, operand, bodies.name(op.select), bodies.frame).reshape(-1)
        inside = chosen >= 0
        values = np.ascontiguousarray(source).reshape(-1)[inside]
        combine_at([result], chosen[inside], [values], bodies.reducer(op.combiner), bodies.frame)
    return [result.reshape(operand.shape)]


def _window(op: SelectAndScatterOp, sizes: Sequence[int], counts: Sequence[int]) -> Window:
    """The window with the padding behind that gives these counts."""
    rows = zip(
        ints_of(op.window_sizes),
        ints_of(op.window_strides),
        ints_of(op.padding_low),
        ints_of(op.window_dilations),
        ints_of(op.base_dilations),
        sizes,
        counts,
        strict=True,
    )
    found: list[WindowDimension] = []
    for width, stride, low, dilation, base, size, count in rows:
        reach = (width - 1) * dilation + 1 + (count - 1) * stride
        high = reach - low - ((size - 1) * base + 1 if size else 0)
        found.append(WindowDimension(width, stride, low, high, dilation, base))
    return Window(tuple(found))
