"""Products and linear algebra."""

from __future__ import annotations

import numpy as np

from mlirhlo.debug.fuzz.generators.choices import Choices, type_of
from mlirhlo.debug.fuzz.generators.folds import window
from mlirhlo.debug.fuzz.generators.instructions import Case, dims, executes, sizes


@executes("dot")
def dot(c: Choices, opcode: str) -> Case:
    pairs = (
        ("f32", "f32", "f32"), ("s32", "s32", "s32"), ("bf16", "bf16", "bf16"), ("u8", "u8", "u8"),
        ("s8", "s8", "s32"), ("bf16", "bf16", "f32"), ("f64", "f64", "f64"), ("c64", "c64", "c64"),
        ("pred", "pred", "pred"), ("f16", "f16", "f16"), ("s64", "s64", "s64"),
        ("f8e4m3fn", "f8e5m2", "f32"), ("f8e5m2", "f8e5m2", "f8e5m2"),
    )  # fmt: skip
    left, right, result = c.pick(pairs)
    batch = c.shape(c.integer(0, 2), 1, 3)
    contracting = c.shape(c.integer(0, 2), 1, 4)
    rows, columns = c.shape(c.integer(0, 2), 1, 3), c.shape(c.integer(0, 2), 1, 3)

    def place(free: list[int]) -> tuple[list[int], list[int], list[int]]:
        """Shape, batch dimensions, contracting dimensions."""
        count = len(batch) + len(contracting) + len(free)
        order = c.permutation(count)
        shape = [0] * count
        for where, size in zip(order, [*batch, *contracting, *sorted(free)], strict=True):
            shape[where] = size
        ends = len(batch), len(batch) + len(contracting)
        return shape, order[: ends[0]], order[ends[0] : ends[1]]

    lhs, lb, lc = place(rows)
    rhs, rb, rc = place(columns)
    free_l = [s for d, s in enumerate(lhs) if d not in (*lb, *lc)]
    free_r = [s for d, s in enumerate(rhs) if d not in (*rb, *rc)]
    return Case(
        f"{sizes(result, [*batch, *free_l, *free_r])} dot(@p0, @p1), lhs_batch_dims={dims(lb)}, "
        f"lhs_contracting_dims={dims(lc)}, rhs_batch_dims={dims(rb)}, "
        f"rhs_contracting_dims={dims(rc)}",
        [c.small(left, lhs), c.small(right, rhs)],
    )


@executes("convolution")
def convolution(c: Choices, opcode: str) -> Case:
    name = c.pick(("f32", "bf16", "f64", "f32"))
    spatial = c.integer(1, 3)
    inputs = c.shape(spatial, 2, 6)
    w = window(c, inputs, reversal=c.integer(0, 1) == 1)
    kernel = [int(s) for s in w.text.split("size=")[1].split(" ")[0].rstrip("}").split("x")]
    groups, depth, per_group, batch = (
        c.integer(1, 2),
        c.integer(1, 2),
        c.integer(1, 2),
        c.integer(1, 3),
    )
    by_batch = groups > 1 and c.integer(0, 1) == 1
    features = depth if by_batch else depth * groups
    outputs = per_group * groups
    result_batch = batch
    if by_batch:
        batch *= groups

    def labels(names: str, wanted: dict[str, int], order: list[int]) -> tuple[str, list[int]]:
        marks = [names[0], names[1], *map(str, range(spatial))]
        text = "".join(marks[i] for i in order)
        return text, [wanted[c] for c in text]

    order = [c.permutation(spatial + 2) for _ in range(3)]
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
        [c.small(name, lhs_shape), c.small(name, rhs_shape)],
    )


TOLERANCE = {"f32": 2e-5, "c64": 2e-5, "f64": 1e-12, "c128": 1e-12}
"""Of the largest element, for algorithms that sum in an order of their own."""


