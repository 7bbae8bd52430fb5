"""Compiles Triton kernels of common shapes to PTX: `python triton_kernels.py FOLDER`. Needs Triton, no card."""

from __future__ import annotations

# pyright: reportMissingImports=false
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def elementwise(x, y, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + index, mask=index < n)
    b = tl.load(y + index, mask=index < n)
    tl.store(out + index, tl.exp(a) * b + tl.sin(a), mask=index < n)


@triton.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    row, index = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.load(x + row * stride + index, mask=index < n, other=-float("inf")).to(tl.float32)
    a = tl.exp(a - tl.max(a, 0))
    tl.store(out + row * stride + index, a / tl.sum(a, 0), mask=index < n)


@triton.jit
def layer_norm(x, scale, shift, out, n, BLOCK: tl.constexpr):
    row, index = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.load(x + row * n + index, mask=index < n, other=0.0).to(tl.float32)
    mean = tl.sum(a, 0) / n
    centred = tl.where(index < n, a - mean, 0.0)
    inverse = tl.rsqrt(tl.sum(centred * centred, 0) / n + 1e-5)
    result = centred * inverse * tl.load(scale + index, mask=index < n)
    tl.store(out + row * n + index, result + tl.load(shift + index, mask=index < n), mask=index < n)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + index, mask=index < n) + tl.load(y + index, mask=index < n)
    tl.store(out + index, total, mask=index < n)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + index, mask=index < n)
    tl.store(out + index, 0.5 * a * (1 + tl.erf(a * 0.7071067811865476)), mask=index < n)


@triton.jit
def rms_norm(x, scale, out, n, BLOCK: tl.constexpr):
    row, index = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.load(x + row * n + index, mask=index < n, other=0.0).to(tl.float32)
    inverse = tl.rsqrt(tl.sum(a * a, 0) / n + 1e-5)
    result = a * inverse * tl.load(scale + index, mask=index < n)
    tl.store(out + row * n + index, result, mask=index < n)


@triton.jit
def cross_entropy(x, labels, out, n, BLOCK: tl.constexpr):
    row, index = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.load(x + row * n + index, mask=index < n, other=-float("inf")).to(tl.float32)
    a = a - tl.max(a, 0)
    logit = tl.sum(tl.where(index == tl.load(labels + row), a, 0.0), 0)
    tl.store(out + row, tl.log(tl.sum(tl.exp(a), 0)) - logit)


@triton.jit
def row_sum(x, out, n, BLOCK: tl.constexpr):
    row, index = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.load(x + row * n + index, mask=index < n, other=0.0)
    tl.store(out + row, tl.sum(a, 0))


