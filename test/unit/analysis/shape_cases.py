"""Random instructions without shapes: elementwise, data movement, reductions."""

from __future__ import annotations

from collections.abc import Callable

from unit.analysis.shape_source import (
    FLOATS,
    TYPES,
    Case,
    Source,
    braces,
    computation,
    generates,
    reducer,
)

from mlirhlo.dialects.hlo.table import OPCODES

UNARY = [
    n for n, r in OPCODES.items() if r.elementwise and r.arity == 1 and r.infers and not r.newer
]
BINARY = [n for n, r in OPCODES.items() if r.elementwise and r.arity == 2 and r.infers]


@generates(*UNARY)
def unary(s: Source, opcode: str) -> Case:
    return Case((s.shaped(s.sizes(), s.pick(TYPES)),), f"{opcode}(p0)")


@generates(*BINARY)
def binary(s: Source, opcode: str) -> Case:
    sizes, type_ = s.sizes(), s.pick(TYPES) if s.rarely(2) else s.pick(FLOATS)
    other = s.near(sizes) if not s.rarely(6) else []
    if s.rarely(5):
        other = [s.pick((size, 1)) for size in sizes]
    operands = (s.shaped(sizes, type_), s.shaped(other, s.type(s.pick((type_, s.pick(FLOATS))))))
    if s.rarely(2):
        operands = operands[::-1]
    extra = f", direction={s.pick(('EQ', 'LT'))}" if opcode == "compare" else ""
    return Case(operands, f"{opcode}(p0, p1){extra}")


@generates("select", "clamp")
def ternary(s: Source, opcode: str) -> Case:
    sizes, type_ = s.sizes(), s.pick(FLOATS)
    first = s.type("pred" if opcode == "select" else type_)
    parts = [
        s.shaped([] if s.rarely(3) else s.near(sizes), first),
        s.shaped(sizes, type_),
        s.shaped([] if s.rarely(5) else s.near(sizes), s.type(type_)),
    ]
    return Case(tuple(parts), f"{opcode}(p0, p1, p2)")


@generates("broadcast", "reverse", "transpose")
def with_dimensions(s: Source, opcode: str) -> Case:
    sizes = s.sizes()
    numbers = s.dims(len(sizes), len(sizes) if opcode == "transpose" else None)
    return Case((s.shaped(sizes, s.type()),), f"{opcode}(p0), dimensions={braces(numbers)}")


@generates("concatenate")
def concatenate(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1)
    dim = s.integer(0, len(sizes) - 1)
    operands: list[str] = []
    for _ in range(s.integer(1, 3)):
        mine = list(sizes)
        mine[dim] = s.size()
        operands.append(s.shaped(s.near(mine), s.type()))
    if s.rarely():
        dim = s.integer(-1, len(sizes))
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    return Case(tuple(operands), f"concatenate({names}), dimensions={{{dim}}}")


@generates("pad")
def pad(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1)
    edges = [f"{s.integer(-2, 3)}_{s.integer(-2, 3)}_{s.integer(0, 2)}" for _ in s.near(sizes)]
    value = s.shaped([1] if s.rarely() else [], s.type())
    return Case(
        (s.shaped(sizes, s.type()), value), f"pad(p0, p1), padding={'x'.join(edges or ['0_0'])}"
    )