@executes("batch-norm-training", "batch-norm-inference", "batch-norm-grad")
def batch_norm(c: Choices, opcode: str) -> Case:
    name, shape = c.pick(("f32", "f64")), c.shape(c.integer(1, 4))
    at = c.integer(0, len(shape) - 1)
    full, part = sizes(name, shape), sizes(name, [shape[at]])
    features = [c.small(name, [shape[at]]) for _ in range(4)]
    features[3] = np.abs(features[3])  # a variance
    inputs, result = [c.small(name, shape), *features], full
    if opcode == "batch-norm-training":
        inputs, result = inputs[:3], f"({full}, {part}, {part})"
    elif opcode == "batch-norm-grad":
        inputs = [inputs[0], features[0], features[1], features[3], c.small(name, shape)]
        result = f"({full}, {part}, {part})"
    names = ", ".join(f"@p{i}" for i in range(len(inputs)))
    return Case(
        f"{result} {opcode}({names}), epsilon={c.pick(('0.5', '0.001'))}, feature_index={at}",
        inputs,
        scaled=10 * TOLERANCE[name],
    )


@executes("fft")
def fft(c: Choices, opcode: str) -> Case:
    kind = c.pick(("FFT", "IFFT", "RFFT", "IRFFT"))
    real, compound = c.pick((("f32", "c64"), ("f64", "c128")))
    batch, lengths = c.shape(c.integer(0, 2), 1, 3), c.shape(c.integer(1, 3), 1, 8)
    half = [*lengths[:-1], lengths[-1] // 2 + 1]
    source, target = (compound, [*batch, *lengths]), (compound, [*batch, *lengths])
    if kind == "RFFT":
        source, target = (real, [*batch, *lengths]), (compound, [*batch, *half])
    if kind == "IRFFT":
        source, target = (compound, [*batch, *half]), (real, [*batch, *lengths])
    data = c.small(real, source[1]).astype(type_of(source[0]).dtype)
    if source[0] == compound:
        data += 1j * c.small(real, source[1])
    return Case(
        f"{sizes(*target)} fft(@p0), fft_type={kind}, fft_length={dims(lengths)}",
        [data],
        scaled=TOLERANCE[real],
    )


def matrix(c: Choices, name: str, shape: list[int]) -> np.ndarray:
    """Small numbers, complex ones too."""
    if not type_of(name).is_complex:
        return c.small(name, shape)
    return (c.small("f64", shape) + 1j * c.small("f64", shape)).astype(type_of(name).dtype)


@executes("cholesky")
def cholesky(c: Choices, opcode: str) -> Case:
    """Positive definite members, seldom one that is not: NaN, there alone.

    XLA leaves garbage in the other triangle; a select takes it away.
    """
    name, size = c.pick(tuple(TOLERANCE)), c.integer(1, 5)
    batch = c.shape(c.integer(0, 1), 1, 3)
    a = matrix(c, name, [*batch, size, size])
    a = (a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(size)).astype(a.dtype)
    if c.rarely(4):
        a = -a
    lower = c.pick((True, False))
    full, rank = [*batch, size, size], len(batch) + 2
    return Case(
        f"{sizes(name, full)} select(@k, @l, @z)",
        [a],
        scaled=50 * TOLERANCE[name],
        before=(
            f"@l = {sizes(name, full)} cholesky(@p0), lower={str(lower).lower()}",
            f"@i = {sizes('s32', full)} iota(), iota_dimension={rank - 2}",
            f"@j = {sizes('s32', full)} iota(), iota_dimension={rank - 1}",
            f"@k = {sizes('pred', full)} compare(@i, @j), direction={'GE' if lower else 'LE'}",
            f"@o = {name}[] constant({'(0, 0)' if name[0] == 'c' else '0'})",
            f"@z = {sizes(name, full)} broadcast(@o), dimensions={{}}",
        ),
    )


@executes("triangular-solve")
def triangular_solve(c: Choices, opcode: str) -> Case:
    name, size, columns = c.pick(tuple(TOLERANCE)), c.integer(1, 5), c.integer(1, 3)
    batch = c.shape(c.integer(0, 1), 1, 3)
    left, lower, unit = (c.pick(("true", "false")) for _ in range(3))
    a = matrix(c, name, [*batch, size, size]) / size + 3 * np.eye(size)
    a = a.astype(type_of(name).dtype)
    b = matrix(c, name, [*batch, size, columns] if left == "true" else [*batch, columns, size])
    how = c.pick(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    return Case(
        f"{sizes(name, b.shape)} triangular-solve(@p0, @p1), left_side={left}, lower={lower}, "
        f"unit_diagonal={unit}, transpose_a={how}",
        [a, b],
        scaled=50 * TOLERANCE[name],
    )