@triton.jit
def gather_rows(x, where, out, n, BLOCK: tl.constexpr):
    row, index = tl.program_id(0), tl.arange(0, BLOCK)
    source = tl.load(where + row)
    a = tl.load(x + source * n + index, mask=index < n)
    tl.store(out + row * n + index, a, mask=index < n)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        x = tl.load(a + rows[:, None] * k + (start + inner)[None, :])
        y = tl.load(b + (start + inner)[:, None] * n + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def attention(q, k, v, out, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows, depth = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + depth[None, :])
    best = tl.full((M,), -float("inf"), tl.float32)
    weight = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        columns = start + tl.arange(0, N)
        key = tl.load(k + columns[None, :] * D + depth[:, None])
        scores = tl.dot(query, key) * scale
        new = tl.maximum(best, tl.max(scores, 1))
        p = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(best - new)
        weight = weight * shrink + tl.sum(p, 1)
        value = tl.load(v + columns[:, None] * D + depth[None, :])
        total = tl.dot(p.to(value.dtype), value, total * shrink[:, None])
        best = new
    tl.store(
        out + rows[:, None] * D + depth[None, :], (total / weight[:, None]).to(out.dtype.element_ty)
    )


@triton.jit
def column_sum(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    columns = tl.program_id(0) * N + tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for start in range(0, m, M):
        rows = start + tl.arange(0, M)
        total += tl.sum(tl.load(x + rows[:, None] * n + columns[None, :]).to(tl.float32), 0)
    tl.store(out + columns, total)


@triton.jit
def transpose(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    tile = tl.load(x + rows[:, None] * n + columns[None, :])
    tl.store(out + columns[:, None] * m + rows[None, :], tl.trans(tile))


@triton.jit
def scan(x, out, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(
        out + tl.program_id(0) * n + index, tl.cumsum(tl.load(x + tl.program_id(0) * n + index), 0)
    )


@triton.jit
def ordered(x, out, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(out + index, tl.sort(tl.load(x + index)))


@triton.jit
def scatter_add(x, where, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    target = tl.load(where + index, mask=index < n, other=0)
    tl.atomic_add(out + target, tl.load(x + index, mask=index < n), mask=index < n)


@triton.jit
def locked(lock, out, BLOCK: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    index = tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(out + index) + 1)
    tl.atomic_xchg(lock, 0)


@triton.jit
def dropout(x, out, seed, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + index, tl.where(tl.rand(seed, index) > 0.5, tl.load(x + index) * 2, 0.0))


@triton.jit
def arg_max(x, out, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.argmax(tl.load(x + tl.program_id(0) * n + index), 0))


def programs():
    """Name, function, types of arguments, constants, warps."""
    for kind in ("fp32", "fp16", "bf16", "fp64"):
        for block in (128, 1024):
            if kind in ("fp32", "fp64"):
                types = {"x": f"*{kind}", "y": f"*{kind}", "out": f"*{kind}", "n": "i32"}
                yield f"elementwise_{kind}_{block}", elementwise, types, {"BLOCK": block}, 4
            types = {"x": f"*{kind}", "out": f"*{kind}", "stride": "i32", "n": "i32"}
            yield f"softmax_{kind}_{block}", softmax, types, {"BLOCK": block}, block // 128
            types = {
                "x": f"*{kind}",
                "scale": "*fp32",
                "shift": "*fp32",
                "out": f"*{kind}",
                "n": "i32",
            }
            yield f"layer_norm_{kind}_{block}", layer_norm, types, {"BLOCK": block}, 4
    one, two = {"x": "*fp32"}, {"x": "*fp32", "y": "*fp32"}
    for function, types in (
        (add, two),
        (gelu, one),
        (rms_norm, {"x": "*fp32", "scale": "*fp32"}),
        (cross_entropy, {"x": "*fp32", "labels": "*i32"}),
        (row_sum, one),
        (gather_rows, {"x": "*fp32", "where": "*i32"}),
    ):
        name = f"{getattr(function, 'fn').__name__}_fp32_1024"  # noqa: B009 - of Triton's class
        yield name, function, {**types, "out": "*fp32", "n": "i32"}, {"BLOCK": 1024}, 4
    for kind in ("fp32", "fp16", "bf16", "i8", "fp8e5"):
        for m, n, k in ((16, 16, 32), (64, 64, 32), (128, 128, 64)):
            out = "i32" if kind == "i8" else "fp32"
            if kind == "i8":
                continue
            types = {
                "a": f"*{kind}",
                "b": f"*{kind}",
                "c": f"*{out}",
                "m": "i32",
                "n": "i32",
                "k": "i32",
            }
            yield f"matmul_{kind}_{m}_{n}_{k}", matmul, types, {"M": m, "N": n, "K": k}, 4
    for kind in ("fp16", "bf16"):
        types = dict.fromkeys(("q", "k", "v", "out"), f"*{kind}") | {"n": "i32", "scale": "fp32"}
        yield f"attention_{kind}", attention, types, {"M": 64, "N": 64, "D": 64}, 4
        yield f"attention_{kind}_128", attention, types, {"M": 128, "N": 64, "D": 128}, 8
    for kind in ("fp32", "fp16", "i32"):
        types = {"x": f"*{kind}", "out": "*fp32", "m": "i32", "n": "i32"}
        yield f"column_sum_{kind}", column_sum, types, {"M": 32, "N": 64}, 4
        yield f"transpose_{kind}", transpose, {**types, "out": f"*{kind}"}, {"M": 32, "N": 32}, 4
        yield (
            f"scan_{kind}",
            scan,
            {"x": f"*{kind}", "out": f"*{kind}", "n": "i32"},
            {"BLOCK": 512},
            4,
        )
        yield (
            f"arg_max_{kind}",
            arg_max,
            {"x": f"*{kind}", "out": "*i32", "n": "i32"},
            {"BLOCK": 256},
            2,
        )
        if kind != "fp16":
            yield (
                f"ordered_{kind}",
                ordered,
                {"x": f"*{kind}", "out": f"*{kind}"},
                {"BLOCK": 256},
                4,
            )
        types = {"x": f"*{kind}", "where": "*i32", "out": f"*{kind}", "n": "i32"}
        yield f"scatter_add_{kind}", scatter_add, types, {"BLOCK": 256}, 4
    yield "locked", locked, {"lock": "*i32", "out": "*fp32"}, {"BLOCK": 64}, 1
    yield "dropout", dropout, {"x": "*fp32", "out": "*fp32", "seed": "i32"}, {"BLOCK": 256}, 4


def main() -> None:
    folder = Path(sys.argv[1])
    for architecture in (80, 90):
        for name, function, types, constants, warps in programs():
            target = folder / f"triton_{name}_sm{architecture}.ptx"
            if target.exists():
                continue
            signature = {**types, **dict.fromkeys(constants, "constexpr")}
            source = ASTSource(function, signature, constants)
            try:
                options = {"num_warps": warps}
                compiled = triton.compile(
                    source, target=GPUTarget("cuda", architecture, 32), options=options
                )
            except Exception as problem:  # noqa: BLE001 - a type that this Triton does not take
                print(f"{target.name}: {type(problem).__name__}", file=sys.stderr)
                continue
            target.write_text(compiled.asm["ptx"])


if __name__ == "__main__":
    main()
