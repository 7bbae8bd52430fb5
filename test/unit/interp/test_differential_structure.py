"""Random instances of the array ops against XLA:CPU: shapes, windows, dimension numbers, reducers.

MLIRHLO_SEED and MLIRHLO_DIFFERENTIAL (a factor) make other and longer runs of the same tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from xla_execution import (
    SEED,
    SIZE,
    XLA,
    Refusal,
    differences,
    random_values,
    type_of,
)

from mlirhlo.dialects.hlo.shapes import ArrayShape, parse_shape
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module

pytestmark = pytest.mark.oracle
pytest.importorskip("jaxlib")

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


def build(cases: Sequence[Case]) -> tuple[str, list[np.ndarray]]:
    """All cases as one program."""
    head, body, inputs = ["HloModule m"], ["ENTRY e {"], list[np.ndarray]()
    results: list[str] = []
    for number, case in enumerate(cases):
        head.append(case.computations.replace("@", f"c{number}_"))
        line = case.line
        for index, array in enumerate(case.inputs):
            shape = sizes(name_of(array), array.shape)
            body.append(f"  c{number}_p{index} = {shape} parameter({len(inputs)})")
            inputs.append(array)
        line = line.replace("@", f"c{number}_")
        body.append(f"  r{number} = {line}")
        results.append(f"r{number}")
    shapes = ", ".join(case.line.rsplit(")", 1)[0].split(" ", 1)[0] for case in cases)
    body += [f"  ROOT t = ({shapes}) tuple({', '.join(results)})", "}"]
    return "\n".join(head + body) + "\n", inputs


def in_xla(cases: Sequence[Case]) -> list[Any]:
    answer = XLA.run(*build(cases))
    if not isinstance(answer, Refusal):
        return list(answer)
    if len(cases) == 1:
        return [answer]
    half = len(cases) // 2
    return [*in_xla(cases[:half]), *in_xla(cases[half:])]


def compare(make: Callable[[Random], Case], count: int, salt: int) -> None:
    """Runs `count` random cases here and in XLA. At least half of them must be legal."""
    cases = [make(Random(SEED + 1000 * salt + i)) for i in range(count * SIZE)]
    wanted = in_xla(cases)
    problems: list[str] = []
    refused = [
        f"{case.line}: {want.reason}"
        for case, want in zip(cases, wanted, strict=True)
        if isinstance(want, Refusal)
    ]
    for case, want in zip(cases, wanted, strict=True):
        if isinstance(want, Refusal):
            continue
        text, inputs = build([case])
        got = run_module(parse_module(text), inputs, check=True)[0]
        shape = parse_shape(case.line.split(" ", 1)[0])
        assert isinstance(shape, ArrayShape)
        if got.shape != want.shape:
            problems.append(f"{case.line}: sizes {got.shape} here, {want.shape} in XLA")
            continue
        wrong = differences(got, want, shape.element_type, case.ulps, case.floor)
        if wrong.size:
            at = wrong[0]
            problems.append(
                f"{text}{wrong.size} differ, first {got.reshape(-1)[at]} here, "
                f"{want.reshape(-1)[at]} in XLA"
            )
    assert not problems, f"seed {SEED}:\n" + "\n".join(problems)
    assert len(refused) <= len(cases) // 2, f"seed {SEED}:\n" + "\n".join(refused)


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
    wide = {"f32": 32, "s32": 32, "u8": 8, "bf16": 16, "s64": 64, "u16": 16, "f16": 16, "s8": 8, "f64": 64}
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
    window = [1 if d in collapsed or d in batching else r.integer(1, operand[d]) for d in range(rank)]
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
        [r.values(name, i.operand), index_values(r, i.indices, r.pick(("s32", "s64", "u8", "u32")))],
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


def window(r: Random, shape: Sequence[int], base: bool = True, reversal: bool = False) -> RandomWindow:
    parts: dict[str, list[str]] = {"size": [], "stride": [], "pad": [], "lhs_dilate": [], "rhs_dilate": []}
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
        for key, value in zip(parts, (size, stride, f"{low}_{high}", lhs, rhs, r.integer(0, 1)), strict=False):
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
    groups, depth, per_group, batch = r.integer(1, 2), r.integer(1, 2), r.integer(1, 2), r.integer(1, 3)
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


@pytest.mark.slow
@pytest.mark.parametrize("family", list(FAMILIES))
def test_random_instances(family: str) -> None:
    make, count = FAMILIES[family]
    compare(make, count, list(FAMILIES).index(family))
