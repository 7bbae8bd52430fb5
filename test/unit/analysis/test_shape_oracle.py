"""Inferred shapes against XLA's: instructions without their shapes, read by both.

Each opcode gets random operands and attributes, most of them nearly right. Both sides must infer
the same shape, layout included, or both refuse. `MLIRHLO_SEED` sets the seed; it is printed.
"""

from __future__ import annotations

import faulthandler
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import oracle
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from support import SEED

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.formats.hlo_text import parse_module

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

EXAMPLES = int(os.environ.get("MLIRHLO_EXAMPLES", "4"))
"""Batches an opcode, of up to 40 instructions each."""

TYPES = sorted(name for name, row in PRIMITIVE_TYPES.items() if row.is_array)
FLOATS = ("f32", "bf16", "f64", "f16", "f8e4m3fn", "f8e5m2")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Case:
    """An instruction without shape, its operands' shapes, the computations it calls."""

    operands: tuple[str, ...]
    body: str
    computations: str = ""

    def __str__(self) -> str:
        lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(self.operands)]
        return "\n".join(
            [
                "HloModule m",
                self.computations,
                "ENTRY e {",
                *lines,
                f"  ROOT r = {self.body}",
                "}",
                "",
            ]
        )


class Source:
    """Random choices, shrunk by hypothesis."""

    def __init__(self, draw: Callable[[st.SearchStrategy[T]], T]) -> None:
        self._draw = draw

    def pick(self, choices: Sequence[T]) -> T:
        """One of `choices`; the first is the simplest."""
        return choices[self.number(0, len(choices) - 1)]

    def number(self, low: int, high: int) -> int:
        """An integer from `low` to `high`."""
        draw: Callable[[st.SearchStrategy[int]], int] = self._draw  # type: ignore[assignment]
        return draw(st.integers(low, high))

    def rarely(self, one_in: int = 10) -> bool:
        """True once in so many times."""
        return self.number(0, one_in - 1) == one_in - 1

    def size(self) -> int:
        """A size, mostly small and positive."""
        return self.pick((2, 3, 4, 1, 5, 0))

    def sizes(self, low: int = 0, high: int = 3) -> list[int]:
        """Sizes of a random rank."""
        return [self.size() for _ in range(self.number(low, high))]

    def near(self, sizes: Sequence[int]) -> list[int]:
        """`sizes`, seldom with one changed, taken away or put in."""
        changed = list(sizes)
        if self.rarely(8):
            kind = self.number(0, 2)
            at = self.number(0, max(len(changed) - 1, 0))
            if kind == 0 and changed:
                changed[at] = self.size()
            elif kind == 1 and changed:
                del changed[at]
            else:
                changed.insert(at, self.size())
        return changed

    def shape(self, sizes: Sequence[int], type_: str) -> str:
        """A shape of these sizes, some of them dynamic, seldom in another layout."""
        dims = [str(s) for s in sizes]
        if self.rarely(4):
            for dim in range(len(dims)):
                kind = self.number(0, 5)
                dims[dim] = f"<={dims[dim]}" if kind in (4, 5) else "?" if kind == 3 else dims[dim]
        layout = ""
        if sizes and self.rarely(3):
            order = list(range(len(sizes)))
            for at in range(len(order) - 1, 0, -1):
                other = self.number(0, at)
                order[at], order[other] = order[other], order[at]
            layout = "{" + ",".join(map(str, order)) + "}"
        if self.rarely(60):
            return self.pick(("token[]", "(f32[2])", "()"))
        return f"{type_}[{','.join(dims)}]{layout}"

    def type(self, mostly: str = "f32") -> str:
        """An element type, mostly the given one."""
        return self.pick(TYPES) if self.rarely(6) else mostly

    def dims(self, rank: int, count: int | None = None) -> list[int]:
        """Different dimension numbers of a rank, seldom wrong."""
        order = list(range(rank))
        for at in range(len(order) - 1, 0, -1):
            other = self.number(0, at)
            order[at], order[other] = order[other], order[at]
        found = order[: self.number(0, rank) if count is None else count]
        if self.rarely(10):
            found.append(self.number(-1, rank))
        return found


