"""Gather and scatter in every form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlirhlo.debug.fuzz.generators.choices import Choices, type_of
from mlirhlo.debug.fuzz.generators.instructions import (
    COMMON,
    Case,
    dims,
    executes,
    pick_reducer,
    reducer,
    sizes,
)


@dataclass(slots=True)
class Indexing:
    """Dimension numbers shared by gather and scatter."""

    operand: list[int]
    indices: list[int]
    window: list[int]
    """Slice sizes."""
    collapsed: list[int]
    batching: list[int]
    indices_batching: list[int]
    index_map: list[int]
    vector_dim: int
    offset_dims: list[int]
    result: list[int]


def indexing(c: Choices) -> Indexing:
    rank = c.integer(1, 4)
    operand = c.shape(rank, 1, 4)
    batch_count = c.integer(0, min(1, rank - 1))
    order = c.permutation(rank)
    batching = sorted(order[:batch_count])
    rest = order[batch_count:]
    index_map = rest[: c.integer(1, len(rest))]
    collapsed = sorted(d for d in rest if c.integer(0, 1) and operand[d])
    window = [
        min(1, operand[d])
        if d in collapsed or d in batching
        else c.integer(min(1, operand[d]), operand[d])
        for d in range(rank)
    ]
    batch_rank = c.integer(batch_count, batch_count + 2)
    batch = c.shape(batch_rank, 1, 4)
    places = c.permutation(batch_rank)[:batch_count]
    for own, place in zip(batching, places, strict=True):
        batch[place] = operand[own]
    vector_dim = c.integer(0, batch_rank)
    indices = [*batch[:vector_dim], len(index_map), *batch[vector_dim:]]
    if len(index_map) == 1 and c.integer(0, 1):
        vector_dim, indices = batch_rank, batch  # the implicit form
    indices_batching = [p + (vector_dim <= p and len(indices) > batch_rank) for p in places]
    kept = [d for d in range(rank) if d not in collapsed and d not in batching]
    total = batch_rank + len(kept)
    offset_dims = c.subset(total, len(kept))
    result = [0] * total
    for place, d in zip(offset_dims, kept, strict=True):
        result[place] = window[d]
    others = [d for d in range(total) if d not in offset_dims]
    for place, size in zip(others, batch, strict=True):
        result[place] = size
    return Indexing(
        operand, indices, window, collapsed, batching, indices_batching, index_map, vector_dim,
        offset_dims, result,
    )  # fmt: skip


def index_values(c: Choices, shape: Sequence[int], name: str) -> np.ndarray:
    low = 0 if type_of(name).is_unsigned else -2
    return c.arranged(np.arange(6 - low).astype(np.int64) + low, shape).astype(type_of(name).dtype)


@executes("gather")
def gather(c: Choices, opcode: str) -> Case:
    i, name = indexing(c), c.pick(COMMON)
    batching = (
        f", operand_batching_dims={dims(i.batching)}, "
        f"start_indices_batching_dims={dims(i.indices_batching)}"
        if i.batching
        else ""
    )
    return Case(
        f"{sizes(name, i.result)} gather(@p0, @p1), offset_dims={dims(i.offset_dims)}, "
        f"collapsed_slice_dims={dims(i.collapsed)}, start_index_map={dims(i.index_map)}"
        f"{batching}, index_vector_dim={i.vector_dim}, slice_sizes={dims(i.window)}",
        [
            c.values(name, i.operand),
            index_values(c, i.indices, c.pick(("s32", "s64", "u8", "u32"))),
        ],
    )


@executes("scatter")
def scatter(c: Choices, opcode: str) -> Case:
    i = indexing(c)
    name, fold = pick_reducer(c)
    batching = (
        f", input_batching_dims={dims(i.batching)}, "
        f"scatter_indices_batching_dims={dims(i.indices_batching)}"
        if i.batching
        else ""
    )
    computation = reducer(name, fold)
    if c.integer(0, 3) == 0:
        computation = computation.replace(f"{fold}(@a, @b)", "copy(@b)")
    elif c.integer(0, 3) == 0 and name in ("f32", "s32"):
        computation = computation.replace(
            f"  ROOT @r = {name}[] {fold}(@a, @b)",
            f"  @s = {name}[] subtract(@a, @b)\n  ROOT @r = {name}[] add(@s, @s)",
        )
    return Case(
        f"{sizes(name, i.operand)} scatter(@p0, @p1, @p2), update_window_dims={dims(i.offset_dims)}, "
        f"inserted_window_dims={dims(i.collapsed)}, scatter_dims_to_operand_dims={dims(i.index_map)}"
        f"{batching}, index_vector_dim={i.vector_dim}, to_apply=@f",
        [
            c.small(name, i.operand),
            index_values(c, i.indices, c.pick(("s32", "s64"))),
            c.small(name, i.result),
        ],
        computations=computation,
    )
