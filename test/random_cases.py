"""Random instructions with inputs: moves, slices, gather, scatter; see `random_folds` for the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xla_execution import random_values, type_of

COMMON = ("f32", "s32", "bf16", "u8", "pred", "f64", "c64", "s64", "f16")


@dataclass(slots=True)
class Case:
    """One instruction `shape opcode(@0, @1), …` with its inputs."""

    line: str
    inputs: list[np.ndarray]
    ulps: float = 0.0
    floor: float = 0.0
    computations: str = ""
    parameters: list[str] = field(default_factory=list)


class Random:
    """Draws for one case."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        """Both ends included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(0, len(options)))]

    def shape(self, rank: int, low: int = 1, high: int = 5) -> list[int]:
        return [self.integer(low, high) for _ in range(rank)]

    def values(self, name: str, shape: Sequence[int]) -> np.ndarray:
        return random_values(type_of(name), shape, self.rng)

    def small(self, name: str, shape: Sequence[int]) -> np.ndarray:
        """Small integers: their sums are exact in every type."""
        low = 0 if type_of(name).is_unsigned or name == "pred" else -3
        values = self.rng.integers(low, 2 if name == "pred" else 4, tuple(shape))
        return values.astype(type_of(name).dtype)

    def permutation(self, count: int) -> list[int]:
        return [int(i) for i in self.rng.permutation(count)]

    def subset(self, count: int, size: int) -> list[int]:
        return sorted(self.permutation(count)[:size])


