"""Instructions that move elements."""

from __future__ import annotations

import math

import numpy as np

from mlirhlo.debug.fuzz.generators.choices import Choices, type_of
from mlirhlo.debug.fuzz.generators.instructions import (
    COMMON,
    Case,
    arguments,
    dims,
    executes,
    sizes,
)

BITS = {"f32": 32, "s32": 32, "u8": 8, "bf16": 16, "s64": 64, "u16": 16, "f16": 16, "s8": 8, "f64": 64}  # fmt: skip


@executes("pad")
def pad(c: Choices, opcode: str) -> Case:
    rank, name = c.integer(1, 3), c.pick(COMMON)
    shape = c.shape(rank, 0)
    edges = [(c.integer(-2, 3), c.integer(-2, 3), c.integer(0, 2)) for _ in range(rank)]
    result = [
        low + high + size + inner * max(size - 1, 0)
        for size, (low, high, inner) in zip(shape, edges, strict=True)
    ]
    edges = [(0, 0, 0) if full < 0 else edge for full, edge in zip(result, edges, strict=True)]
    result = [s if f < 0 else f for s, f in zip(shape, result, strict=True)]
    text = "x".join("_".join(map(str, edge)) for edge in edges)
    return Case(
        f"{sizes(name, result)} pad(@p0, @p1), padding={text}",
        [c.values(name, shape), c.values(name, ())],
    )


@executes("transpose")
def transpose(c: Choices, opcode: str) -> Case:
    name, shape = c.pick(COMMON), c.shape(c.integer(0, 4), 0)
    order = c.permutation(len(shape))
    result = [shape[d] for d in order]
    return Case(
        f"{sizes(name, result)} transpose(@p0), dimensions={dims(order)}", [c.values(name, shape)]
    )


@executes("reverse")
def reverse(c: Choices, opcode: str) -> Case:
    name, shape = c.pick(COMMON), c.shape(c.integer(0, 4), 0)
    chosen = c.subset(len(shape), c.integer(0, len(shape)))
    return Case(
        f"{sizes(name, shape)} reverse(@p0), dimensions={dims(chosen)}", [c.values(name, shape)]
    )