def braces(values: Sequence[object]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def computation(name: str, parameters: Sequence[str], root: str) -> str:
    lines = [f"  {name}.{i} = {p} parameter({i})" for i, p in enumerate(parameters)]
    return "\n".join([f"{name} {{", *lines, f"  ROOT {name}.r = {root}", "}", ""])


def reducer(s: Source, type_: str, count: int = 1) -> str:
    types = [s.type(type_) if s.rarely(8) else type_ for _ in range(2 * count)]
    parameters = [f"{t}[]" for t in types]
    if count == 1:
        return computation("f", parameters, f"{types[0]}[] add(f.0, f.1)")
    shapes = ", ".join(parameters[:count])
    return computation(
        "f", parameters, f"({shapes}) tuple({', '.join(f'f.{i}' for i in range(count))})"
    )


GENERATORS: dict[str, Callable[[Source, str], Case]] = {}


def generates(
    *opcodes: str,
) -> Callable[[Callable[[Source, str], Case]], Callable[[Source, str], Case]]:
    def register(function: Callable[[Source, str], Case]) -> Callable[[Source, str], Case]:
        GENERATORS.update(dict.fromkeys(opcodes, function))
        return function

    return register


UNARY = [
    n for n, r in OPCODES.items() if r.elementwise and r.arity == 1 and r.infers and not r.newer
]
BINARY = [n for n, r in OPCODES.items() if r.elementwise and r.arity == 2 and r.infers]


@generates(*UNARY)
def unary(s: Source, opcode: str) -> Case:
    return Case((s.shape(s.sizes(), s.pick(TYPES)),), f"{opcode}(p0)")


@generates(*BINARY)
def binary(s: Source, opcode: str) -> Case:
    sizes, type_ = s.sizes(), s.pick(TYPES) if s.rarely(2) else s.pick(FLOATS)
    other = s.near(sizes) if not s.rarely(6) else []
    if s.rarely(5):
        other = [s.pick((size, 1)) for size in sizes]
    operands = (s.shape(sizes, type_), s.shape(other, s.type(s.pick((type_, s.pick(FLOATS))))))
    if s.rarely(2):
        operands = operands[::-1]
    extra = f", direction={s.pick(('EQ', 'LT'))}" if opcode == "compare" else ""
    return Case(operands, f"{opcode}(p0, p1){extra}")


@generates("select", "clamp")
def ternary(s: Source, opcode: str) -> Case:
    sizes, type_ = s.sizes(), s.pick(FLOATS)
    first = s.type("pred" if opcode == "select" else type_)
    parts = [
        s.shape([] if s.rarely(3) else s.near(sizes), first),
        s.shape(sizes, type_),
        s.shape([] if s.rarely(5) else s.near(sizes), s.type(type_)),
    ]
    return Case(tuple(parts), f"{opcode}(p0, p1, p2)")


@generates("broadcast", "reverse", "transpose")
def with_dimensions(s: Source, opcode: str) -> Case:
    sizes = s.sizes()
    numbers = s.dims(len(sizes), len(sizes) if opcode == "transpose" else None)
    return Case((s.shape(sizes, s.type()),), f"{opcode}(p0), dimensions={braces(numbers)}")


@generates("concatenate")
def concatenate(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1)
    dim = s.number(0, len(sizes) - 1)
    operands: list[str] = []
    for _ in range(s.number(1, 3)):
        mine = list(sizes)
        mine[dim] = s.size()
        operands.append(s.shape(s.near(mine), s.type()))
    if s.rarely():
        dim = s.number(-1, len(sizes))
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    return Case(tuple(operands), f"concatenate({names}), dimensions={{{dim}}}")


@generates("pad")
def pad(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1)
    edges = [f"{s.number(-2, 3)}_{s.number(-2, 3)}_{s.number(0, 2)}" for _ in s.near(sizes)]
    value = s.shape([1] if s.rarely() else [], s.type())
    return Case(
        (s.shape(sizes, s.type()), value), f"pad(p0, p1), padding={'x'.join(edges or ['0_0'])}"
    )


@generates("get-dimension-size", "set-dimension-size")
def dimension_size(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1)
    dim = s.number(-1, len(sizes)) if s.rarely(4) else s.number(0, len(sizes) - 1)
    operands = [s.shape(sizes, s.type())]
    if opcode.startswith("set"):
        operands.append(s.shape([1] if s.rarely() else [], s.type("s32")))
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    return Case(tuple(operands), f"{opcode}({names}), dimensions={{{dim}}}")


@generates("gather")
def gather(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1)
    rank = len(sizes)
    indices = s.sizes(0, 2)
    starts = s.dims(rank)
    batching = sorted({d for d in s.dims(rank) if s.rarely(3)})
    collapsed = sorted({d for d in s.dims(rank) if d not in batching})
    slices = [
        min(size, 1) if d in collapsed or d in batching else s.number(0, size)
        for d, size in enumerate(sizes)
    ]
    vector = s.number(0, len(indices))
    indices.insert(vector, len(starts))
    result = len(indices) - 1 + rank - len(collapsed) - len(batching)
    offsets = sorted(s.dims(max(result, 0), max(0, rank - len(collapsed) - len(batching))))
    others = [d for d in range(len(indices)) if d != vector]
    matching = others[: len(batching)]
    extra = ""
    if batching or s.rarely():
        extra = (
            f", operand_batching_dims={braces(batching)}"
            f", start_indices_batching_dims={braces(matching)}"
        )
    shown = s.shape(s.near(indices), s.type("s32"))
    return Case(
        (s.shape(sizes, s.type()), shown),
        f"gather(p0, p1), offset_dims={braces(offsets)}, collapsed_slice_dims={braces(collapsed)},"
        f" start_index_map={braces(starts)}, index_vector_dim={vector},"
        f" slice_sizes={braces(s.near(slices))}{extra}",
    )


@generates("scatter")
def scatter(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1)
    rank = len(sizes)
    batch = s.sizes(0, 2)
    to_operand = s.dims(rank)
    inserted = sorted(d for d in s.dims(rank) if d >= 0)
    window_sizes = [
        max(0, size - s.number(0, 1)) for d, size in enumerate(sizes) if d not in inserted
    ]
    vector = s.number(0, len(batch))
    indices = list(batch)
    indices.insert(vector, len(to_operand))
    total = len(batch) + len(window_sizes)
    window = sorted(s.dims(total, len(window_sizes)))
    kept, free = iter(window_sizes), iter(batch)
    updates = [next(kept if d in window else free, 1) for d in range(total)]
    count = 2 if s.rarely(5) else 1
    inputs = [s.shape(sizes, "f32") for _ in range(count)]
    parts = [*inputs, s.shape(s.near(indices), s.type("s32"))]
    parts += [s.shape(s.near(updates), s.type()) for _ in range(count)]
    names = ", ".join(f"p{i}" for i in range(len(parts)))
    return Case(
        tuple(parts),
        f"scatter({names}), update_window_dims={braces(window)},"
        f" inserted_window_dims={braces(inserted)},"
        f" scatter_dims_to_operand_dims={braces(to_operand)}, index_vector_dim={vector}, to_apply=f",
        reducer(s, "f32", count),
    )


@generates("map")
def map_(s: Source, opcode: str) -> Case:
    sizes = s.sizes()
    count = s.number(1, 3)
    types = [s.type() for _ in range(count)]
    operands = tuple(s.shape(s.near(sizes), s.type(t) if s.rarely() else t) for t in types)
    names = ", ".join(f"p{i}" for i in range(count))
    numbers = s.near(list(range(len(sizes))))
    rank = "1" if s.rarely(20) else ""
    callee = computation("f", [f"{t}[{rank}]" for t in types], f"{types[0]}[{rank}] copy(f.0)")
    return Case(operands, f"map({names}), dimensions={braces(numbers)}, to_apply=f", callee)


@generates("reduce")
def reduce(s: Source, opcode: str) -> Case:
    sizes, type_ = s.sizes(), s.pick(FLOATS)
    count = 2 if s.rarely(3) else 1
    operands = [s.shape(s.near(sizes), s.type(type_)) for _ in range(count)]
    operands += [s.shape([1] if s.rarely(20) else [], s.type(type_)) for _ in range(count)]
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    body = f"reduce({names}), dimensions={braces(s.dims(len(sizes)))}, to_apply=f"
    return Case(tuple(operands), body, reducer(s, type_, count))


def window(s: Source, rank: int) -> str:
    if rank == 0 and not s.rarely():
        return ""

    def many(make: Callable[[], object]) -> str:
        return "x".join(str(make()) for _ in range(rank))

    rank = max(rank + (s.number(-1, 1) if s.rarely() else 0), 1)
    parts = ["size=" + many(lambda: s.pick((2, 1, 3)) if not s.rarely(20) else 0)]
    if s.rarely(2):
        parts.append("stride=" + many(lambda: s.pick((1, 2, 3)) if not s.rarely(20) else 0))
    if s.rarely(2):
        parts.append("pad=" + many(lambda: f"{s.number(-1, 2)}_{s.number(-1, 2)}"))
    if s.rarely(3):
        parts.append("lhs_dilate=" + many(lambda: s.pick((1, 2, 3))))
    if s.rarely(3):
        parts.append("rhs_dilate=" + many(lambda: s.pick((1, 2, 3))))
    return ", window={" + " ".join(parts) + "}"


@generates("reduce-window")
def reduce_window(s: Source, opcode: str) -> Case:
    sizes, type_ = s.sizes(), s.pick(FLOATS)
    operands = (s.shape(sizes, s.type(type_)), s.shape([], s.type(type_)))
    body = f"reduce-window(p0, p1){window(s, len(sizes))}, to_apply=f"
    return Case(operands, body, reducer(s, type_))


@generates("select-and-scatter")
def select_and_scatter(s: Source, opcode: str) -> Case:
    sizes = [s.number(2, 5) for _ in range(s.number(1, 2))]
    source = [max(0, size - 1) for size in sizes]
    select = computation("g", ["f32[]", "f32[]"], "pred[] compare(g.0, g.1), direction=GE")
    if s.rarely():
        select = computation("g", ["f32[]", "f32[]"], "f32[] add(g.0, g.1)")
    extra = (
        window(s, len(sizes))
        if s.rarely(4)
        else ", window={size=" + "x".join("2" * len(sizes)) + "}"
    )
    return Case(
        (s.shape(sizes, s.type()), s.shape(s.near(source), s.type()), s.shape([], s.type())),
        f"select-and-scatter(p0, p1, p2){extra}, select=g, scatter=f",
        select + reducer(s, "f32"),
    )


@generates("sort")
def sort(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1)
    operands = tuple(s.shape(s.near(sizes), "f32") for _ in range(s.number(1, 2)))
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    compare = computation(
        "f", ["f32[]"] * (2 * len(operands)), "pred[] compare(f.0, f.1), direction=LT"
    )
    return Case(operands, f"sort({names}), dimensions={{0}}, to_apply=f", compare)


@generates("topk")
def topk(s: Source, opcode: str) -> Case:
    return Case((s.shape(s.sizes(), s.type()),), f"topk(p0), k={s.number(0, 5)}")


@generates("dot", "scaled-dot")
def dot(s: Source, opcode: str) -> Case:
    batch, contracting = s.sizes(0, 2), s.sizes(0, 2)
    sides: list[tuple[list[int], list[int], list[int]]] = []
    for _ in range(2):
        labels = ["b"] * len(batch) + ["c"] * len(contracting) + ["f"] * s.number(0, 2)
        order = s.dims(len(labels), len(labels))[: len(labels)]
        order = order if sorted(order) == list(range(len(labels))) else list(range(len(labels)))
        sizes = [*batch, *contracting, *[s.size() for _ in range(labels.count("f"))]]
        place = {source: at for at, source in enumerate(order)}
        sides.append(
            (
                [sizes[source] for source in order],
                [place[i] for i in range(len(batch))],
                [place[len(batch) + i] for i in range(len(contracting))],
            )
        )
    (a, ab, ac), (b, bb, bc) = sides
    attributes = (
        f"lhs_batch_dims={braces(s.near(ab))}, lhs_contracting_dims={braces(s.near(ac))},"
        f" rhs_batch_dims={braces(s.near(bb))}, rhs_contracting_dims={braces(bc)}"
    )
    lhs, rhs = s.shape(s.near(a), s.type()), s.shape(s.near(b), s.type())
    if opcode == "dot":
        return Case((lhs, rhs), f"dot(p0, p1), {attributes}")
    return Case((lhs, "f32[]", rhs, "f32[]"), f"scaled-dot(p0, p1, p2, p3), {attributes}")


@generates("ragged-dot")
def ragged_dot(s: Source, opcode: str) -> Case:
    m, k, n, groups, batch = s.size(), s.size(), s.size(), s.size(), s.size()
    kind = s.number(0, 3)
    if kind == 0:
        lhs, rhs, dims = [m, k], [groups, k, n], (1, 1, "lhs_ragged_dims={0}, rhs_group_dims={0}")
    elif kind == 1:
        lhs, rhs, dims = [m, k], [k, n], (1, 0, "lhs_ragged_dims={1}")
    elif kind == 2:
        lhs, rhs = [batch, m, k], [groups, k, n]
        dims = (2, 1, "lhs_ragged_dims={1}, rhs_group_dims={0}")
    else:
        lhs, rhs = [m, k], [groups, k, n]
        dims = (
            1,
            1,
            f"lhs_ragged_dims={braces(s.dims(2, 1))}, rhs_group_dims={braces(s.dims(3, 1))}",
        )
    sizes = s.near([batch, groups] if kind == 2 and s.rarely(2) else [groups])
    return Case(
        (s.shape(s.near(lhs), s.type()), s.shape(s.near(rhs), s.type()), s.shape(sizes, "s32")),
        f"ragged-dot(p0, p1, p2), lhs_contracting_dims={{{dims[0]}}},"
        f" rhs_contracting_dims={{{dims[1]}}}, {dims[2]}",
    )


@generates("convolution")
def convolution(s: Source, opcode: str) -> Case:
    spatial = s.number(0, 2)
    features, batches = (s.pick((1, 2)), 1) if s.rarely(2) else (1, s.pick((1, 2)))
    if s.rarely(20):
        features = batches = s.number(-1, 2)
    kernel_in, out, batch = s.pick((1, 2)), s.pick((2, 4, 3)), s.pick((2, 4, 3))
    kernel = [s.pick((2, 1, 3)) for _ in range(spatial)]
    image = [s.pick((4, 5, 3)) for _ in range(spatial)]

    def permuted(names: str, sizes: dict[str, int]) -> tuple[str, list[int]]:
        order = [d for d in s.dims(len(names), len(names)) if 0 <= d < len(names)]
        order = order if sorted(order) == list(range(len(names))) else list(range(len(names)))
        text = "".join(names[d] for d in order)
        return text, [sizes[c] for c in text]

    digits = "".join(map(str, range(spatial)))
    named = {str(i): image[i] for i in range(spatial)}
    lhs, a = permuted("bf" + digits, {"b": batch, "f": kernel_in * max(features, 1), **named})
    named = {str(i): kernel[i] for i in range(spatial)}
    rhs, b = permuted("io" + digits, {"i": kernel_in, "o": out, **named})
    result, _ = permuted("bf" + digits, dict.fromkeys("bf" + digits, 0))
    parts = ["size=" + "x".join(map(str, kernel))] if kernel else []
    if kernel and s.rarely(2):
        parts.append("stride=" + "x".join(str(s.pick((1, 2))) for _ in kernel))
        parts.append("pad=" + "x".join(f"{s.number(-1, 2)}_{s.number(-1, 2)}" for _ in kernel))
        parts.append("lhs_dilate=" + "x".join(str(s.pick((1, 2))) for _ in kernel))
        parts.append("rhs_dilate=" + "x".join(str(s.pick((1, 2))) for _ in kernel))
    win = ", window={" + " ".join(parts) + "}" if parts else ""
    return Case(
        (s.shape(s.near(a), s.type()), s.shape(s.near(b), s.type())),
        f"convolution(p0, p1){win}, dim_labels={lhs}_{rhs}->{result},"
        f" feature_group_count={features}, batch_group_count={batches}",
    )


@generates("batch-norm-training", "batch-norm-inference", "batch-norm-grad")
def batch_norm(s: Source, opcode: str) -> Case:
    sizes, type_ = s.sizes(1), s.pick(FLOATS)
    index = s.number(-1, len(sizes)) if s.rarely(8) else s.number(0, len(sizes) - 1)
    feature = [sizes[index]] if 0 <= index < len(sizes) else [1]
    count = {"batch-norm-training": 2}.get(opcode, 4)
    operands = [s.shape(sizes, s.type(type_))]
    # XLA looks at the first size of a mean or variance even where there is none.
    operands += [s.shape(s.near(feature) or feature, s.type(type_)) for _ in range(count)]
    if opcode == "batch-norm-grad":
        operands[4] = s.shape(s.near(sizes), s.type(type_))
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    return Case(tuple(operands), f"{opcode}({names}), epsilon=0.1, feature_index={index}")


@generates("cholesky", "triangular-solve")
def factors(s: Source, opcode: str) -> Case:
    batch, n, m, type_ = s.sizes(0, 1), s.size(), s.size(), s.pick(("f32", "c64", "f64"))
    a = s.shape(s.near([*batch, n, n]), s.type(type_))
    if opcode == "cholesky":
        return Case((a,), "cholesky(p0)")
    left = s.rarely(2)
    b = s.shape(s.near([*batch, n, m] if left else [*batch, m, n]), s.type(type_))
    word = s.pick(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    return Case(
        (a, b), f"triangular-solve(p0, p1), left_side={str(left).lower()}, transpose_a={word}"
    )


@generates("fft")
def fft(s: Source, opcode: str) -> Case:
    kind = s.pick(("FFT", "IFFT", "RFFT", "IRFFT"))
    sizes = s.sizes(1)
    lengths = sizes[-s.number(1, len(sizes)) :]
    if kind == "IRFFT":
        lengths[-1] = s.pick((2 * (sizes[-1] - 1), 2 * (sizes[-1] - 1) + 1))
    type_ = s.type(s.pick(("f32", "f64")) if kind == "RFFT" else s.pick(("c64", "c128")))
    lengths = [max(length, 0) for length in s.near(lengths)]
    return Case((s.shape(sizes, type_),), f"fft(p0), fft_type={kind}, fft_length={braces(lengths)}")


@generates("scan")
def scan(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1, 2)
    dim = s.number(0, len(sizes) - 1)
    inner = [size for d, size in enumerate(sizes) if d != dim]
    part = f"f32[{','.join(map(str, inner))}]"
    carries = s.number(0, 2) if s.rarely(5) else 1
    return Case(
        (s.shape(sizes, "f32"), part),
        f"scan(p0, p1), dimensions={{{dim}}}, num_carries={carries}, to_apply=f",
        computation("f", [part, part], f"({part}, {part}) tuple(f.0, f.1)"),
    )


@generates("call", "while", "conditional")
def calls(s: Source, opcode: str) -> Case:
    sizes = s.sizes()
    shape, other = s.shape(sizes, "f32"), s.shape(s.near(sizes), s.type())
    same = computation("f", [shape], f"{shape} copy(f.0)")
    if opcode == "call":
        return Case((other,), "call(p0), to_apply=f", same)
    if opcode == "while":
        condition = computation("g", [s.pick((shape, other))], f"{s.type('pred')}[] constant(1)")
        return Case((s.pick((shape, other)),), "while(p0), condition=g, body=f", condition + same)
    branch = computation(
        "g",
        [other],
        f"{s.pick((shape, other))} parameter(1)" if s.rarely(20) else f"{other} copy(g.0)",
    )
    index = s.type(s.pick(("s32", "pred")))
    key = (
        "branch_computations={f, g}"
        if index != "pred"
        else "true_computation=f, false_computation=g"
    )
    return Case(
        (f"{index}[]", shape, s.pick((other, shape))),
        f"conditional(p0, p1, p2), {key}",
        same + branch,
    )


@generates("tuple", "after-all", "add-dependency", "domain", "get-tuple-element")
def plumbing(s: Source, opcode: str) -> Case:
    shapes = [s.shape(s.sizes(), s.type()) for _ in range(s.number(1, 6))]
    names = ", ".join(f"p{i}" for i in range(len(shapes)))
    if opcode == "tuple":
        return Case(tuple(shapes), f"tuple({names})")
    if opcode == "after-all":
        return Case(("token[]",) * len(shapes), f"after-all({names})")
    if opcode == "add-dependency":
        return Case((shapes[0], "token[]"), "add-dependency(p0, p1)")
    if opcode == "domain":
        sides = "entry={replicated}, exit={replicated}"
        return Case((shapes[0],), f'domain(p0), domain={{kind="sharding", {sides}}}')
    return Case(
        (f"({', '.join(shapes)})",),
        f"get-tuple-element(p0), index={s.number(0, 7 if s.rarely() else len(shapes) - 1)}",
    )


@generates("partition-id", "replica-id")
def ids(s: Source, opcode: str) -> Case:
    return Case((), f"{opcode}()")


# ---------------------------------------------------------------- both sides


@pytest.fixture(autouse=True)
def quiet_children() -> Iterator[None]:
    """Children that XLA aborts neither print their stacks nor leave a core file."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    was_on = faulthandler.is_enabled()
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)
    if was_on:
        faulthandler.enable()


def root_shape(text: str) -> str:
    """XLA's answer: the shape of the root."""
    printed = oracle.xla().hlo_module_from_text(text).to_string()
    root = next(line for line in printed.splitlines()[::-1] if line.startswith("  ROOT %r"))
    return shape_text(root.split(" = ", 1)[1])


def shape_text(text: str) -> str:
    """The shape at the start of an instruction's right side."""
    if not text.startswith("("):
        return text.split(" ", 1)[0]
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[: at + 1]
    return text


def ours(case: Case) -> str:
    try:
        return str(HloModule(parse_module(str(case))).entry.root.shape)
    except HloError as error:
        return f"ERROR {error}"


def differs(case: Case, theirs: str) -> str | None:
    mine = ours(case)
    if theirs == "CRASH" or theirs.startswith(("ERROR", "CRASH")):
        # Where XLA aborts, any answer but a traceback is fine; where it refuses, so must we.
        agree = mine.startswith("ERROR") or theirs == "CRASH" or "Bad StatusOr access" in theirs
    else:
        agree = mine == theirs
    return None if agree else f"{case}\nXLA:  {theirs}\nours: {mine}"


NOT_INFERRED = {"opt-barrier", "fusion", "reduce-precision", "outfeed", "shuffle", "atan"}
"""Opcodes whose shapes XLA does not infer, or does not know."""


@pytest.mark.parametrize("opcode", sorted(GENERATORS))
def test_infers_as_xla(opcode: str) -> None:
    @st.composite
    def cases(draw: Callable[[st.SearchStrategy[int]], int]) -> Case:
        return GENERATORS[opcode](Source(draw), opcode)

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    )
    @given(st.lists(cases(), min_size=1, max_size=40))
    def compare(found: list[Case]) -> None:
        answers = oracle.ask([str(case) for case in found], root_shape)
        wrong = [w for w in map(differs, found, answers) if w is not None]
        assert not wrong, wrong[0]

    compare()


def test_every_inferring_opcode_is_compared() -> None:
    inferring = {name for name, row in OPCODES.items() if row.infers}
    assert inferring - set(GENERATORS) - NOT_INFERRED == set()
