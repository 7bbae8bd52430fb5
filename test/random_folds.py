"""Random folds, windows, sorts, products; and all families of random instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from random_cases import (
    Case,
    Random,
    bitcast_case,
    dims,
    dynamic_slice_case,
    gather_case,
    initial,
    move_case,
    pad_case,
    pick_reducer,
    reducer,
    scatter_case,
    sizes,
)
from xla_execution import type_of

# ---------------------------------------------------------------- folds and windows


def reduce_case(r: Random) -> Case:
    name, opcode = pick_reducer(r)
    shape = r.shape(r.integer(1, 4), 0, 5)
    chosen = r.subset(len(shape), r.integer(1, len(shape)))
    result = [s for d, s in enumerate(shape) if d not in chosen]
    return Case(
        f"{sizes(name, result)} reduce(@p0, @p1), dimensions={dims(chosen)}, to_apply=@f",
        [r.small(name, shape), initial(r, name, opcode)],
        computations=reducer(name, opcode),
    )


@dataclass(slots=True)
class RandomWindow:
    """A window with its result sizes and text."""

    text: str
    result: list[int]


def window(
    r: Random, shape: Sequence[int], base: bool = True, reversal: bool = False
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
        size, stride = r.integer(1, 3), r.integer(1, 3)
        low, high = r.integer(0, 2), r.integer(0, 2)
        lhs = r.integer(1, 2) if base else 1
        rhs = r.integer(1, 2)
        full = low + high + (length - 1) * lhs + 1
        if full < (size - 1) * rhs + 1:
            size = rhs = 1
        result.append((full - ((size - 1) * rhs + 1)) // stride + 1)
        for key, value in zip(
            parts, (size, stride, f"{low}_{high}", lhs, rhs, r.integer(0, 1)), strict=False
        ):
            parts[key].append(str(value))
    return RandomWindow(
        "{" + " ".join(f"{key}={'x'.join(values)}" for key, values in parts.items()) + "}", result
    )


def reduce_window_case(r: Random) -> Case:
    name, opcode = pick_reducer(r)
    shape = r.shape(r.integer(1, 3), 1, 6)
    w = window(r, shape)
    return Case(
        f"{sizes(name, w.result)} reduce-window(@p0, @p1), window={w.text}, to_apply=@f",
        [r.small(name, shape), initial(r, name, opcode)],
        computations=reducer(name, opcode),
    )


def select_and_scatter_case(r: Random) -> Case:
    name = r.pick(("f32", "s32", "bf16"))
    shape = r.shape(r.integer(1, 3), 2, 6)
    # Padding only inside the window: every window then has an element of its own.
    text, result = {"size": [], "stride": [], "pad": []}, []
    for length in shape:
        size, stride = r.integer(1, min(3, length)), r.integer(1, 3)
        low, high = r.integer(0, size - 1), r.integer(0, size - 1)
        for key, value in zip(text, (size, stride, f"{low}_{high}"), strict=True):
            text[key].append(str(value))
        result.append((length + low + high - size) // stride + 1)
    body = "{" + " ".join(f"{key}={'x'.join(v)}" for key, v in text.items()) + "}"
    direction = r.pick(("GE", "LE", "GT"))
    select = (
        f"@s {{\n  @c = {name}[] parameter(0)\n  @d = {name}[] parameter(1)\n"
        f"  ROOT @e = pred[] compare(@c, @d), direction={direction}\n}}\n"
    )
    return Case(
        f"{sizes(name, shape)} select-and-scatter(@p0, @p1, @p2), window={body}, "
        "select=@s, scatter=@f",
        [r.values(name, shape), r.small(name, result), np.zeros((), type_of(name).dtype)],
        computations=reducer(name, "add") + select,
    )


def sort_case(r: Random) -> Case:
    name = r.pick(("f32", "s32", "bf16", "u8", "s64", "f64"))
    shape = r.shape(r.integer(1, 3), 1, 9)
    dim = r.integer(0, len(shape) - 1)
    kind = ", type=TOTALORDER" if type_of(name).is_float and r.integer(0, 1) else ""
    data = r.small(name, shape)
    if kind:
        data = np.where(r.rng.integers(0, 8, tuple(shape)) == 0, data.dtype.type(np.nan), data)
    direction = r.pick(("LT", "GT"))
    body = f"ROOT @r = pred[] compare(@a, @b), direction={direction}{kind}"
    if not kind and r.integer(0, 1):
        body = (
            f"@x = {name}[] multiply(@a, @a)\n  @y = {name}[] multiply(@b, @b)\n"
            f"  @l = pred[] compare(@x, @y), direction=LT\n"
            f"  @e = pred[] compare(@x, @y), direction=EQ\n"
            f"  @m = pred[] compare(@a, @b), direction={direction}\n"
            f"  @n = pred[] and(@e, @m)\n  ROOT @r = pred[] or(@l, @n)"
        )
    return Case(
        f"{sizes(name, shape)} sort(@p0), dimensions={{{dim}}}, is_stable=true, to_apply=@f",
        [data],
        computations=(
            f"@f {{\n  @a = {name}[] parameter(0)\n  @b = {name}[] parameter(1)\n  {body}\n}}\n"
        ),
    )


# ---------------------------------------------------------------- products


def dot_case(r: Random) -> Case:
    pairs = (
        ("f32", "f32", "f32"), ("s32", "s32", "s32"), ("bf16", "bf16", "bf16"), ("u8", "u8", "u8"),
        ("s8", "s8", "s32"), ("bf16", "bf16", "f32"), ("f64", "f64", "f64"), ("c64", "c64", "c64"),
        ("pred", "pred", "pred"), ("f16", "f16", "f16"), ("s64", "s64", "s64"),
        ("f8e4m3fn", "f8e5m2", "f32"), ("f8e5m2", "f8e5m2", "f8e5m2"),
    )  # fmt: skip
    left, right, result = r.pick(pairs)
    batch = r.shape(r.integer(0, 2), 1, 3)
    contracting = r.shape(r.integer(0, 2), 1, 4)
    rows, columns = r.shape(r.integer(0, 2), 1, 3), r.shape(r.integer(0, 2), 1, 3)

    def place(free: list[int]) -> tuple[list[int], list[int], list[int]]:
        """Shape, batch dimensions, contracting dimensions."""
        count = len(batch) + len(contracting) + len(free)
        order = r.permutation(count)
        shape = [0] * count
        for where, size in zip(order, [*batch, *contracting, *sorted(free)], strict=True):
            shape[where] = size
        b, c = order[: len(batch)], order[len(batch) : len(batch) + len(contracting)]
        return shape, b, c

    lhs, lb, lc = place(rows)
    rhs, rb, rc = place(columns)
    free_l = [s for d, s in enumerate(lhs) if d not in (*lb, *lc)]
    free_r = [s for d, s in enumerate(rhs) if d not in (*rb, *rc)]
    return Case(
        f"{sizes(result, [*batch, *free_l, *free_r])} dot(@p0, @p1), lhs_batch_dims={dims(lb)}, "
        f"lhs_contracting_dims={dims(lc)}, rhs_batch_dims={dims(rb)}, "
        f"rhs_contracting_dims={dims(rc)}",
        [r.small(left, lhs), r.small(right, rhs)],
    )


def convolution_case(r: Random) -> Case:
    name = r.pick(("f32", "bf16", "f64", "f32"))
    spatial = r.integer(1, 3)
    inputs = r.shape(spatial, 2, 6)
    w = window(r, inputs, reversal=r.integer(0, 1) == 1)
    kernel = [int(s) for s in w.text.split("size=")[1].split(" ")[0].rstrip("}").split("x")]
    groups, depth, per_group, batch = (
        r.integer(1, 2),
        r.integer(1, 2),
        r.integer(1, 2),
        r.integer(1, 3),
    )
    by_batch = groups > 1 and r.integer(0, 1) == 1
    features = depth if by_batch else depth * groups
    outputs = per_group * groups
    result_batch = batch
    if by_batch:
        batch *= groups

    def labels(names: str, wanted: dict[str, int], order: list[int]) -> tuple[str, list[int]]:
        marks = [names[0], names[1], *map(str, range(spatial))]
        text = "".join(marks[i] for i in order)
        return text, [wanted[c] for c in text]

    order = [r.permutation(spatial + 2) for _ in range(3)]
    at = {str(k): s for k, s in enumerate(inputs)}
    lhs, lhs_shape = labels("bf", {"b": batch, "f": features, **at}, order[0])
    at = {str(k): s for k, s in enumerate(kernel)}
    rhs, rhs_shape = labels("io", {"i": depth, "o": outputs, **at}, order[1])
    at = {str(k): s for k, s in enumerate(w.result)}
    out, out_shape = labels("bf", {"b": result_batch, "f": outputs, **at}, order[2])
    group = f", {'batch' if by_batch else 'feature'}_group_count={groups}" if groups > 1 else ""
    return Case(
        f"{sizes(name, out_shape)} convolution(@p0, @p1), window={w.text}, "
        f"dim_labels={lhs}_{rhs}->{out}{group}",
        [r.small(name, lhs_shape), r.small(name, rhs_shape)],
    )


FAMILIES: dict[str, tuple[Callable[[Random], Case], int]] = {
    "moves": (move_case, 40),
    "pad": (pad_case, 30),
    "bitcast-convert": (bitcast_case, 30),
    "dynamic-slice": (dynamic_slice_case, 30),
    "gather": (gather_case, 60),
    "scatter": (scatter_case, 60),
    "reduce": (reduce_case, 40),
    "reduce-window": (reduce_window_case, 40),
    "select-and-scatter": (select_and_scatter_case, 20),
    "sort": (sort_case, 30),
    "dot": (dot_case, 50),
    "convolution": (convolution_case, 40),
}