@executes("slice")
def slice_(c: Choices, opcode: str) -> Case:
    name, shape = c.pick(COMMON), c.shape(c.integer(0, 4), 0)
    parts, result = list[str](), list[int]()
    for size in shape:
        start = c.integer(0, size)
        limit, stride = c.integer(start, size), c.integer(1, 3)
        parts.append(f"[{start}:{limit}:{stride}]")
        result.append(-(-(limit - start) // stride))
    return Case(
        f"{sizes(name, result)} slice(@p0), slice={{{', '.join(parts)}}}", [c.values(name, shape)]
    )


@executes("broadcast")
def broadcast(c: Choices, opcode: str) -> Case:
    name, shape = c.pick(COMMON), c.shape(c.integer(0, 3), 0)
    rank = len(shape) + c.integer(0, 2)
    places = c.subset(rank, len(shape))
    result = c.shape(rank, 0)
    for own, place in enumerate(places):
        result[place] = shape[own]
    return Case(
        f"{sizes(name, result)} broadcast(@p0), dimensions={dims(places)}", [c.values(name, shape)]
    )


@executes("concatenate")
def concatenate(c: Choices, opcode: str) -> Case:
    name, shape = c.pick(COMMON), c.shape(c.integer(1, 4))
    dim = c.integer(0, len(shape) - 1)
    parts = [shape.copy() for _ in range(c.integer(1, 3))]
    for part in parts:
        part[dim] = c.integer(0, 3)
    result = shape.copy()
    result[dim] = sum(part[dim] for part in parts)
    inputs = [c.values(name, part) for part in parts]
    return Case(
        f"{sizes(name, result)} concatenate({arguments(len(parts))}), dimensions={{{dim}}}", inputs
    )


@executes("reshape", "dynamic-reshape")
def reshape(c: Choices, opcode: str) -> Case:
    name, shape = c.pick(COMMON), c.shape(c.integer(0, 4))
    groups: list[int] = []
    for size in shape:  # neighbours merged, ones put in between
        if groups and c.integer(0, 1):
            groups[-1] *= size
        else:
            groups += [1] * c.integer(0, 1) + [size]
    result = [math.prod(shape)] if c.rarely(4) else groups
    data = c.values(name, shape)
    if opcode == "reshape":
        return Case(f"{sizes(name, result)} reshape(@p0)", [data])
    numbers = [np.array(size, np.int32) for size in result]
    return Case(
        f"{sizes(name, result)} dynamic-reshape({arguments(1 + len(numbers))})", [data, *numbers]
    )


@executes("iota")
def iota(c: Choices, opcode: str) -> Case:
    name, shape = c.pick([n for n in COMMON if n != "pred"]), c.shape(c.integer(1, 4), 0)
    return Case(f"{sizes(name, shape)} iota(), iota_dimension={c.integer(0, len(shape) - 1)}", [])


@executes("bitcast-convert")
def bitcast_convert(c: Choices, opcode: str) -> Case:
    shape = c.shape(c.integer(0, 3), 0)
    source, target = c.pick(list(BITS)), c.pick(list(BITS))
    result = [*shape]
    if BITS[source] > BITS[target]:
        result.append(BITS[source] // BITS[target])
    elif BITS[source] < BITS[target]:
        shape.append(BITS[target] // BITS[source])
    return Case(f"{sizes(target, result)} bitcast-convert(@p0)", [c.values(source, shape)])


def starts(c: Choices, rank: int) -> list[np.ndarray]:
    index = c.pick(("s32", "u8", "s64", "u64"))
    low = 0 if index.startswith("u") else -3
    return [np.array(c.integer(low, 6), type_of(index).dtype) for _ in range(rank)]


@executes("dynamic-slice")
def dynamic_slice(c: Choices, opcode: str) -> Case:
    name, shape = c.pick(COMMON), c.shape(c.integer(0, 3), 0)
    window = [c.integer(0, size) for size in shape]
    indices = starts(c, len(shape))
    return Case(
        f"{sizes(name, window)} dynamic-slice({arguments(1 + len(shape))}), "
        f"dynamic_slice_sizes={dims(window)}",
        [c.values(name, shape), *indices],
    )


@executes("dynamic-update-slice")
def dynamic_update_slice(c: Choices, opcode: str) -> Case:
    name, shape = c.pick(COMMON), c.shape(c.integer(0, 3), 0)
    window = [c.integer(0, size) for size in shape]
    indices = starts(c, len(shape))
    return Case(
        f"{sizes(name, shape)} dynamic-update-slice({arguments(2 + len(shape))})",
        [c.values(name, shape), c.values(name, window), *indices],
    )


@executes("get-dimension-size", "set-dimension-size")
def dimension_size(c: Choices, opcode: str) -> Case:
    """Of an array with a dynamic size; a fold and a size show it."""
    shape = c.shape(c.integer(1, 3))
    dim = c.integer(0, len(shape) - 1)
    data, size = c.small("s32", shape), np.array(c.integer(0, shape[dim]), np.int32)
    bounded = [f"<={s}" if d == dim else str(s) for d, s in enumerate(shape)]
    set_size = f"s32[{','.join(bounded)}] set-dimension-size(@p0, @p1), dimensions={{{dim}}}"
    if opcode == "get-dimension-size":
        line = f"s32[] get-dimension-size(@d), dimensions={{{dim}}}"
        return Case(line, [data, size], before=(f"@d = {set_size}",))
    every = dims(range(len(shape)))
    return Case(
        f"s32[] reduce(@d, @z), dimensions={every}, to_apply=@f",
        [data, size],
        computations=(
            "@f {\n  @a = s32[] parameter(0)\n  @b = s32[] parameter(1)\n"
            "  ROOT @r = s32[] add(@a, @b)\n}\n"
        ),
        before=(f"@d = {set_size}", "@z = s32[] constant(0)"),
    )
