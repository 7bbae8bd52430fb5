"""Folds, windows and sorts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlirhlo.debug.fuzz.generators.choices import Choices, type_of
from mlirhlo.debug.fuzz.generators.instructions import (
    COMMON,
    Case,
    computation,
    dims,
    executes,
    initial,
    pick_reducer,
    reducer,
    sizes,
)


@executes("reduce")
def reduce(c: Choices, opcode: str) -> Case:
    name, fold = pick_reducer(c)
    shape = c.shape(c.integer(1, 4), 0, 5)
    chosen = c.subset(len(shape), c.integer(1, len(shape)))
    result = [s for d, s in enumerate(shape) if d not in chosen]
    return Case(
        f"{sizes(name, result)} reduce(@p0, @p1), dimensions={dims(chosen)}, to_apply=@f",
        [c.small(name, shape), initial(name, fold)],
        computations=reducer(name, fold),
    )


@dataclass(slots=True)
class RandomWindow:
    """A window with its result sizes and text."""

    text: str
    result: list[int]


def window(
    c: Choices, shape: Sequence[int], base: bool = True, reversal: bool = False
) -> RandomWindow:
    parts: dict[str, list[str]] = {
        "size": [],
        "stride": [],
        "pad": [],
        "lhs_dilate": [],
        "rhs_dilate": [],
    }
    if reversal:
        parts["rhs_reversal"] = []
    result: list[int] = []
    for length in shape:
        size, stride = c.integer(1, 3), c.integer(1, 3)
        low, high = c.integer(0, 2), c.integer(0, 2)
        lhs = c.integer(1, 2) if base else 1
        rhs = c.integer(1, 2)
        full = low + high + max((length - 1) * lhs + 1, 0)
        if full < (size - 1) * rhs + 1:
            size = rhs = 1
        result.append((full - ((size - 1) * rhs + 1)) // stride + 1)
        for key, value in zip(
            parts, (size, stride, f"{low}_{high}", lhs, rhs, c.integer(0, 1)), strict=False
        ):
            parts[key].append(str(value))
    return RandomWindow(
        "{" + " ".join(f"{key}={'x'.join(values)}" for key, values in parts.items()) + "}", result
    )


@executes("reduce-window")
def reduce_window(c: Choices, opcode: str) -> Case:
    name, fold = pick_reducer(c)
    shape = c.shape(c.integer(1, 3), 1, 6)
    w = window(c, shape)
    return Case(
        f"{sizes(name, w.result)} reduce-window(@p0, @p1), window={w.text}, to_apply=@f",
        [c.small(name, shape), initial(name, fold)],
        computations=reducer(name, fold),
    )


@executes("select-and-scatter")
def select_and_scatter(c: Choices, opcode: str) -> Case:
    name = c.pick(("f32", "s32", "bf16"))
    shape = c.shape(c.integer(1, 3), 2, 6)
    # Padding only inside the window: every window then has an element of its own.
    text: dict[str, list[str]] = {"size": [], "stride": [], "pad": []}
    result: list[int] = []
    for length in shape:
        size, stride = c.integer(1, min(3, length)), c.integer(1, 3)
        low, high = c.integer(0, size - 1), c.integer(0, size - 1)
        for key, value in zip(text, (size, stride, f"{low}_{high}"), strict=True):
            text[key].append(str(value))
        result.append((length + low + high - size) // stride + 1)
    body = "{" + " ".join(f"{key}={'x'.join(v)}" for key, v in text.items()) + "}"
    direction = c.pick(("GE", "LE", "GT"))
    # Which of equal elements is selected follows XLA:CPU's own order of visiting.
    size = int(np.prod(shape))
    distinct = c.arranged(np.arange(size), [size])
    distinct = np.argsort(distinct, kind="stable").reshape(shape).astype(type_of(name).dtype)
    select = (
        f"@s {{\n  @c = {name}[] parameter(0)\n  @d = {name}[] parameter(1)\n"
        f"  ROOT @e = pred[] compare(@c, @d), direction={direction}\n}}\n"
    )
    return Case(
        f"{sizes(name, shape)} select-and-scatter(@p0, @p1, @p2), window={body}, "
        "select=@s, scatter=@f",
        [distinct, c.small(name, result), np.zeros((), type_of(name).dtype)],
        computations=reducer(name, "add") + select,
    )


@executes("sort")
def sort(c: Choices, opcode: str) -> Case:
    name = c.pick(("f32", "s32", "bf16", "u8", "s64", "f64"))
    shape = c.shape(c.integer(1, 3), 0, 9)
    dim = c.integer(0, len(shape) - 1)
    kind = ", type=TOTALORDER" if type_of(name).is_float and c.integer(0, 1) else ""
    data = c.values(name, shape, denormals=False) if kind else c.small(name, shape)
    direction = c.pick(("LT", "GT"))
    body = [f"pred[] compare(@a, @b), direction={direction}{kind}"]
    if not kind and c.integer(0, 1):
        body = [
            f"@x = {name}[] multiply(@a, @a)",
            f"@y = {name}[] multiply(@b, @b)",
            "@l = pred[] compare(@x, @y), direction=LT",
            "@e = pred[] compare(@x, @y), direction=EQ",
            f"@m = pred[] compare(@a, @b), direction={direction}",
            "@n = pred[] and(@e, @m)",
            "pred[] or(@l, @n)",
        ]
    end = f"dimensions={{{dim}}}, is_stable=true, to_apply=@f"
    if not c.rarely(3):
        return Case(
            f"{sizes(name, shape)} sort(@p0), {end}",
            [data],
            computations=computation("f", [f"{name}[]"] * 2, *body),
        )
    other = c.pick(COMMON)  # goes where the keys go
    return Case(
        f"({sizes(name, shape)}, {sizes(other, shape)}) sort(@p0, @p1), {end}",
        [data, c.values(other, shape)],
        computations=computation(
            "f", [f"{name}[]", f"{name}[]", f"{other}[]", f"{other}[]"], *body
        ),
    )


@executes("topk")
def topk(c: Choices, opcode: str) -> Case:
    name = c.pick(("f32", "bf16"))
    shape = c.shape(c.integer(1, 2), 1, 9)
    k = c.integer(min(1, shape[-1]), shape[-1])
    result = [*shape[:-1], k]
    # Distinct values: XLA:CPU orders equal ones in its own way.
    order = c.permutation(shape[-1])
    data = np.broadcast_to(np.array(order) - 3, shape).astype(type_of(name).dtype)
    return Case(
        f"({sizes(name, result)}, {sizes('s32', result)}) topk(@p0), k={k}, "
        f"largest={c.pick(('true', 'false'))}",
        [np.ascontiguousarray(data)],
    )


@executes("map")
def map_(c: Choices, opcode: str) -> Case:
    name, fold = pick_reducer(c)
    shape = c.shape(c.integer(0, 3), 0)
    return Case(
        f"{sizes(name, shape)} map(@p0, @p1), dimensions={dims(range(len(shape)))}, to_apply=@f",
        [c.small(name, shape), c.small(name, shape)],
        computations=reducer(name, fold),
    )


@executes("scan")
def scan(c: Choices, opcode: str) -> Case:
    name, fold = pick_reducer(c)
    shape = c.shape(c.integer(1, 3))
    dim = c.integer(0, len(shape) - 1)
    part = sizes(name, [s for d, s in enumerate(shape) if d != dim])
    reverse = ", is_reverse=true" if c.integer(0, 1) else ""
    carry = c.small(name, [s for d, s in enumerate(shape) if d != dim])
    return Case(
        f"({sizes(name, shape)}, {part}) scan(@p0, @p1), dimensions={{{dim}}}, num_carries=1"
        f"{reverse}, to_apply=@f",
        [c.small(name, shape), carry],
        computations=computation(
            "f", [part, part], f"@n = {part} {fold}(@a, @b)", f"({part}, {part}) tuple(@n, @n)"
        ),
    )