def dims(values: Sequence[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def sizes(name: str, shape: Sequence[int]) -> str:
    return f"{name}[{','.join(map(str, shape))}]"


def name_of(array: np.ndarray) -> str:
    from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES

    return next(r.name for r in PRIMITIVE_TYPES.values() if r.is_array and r.dtype == array.dtype)


REDUCERS = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


def reducer(name: str, opcode: str) -> str:
    return (
        f"@f {{\n  @a = {name}[] parameter(0)\n  @b = {name}[] parameter(1)\n"
        f"  ROOT @r = {name}[] {opcode}(@a, @b)\n}}\n"
    )


def pick_reducer(r: Random) -> tuple[str, str]:
    """Element type and opcode that go together."""
    name = r.pick(COMMON)
    type_ = type_of(name)
    options = REDUCERS if type_.is_integer or name == "pred" else REDUCERS[:4]
    options = ("add", "multiply") if type_.is_complex else options
    return name, r.pick(options)


def initial(r: Random, name: str, opcode: str) -> np.ndarray:
    """An initial value; XLA wants one that leaves others as they are."""
    type_ = type_of(name)
    if opcode in ("add", "or", "xor"):
        value: Any = 0
    elif opcode == "multiply":
        value = 1
    elif opcode == "and":
        value = True if name == "pred" else ((1 << type_.bits) - 1 if type_.is_unsigned else -1)
    elif name == "pred":
        value = opcode == "minimum"
    elif type_.is_integer:
        info = np.iinfo(type_.dtype)
        value = info.min if opcode == "maximum" else info.max
    else:
        value = -np.inf if opcode == "maximum" else np.inf
    return np.array(value).astype(type_.dtype)


# ---------------------------------------------------------------- moves


def pad_case(r: Random) -> Case:
    rank, name = r.integer(1, 3), r.pick(COMMON)
    shape = r.shape(rank)
    edges = [(r.integer(-2, 3), r.integer(-2, 3), r.integer(0, 2)) for _ in range(rank)]
    result = [
        low + high + size + inner * max(size - 1, 0)
        for size, (low, high, inner) in zip(shape, edges, strict=True)
    ]
    edges = [(0, 0, 0) if full < 1 else edge for full, edge in zip(result, edges, strict=True)]
    result = [s if f < 1 else f for s, f in zip(shape, result, strict=True)]
    text = "x".join("_".join(map(str, edge)) for edge in edges)
    return Case(
        f"{sizes(name, result)} pad(@p0, @p1), padding={text}",
        [r.values(name, shape), r.values(name, ())],
    )


def move_case(r: Random) -> Case:
    rank, name = r.integer(1, 4), r.pick(COMMON)
    shape = r.shape(rank)
    data = r.values(name, shape)
    kind = r.pick(("transpose", "reverse", "slice", "broadcast", "concatenate", "reshape", "iota"))
    if kind == "transpose":
        order = r.permutation(rank)
        result = [shape[d] for d in order]
        return Case(f"{sizes(name, result)} transpose(@p0), dimensions={dims(order)}", [data])
    if kind == "reverse":
        chosen = r.subset(rank, r.integer(1, rank))
        return Case(f"{sizes(name, shape)} reverse(@p0), dimensions={dims(chosen)}", [data])
    if kind == "slice":
        parts, result = [], []
        for size in shape:
            start = r.integer(0, size - 1)
            limit, stride = r.integer(start + 1, size), r.integer(1, 3)
            parts.append(f"[{start}:{limit}:{stride}]")
            result.append(-(-(limit - start) // stride))
        return Case(f"{sizes(name, result)} slice(@p0), slice={{{', '.join(parts)}}}", [data])
    if kind == "broadcast":
        more = r.integer(0, 2)
        places = r.subset(rank + more, rank)
        result = r.shape(rank + more)
        for own, place in enumerate(places):
            result[place] = shape[own]
        return Case(f"{sizes(name, result)} broadcast(@p0), dimensions={dims(places)}", [data])
    if kind == "concatenate":
        dim = r.integer(0, rank - 1)
        others = [shape.copy() for _ in range(r.integer(1, 2))]
        for other in others:
            other[dim] = r.integer(0, 3)
        result = shape.copy()
        result[dim] += sum(other[dim] for other in others)
        names = ", ".join(f"@p{i}" for i in range(len(others) + 1))
        inputs = [data, *(r.values(name, other) for other in others)]
        return Case(f"{sizes(name, result)} concatenate({names}), dimensions={{{dim}}}", inputs)
    if kind == "reshape":
        return Case(f"{sizes(name, [math.prod(shape)])} reshape(@p0)", [data])
    name = r.pick([n for n in COMMON if n != "pred"])
    return Case(f"{sizes(name, shape)} iota(), iota_dimension={r.integer(0, rank - 1)}", [])


def bitcast_case(r: Random) -> Case:
    shape = r.shape(r.integer(1, 3))
    wide = {
        "f32": 32,
        "s32": 32,
        "u8": 8,
        "bf16": 16,
        "s64": 64,
        "u16": 16,
        "f16": 16,
        "s8": 8,
        "f64": 64,
    }
    source, target = r.pick(list(wide)), r.pick(list(wide))
    ratio = wide[source] / wide[target]
    result = [*shape]
    if ratio > 1:
        result = [*shape, int(ratio)]
    elif ratio < 1:
        shape = [*shape, int(1 / ratio)]
    data = r.small(source, shape) if type_of(source).is_float else r.values(source, shape)
    if type_of(target).is_float:  # no NaN payloads, no denormals
        data = r.small(target, result).view(np.uint8).reshape(-1)
        data = np.frombuffer(data.tobytes(), type_of(source).dtype).reshape(shape)
    return Case(f"{sizes(target, result)} bitcast-convert(@p0)", [data])


def dynamic_slice_case(r: Random) -> Case:
    rank, name = r.integer(1, 3), r.pick(COMMON)
    shape = r.shape(rank)
    window = [r.integer(1, size) for size in shape]
    index = r.pick(("s32", "u8", "s64"))
    low = 0 if index == "u8" else -3
    starts = [np.array(r.integer(low, 6), type_of(index).dtype) for _ in range(rank)]
    names = ", ".join(f"@p{i + 1}" for i in range(rank))
    if r.integer(0, 1):
        return Case(
            f"{sizes(name, window)} dynamic-slice(@p0, {names}), dynamic_slice_sizes={dims(window)}",
            [r.values(name, shape), *starts],
        )
    names = ", ".join(f"@p{i + 2}" for i in range(rank))
    return Case(
        f"{sizes(name, shape)} dynamic-update-slice(@p0, @p1, {names})",
        [r.values(name, shape), r.values(name, window), *starts],
    )


# ---------------------------------------------------------------- gather and scatter


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


def indexing(r: Random) -> Indexing:
    rank = r.integer(1, 4)
    operand = r.shape(rank, 1, 4)
    batch_count = r.integer(0, min(1, rank - 1))
    order = r.permutation(rank)
    batching = sorted(order[:batch_count])
    rest = order[batch_count:]
    index_map = rest[: r.integer(1, len(rest))]
    collapsed = sorted(d for d in rest if r.integer(0, 1))
    window = [
        1 if d in collapsed or d in batching else r.integer(1, operand[d]) for d in range(rank)
    ]
    batch_rank = r.integer(batch_count, batch_count + 2)
    batch = r.shape(batch_rank, 1, 4)
    places = r.permutation(batch_rank)[:batch_count]
    for own, place in zip(batching, places, strict=True):
        batch[place] = operand[own]
    vector_dim = r.integer(0, batch_rank)
    indices = [*batch[:vector_dim], len(index_map), *batch[vector_dim:]]
    if len(index_map) == 1 and r.integer(0, 1):
        vector_dim, indices = batch_rank, batch  # the implicit form
    indices_batching = [p + (vector_dim <= p and len(indices) > batch_rank) for p in places]
    kept = [d for d in range(rank) if d not in collapsed and d not in batching]
    total = batch_rank + len(kept)
    offset_dims = r.subset(total, len(kept))
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


def index_values(r: Random, shape: Sequence[int], name: str) -> np.ndarray:
    low = 0 if type_of(name).is_unsigned else -2
    return r.rng.integers(low, 6, tuple(shape)).astype(type_of(name).dtype)


def gather_case(r: Random) -> Case:
    i, name = indexing(r), r.pick(COMMON)
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
            r.values(name, i.operand),
            index_values(r, i.indices, r.pick(("s32", "s64", "u8", "u32"))),
        ],
    )


def scatter_case(r: Random) -> Case:
    i = indexing(r)
    name, opcode = pick_reducer(r)
    batching = (
        f", input_batching_dims={dims(i.batching)}, "
        f"scatter_indices_batching_dims={dims(i.indices_batching)}"
        if i.batching
        else ""
    )
    computation = reducer(name, opcode)
    if r.integer(0, 3) == 0:
        computation = computation.replace(f"{opcode}(@a, @b)", "copy(@b)")
    elif r.integer(0, 3) == 0 and name in ("f32", "s32"):
        computation = computation.replace(
            f"  ROOT @r = {name}[] {opcode}(@a, @b)",
            f"  @s = {name}[] subtract(@a, @b)\n  ROOT @r = {name}[] add(@s, @s)",
        )
    return Case(
        f"{sizes(name, i.operand)} scatter(@p0, @p1, @p2), update_window_dims={dims(i.offset_dims)}, "
        f"inserted_window_dims={dims(i.collapsed)}, scatter_dims_to_operand_dims={dims(i.index_map)}"
        f"{batching}, index_vector_dim={i.vector_dim}, to_apply=@f",
        [
            r.small(name, i.operand),
            index_values(r, i.indices, r.pick(("s32", "s64"))),
            r.small(name, i.result),
        ],
        computations=computation,
    )
