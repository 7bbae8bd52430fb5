"""Random instructions without shapes: linear algebra, calls, tokens."""

from __future__ import annotations

from unit.analysis.shape_source import (
    FLOATS,
    Case,
    Source,
    braces,
    computation,
    generates,
)


@generates("dot", "scaled-dot")
def dot(s: Source, opcode: str) -> Case:
    batch, contracting = s.sizes(0, 2), s.sizes(0, 2)
    sides: list[tuple[list[int], list[int], list[int]]] = []
    for _ in range(2):
        labels = ["b"] * len(batch) + ["c"] * len(contracting) + ["f"] * s.integer(0, 2)
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
    lhs, rhs = s.shaped(s.near(a), s.type()), s.shaped(s.near(b), s.type())
    if opcode == "dot":
        return Case((lhs, rhs), f"dot(p0, p1), {attributes}")
    return Case((lhs, "f32[]", rhs, "f32[]"), f"scaled-dot(p0, p1, p2, p3), {attributes}")


@generates("ragged-dot")
def ragged_dot(s: Source, opcode: str) -> Case:
    m, k, n, groups, batch = s.size(), s.size(), s.size(), s.size(), s.size()
    kind = s.integer(0, 3)
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
        (s.shaped(s.near(lhs), s.type()), s.shaped(s.near(rhs), s.type()), s.shaped(sizes, "s32")),
        f"ragged-dot(p0, p1, p2), lhs_contracting_dims={{{dims[0]}}},"
        f" rhs_contracting_dims={{{dims[1]}}}, {dims[2]}",
    )


@generates("convolution")
def convolution(s: Source, opcode: str) -> Case:
    spatial = s.integer(0, 2)
    features, batches = (s.pick((1, 2)), 1) if s.rarely(2) else (1, s.pick((1, 2)))
    if s.rarely(20):
        features = batches = s.integer(-1, 2)
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
        parts.append("pad=" + "x".join(f"{s.integer(-1, 2)}_{s.integer(-1, 2)}" for _ in kernel))
        parts.append("lhs_dilate=" + "x".join(str(s.pick((1, 2))) for _ in kernel))
        parts.append("rhs_dilate=" + "x".join(str(s.pick((1, 2))) for _ in kernel))
    win = ", window={" + " ".join(parts) + "}" if parts else ""
    return Case(
        (s.shaped(s.near(a), s.type()), s.shaped(s.near(b), s.type())),
        f"convolution(p0, p1){win}, dim_labels={lhs}_{rhs}->{result},"
        f" feature_group_count={features}, batch_group_count={batches}",
    )


@generates("batch-norm-training", "batch-norm-inference", "batch-norm-grad")
def batch_norm(s: Source, opcode: str) -> Case:
    sizes, type_ = s.sizes(1), s.pick(FLOATS)
    index = s.integer(-1, len(sizes)) if s.rarely(8) else s.integer(0, len(sizes) - 1)
    feature = [sizes[index]] if 0 <= index < len(sizes) else [1]
    count = {"batch-norm-training": 2}.get(opcode, 4)
    operands = [s.shaped(sizes, s.type(type_))]
    # XLA looks at the first size of a mean or variance even where there is none.
    operands += [s.shaped(s.near(feature) or feature, s.type(type_)) for _ in range(count)]
    if opcode == "batch-norm-grad":
        operands[4] = s.shaped(s.near(sizes), s.type(type_))
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    return Case(tuple(operands), f"{opcode}({names}), epsilon=0.1, feature_index={index}")


@generates("cholesky", "triangular-solve")
def factors(s: Source, opcode: str) -> Case:
    batch, n, m, type_ = s.sizes(0, 1), s.size(), s.size(), s.pick(("f32", "c64", "f64"))
    a = s.shaped(s.near([*batch, n, n]), s.type(type_))
    if opcode == "cholesky":
        return Case((a,), "cholesky(p0)")
    left = s.rarely(2)
    b = s.shaped(s.near([*batch, n, m] if left else [*batch, m, n]), s.type(type_))
    word = s.pick(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    return Case(
        (a, b), f"triangular-solve(p0, p1), left_side={str(left).lower()}, transpose_a={word}"
    )


@generates("fft")
def fft(s: Source, opcode: str) -> Case:
    kind = s.pick(("FFT", "IFFT", "RFFT", "IRFFT"))
    sizes = s.sizes(1)
    lengths = sizes[-s.integer(1, len(sizes)) :]
    if kind == "IRFFT":
        lengths[-1] = s.pick((2 * (sizes[-1] - 1), 2 * (sizes[-1] - 1) + 1))
    type_ = s.type(s.pick(("f32", "f64")) if kind == "RFFT" else s.pick(("c64", "c128")))
    lengths = [max(length, 0) for length in s.near(lengths)]
    return Case(
        (s.shaped(sizes, type_),), f"fft(p0), fft_type={kind}, fft_length={braces(lengths)}"
    )


@generates("scan")
def scan(s: Source, opcode: str) -> Case:
    sizes = s.sizes(1, 2)
    dim = s.integer(0, len(sizes) - 1)
    inner = [size for d, size in enumerate(sizes) if d != dim]
    part = f"f32[{','.join(map(str, inner))}]"
    carries = s.integer(0, 2) if s.rarely(5) else 1
    return Case(
        (s.shaped(sizes, "f32"), part),
        f"scan(p0, p1), dimensions={{{dim}}}, num_carries={carries}, to_apply=f",
        computation("f", [part, part], f"({part}, {part}) tuple(f.0, f.1)"),
    )


@generates("call", "while", "conditional")
def calls(s: Source, opcode: str) -> Case:
    sizes = s.sizes()
    shape, other = s.shaped(sizes, "f32"), s.shaped(s.near(sizes), s.type())
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
    shapes = [s.shaped(s.sizes(), s.type()) for _ in range(s.integer(1, 6))]
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
        f"get-tuple-element(p0), index={s.integer(0, 7 if s.rarely() else len(shapes) - 1)}",
    )


@generates("partition-id", "replica-id")
def ids(s: Source, opcode: str) -> Case:
    return Case((), f"{opcode}()")