@generates("get-dimension-size", "set-dimension-size")
def dimension_size(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1)
    dim = s.integer(-1, len(sizes)) if s.rarely(4) else s.integer(0, len(sizes) - 1)
    operands = [s.shaped(sizes, s.type())]
    if opcode.startswith("set"):
        operands.append(s.shaped([1] if s.rarely() else [], s.type("s32")))
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
        min(size, 1) if d in collapsed or d in batching else s.integer(0, size)
        for d, size in enumerate(sizes)
    ]
    vector = s.integer(0, len(indices))
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
    shown = s.shaped(s.near(indices), s.type("s32"))
    return Case(
        (s.shaped(sizes, s.type()), shown),
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
        max(0, size - s.integer(0, 1)) for d, size in enumerate(sizes) if d not in inserted
    ]
    vector = s.integer(0, len(batch))
    indices = list(batch)
    indices.insert(vector, len(to_operand))
    total = len(batch) + len(window_sizes)
    window = sorted(s.dims(total, len(window_sizes)))
    kept, free = iter(window_sizes), iter(batch)
    updates = [next(kept if d in window else free, 1) for d in range(total)]
    count = 2 if s.rarely(5) else 1
    inputs = [s.shaped(sizes, "f32") for _ in range(count)]
    parts = [*inputs, s.shaped(s.near(indices), s.type("s32"))]
    parts += [s.shaped(s.near(updates), s.type()) for _ in range(count)]
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
    count = s.integer(1, 3)
    types = [s.type() for _ in range(count)]
    operands = tuple(s.shaped(s.near(sizes), s.type(t) if s.rarely() else t) for t in types)
    names = ", ".join(f"p{i}" for i in range(count))
    numbers = s.near(list(range(len(sizes))))
    rank = "1" if s.rarely(20) else ""
    callee = computation("f", [f"{t}[{rank}]" for t in types], f"{types[0]}[{rank}] copy(f.0)")
    return Case(operands, f"map({names}), dimensions={braces(numbers)}, to_apply=f", callee)


@generates("reduce")
def reduce(s: Source, opcode: str) -> Case:
    sizes, type_ = s.sizes(), s.pick(FLOATS)
    count = 2 if s.rarely(3) else 1
    operands = [s.shaped(s.near(sizes), s.type(type_)) for _ in range(count)]
    operands += [s.shaped([1] if s.rarely(20) else [], s.type(type_)) for _ in range(count)]
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    body = f"reduce({names}), dimensions={braces(s.dims(len(sizes)))}, to_apply=f"
    return Case(tuple(operands), body, reducer(s, type_, count))


def window(s: Source, rank: int) -> str:
    if rank == 0 and not s.rarely():
        return ""

    def many(make: Callable[[], object]) -> str:
        return "x".join(str(make()) for _ in range(rank))

    rank = max(rank + (s.integer(-1, 1) if s.rarely() else 0), 1)
    parts = ["size=" + many(lambda: s.pick((2, 1, 3)) if not s.rarely(20) else 0)]
    if s.rarely(2):
        parts.append("stride=" + many(lambda: s.pick((1, 2, 3)) if not s.rarely(20) else 0))
    if s.rarely(2):
        parts.append("pad=" + many(lambda: f"{s.integer(-1, 2)}_{s.integer(-1, 2)}"))
    if s.rarely(3):
        parts.append("lhs_dilate=" + many(lambda: s.pick((1, 2, 3))))
    if s.rarely(3):
        parts.append("rhs_dilate=" + many(lambda: s.pick((1, 2, 3))))
    return ", window={" + " ".join(parts) + "}"


@generates("reduce-window")
def reduce_window(s: Source, opcode: str) -> Case:
    sizes, type_ = s.sizes(), s.pick(FLOATS)
    operands = (s.shaped(sizes, s.type(type_)), s.shaped([], s.type(type_)))
    body = f"reduce-window(p0, p1){window(s, len(sizes))}, to_apply=f"
    return Case(operands, body, reducer(s, type_))


@generates("select-and-scatter")
def select_and_scatter(s: Source, opcode: str) -> Case:
    sizes = [s.integer(2, 5) for _ in range(s.integer(1, 2))]
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
        (s.shaped(sizes, s.type()), s.shaped(s.near(source), s.type()), s.shaped([], s.type())),
        f"select-and-scatter(p0, p1, p2){extra}, select=g, scatter=f",
        select + reducer(s, "f32"),
    )


@generates("sort")
def sort(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1)
    operands = tuple(s.shaped(s.near(sizes), "f32") for _ in range(s.integer(1, 2)))
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    compare = computation(
        "f", ["f32[]"] * (2 * len(operands)), "pred[] compare(f.0, f.1), direction=LT"
    )
    return Case(operands, f"sort({names}), dimensions={{0}}, to_apply=f", compare)


@generates("topk")
def topk(s: Source, opcode: str) -> Case:
    return Case((s.shaped(s.sizes(), s.type()),), f"topk(p0), k={s.integer(0, 5)}")
