"""Functions that `gpu_static.py` compares, as HLO and as Triton kernels of `tools/ptx_sources`, with their results."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES

Array = NDArray[Any]
ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
MAXIMUM = "maximum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }"


@dataclass(frozen=True)
class Function:
    """One function, as HLO and as a kernel of `tools/ptx_sources/triton_kernels.py`."""

    name: str
    hlo: str
    inputs: tuple[Array, ...]
    expected: Array
    triton: str
    """Name of the file, without the architecture."""
    sizes: tuple[int | float, ...]
    """Arguments of the Triton kernel behind its pointers."""
    grid: tuple[int, int]
    warps: int = 4
    tolerance: float = 1e-5


def functions() -> Iterator[Function]:
    """What is compared; all shapes are multiples of Triton's blocks."""
    yield from _rows_and_elements()
    randomness = np.random.default_rng(0)

    def normal(*shape: int, type_: Any = np.float32) -> Array:
        return randomness.standard_normal(shape).astype(type_)

    x = normal(64, 1024)
    weights = np.exp(x - x.max(1, keepdims=True))
    softmax = f"""HloModule softmax
{ADD}
{MAXIMUM}
ENTRY e {{
  x = f32[64,1024] parameter(0)
  low = f32[] constant(-inf)
  top = f32[64] reduce(x, low), dimensions={{1}}, to_apply=maximum
  tops = f32[64,1024] broadcast(top), dimensions={{0}}
  less = f32[64,1024] subtract(x, tops)
  w = f32[64,1024] exponential(less)
  zero = f32[] constant(0)
  sum = f32[64] reduce(w, zero), dimensions={{1}}, to_apply=add
  sums = f32[64,1024] broadcast(sum), dimensions={{0}}
  ROOT r = f32[64,1024] divide(w, sums)
}}"""
    result = weights / weights.sum(1, keepdims=True)
    yield Function(
        "softmax 64x1024", softmax, (x,), result, "softmax_fp32_1024", (1024, 1024), (64, 1), 8
    )

    scale, shift = normal(1024), normal(1024)
    norm = f"""HloModule layer_norm
{ADD}
ENTRY e {{
  x = f32[64,1024] parameter(0)
  scale = f32[1024] parameter(1)
  shift = f32[1024] parameter(2)
  zero = f32[] constant(0)
  part = f32[] constant(0.0009765625)
  parts = f32[64] broadcast(part), dimensions={{}}
  sum = f32[64] reduce(x, zero), dimensions={{1}}, to_apply=add
  mean = f32[64] multiply(sum, parts)
  means = f32[64,1024] broadcast(mean), dimensions={{0}}
  centred = f32[64,1024] subtract(x, means)
  square = f32[64,1024] multiply(centred, centred)
  squares = f32[64] reduce(square, zero), dimensions={{1}}, to_apply=add
  variance = f32[64] multiply(squares, parts)
  small = f32[] constant(1e-05)
  smalls = f32[64] broadcast(small), dimensions={{}}
  lifted = f32[64] add(variance, smalls)
  inverse = f32[64] rsqrt(lifted)
  inverses = f32[64,1024] broadcast(inverse), dimensions={{0}}
  unit = f32[64,1024] multiply(centred, inverses)
  scales = f32[64,1024] broadcast(scale), dimensions={{1}}
  shifts = f32[64,1024] broadcast(shift), dimensions={{1}}
  scaled = f32[64,1024] multiply(unit, scales)
  ROOT r = f32[64,1024] add(scaled, shifts)
}}"""
    result = (x - x.mean(1, keepdims=True)) / np.sqrt(
        x.var(1, keepdims=True) + 1e-5
    ) * scale + shift
    yield Function(
        "layer norm 64x1024",
        norm,
        (x, scale, shift),
        result,
        "layer_norm_fp32_1024",
        (1024,),
        (64, 1),
        4,
        1e-4,
    )

    for kind, type_, count, tolerance in (
        ("f32", np.float32, 65536, 1e-5),
        ("f64", np.float64, 16384, 1e-12),
    ):
        a, b = normal(count, type_=type_), normal(count, type_=type_)
        text = f"""HloModule elementwise
ENTRY e {{
  a = {kind}[{count}] parameter(0)
  b = {kind}[{count}] parameter(1)
  exp = {kind}[{count}] exponential(a)
  product = {kind}[{count}] multiply(exp, b)
  sin = {kind}[{count}] sine(a)
  ROOT r = {kind}[{count}] add(product, sin)
}}"""
        file = f"elementwise_fp{kind[1:]}_1024"
        result = np.exp(a) * b + np.sin(a)
        yield Function(
            f"exp(a) b + sin(a) {kind}",
            text,
            (a, b),
            result,
            file,
            (count,),
            (count // 1024, 1),
            4,
            tolerance,
        )

    m = normal(256, 1024)
    text = f"""HloModule column_sum
{ADD}
ENTRY e {{
  x = f32[256,1024] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[1024] reduce(x, zero), dimensions={{0}}, to_apply=add
}}"""
    yield Function(
        "column sum 256x1024",
        text,
        (m,),
        m.sum(0),
        "column_sum_fp32",
        (256, 1024),
        (16, 1),
        4,
        1e-4,
    )

    m = normal(256, 512)
    text = """HloModule transpose
ENTRY e {
  x = f32[256,512] parameter(0)
  ROOT r = f32[512,256] transpose(x), dimensions={1,0}
}"""
    yield Function(
        "transpose 256x512", text, (m,), m.T.copy(), "transpose_fp32", (256, 512), (8, 16)
    )

    yield from products(randomness)

    steps = randomness.integers(-3, 4, (32, 512)).astype(np.float32)
    text = f"""HloModule scan
{ADD}
ENTRY e {{
  x = f32[32,512] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[32,512] reduce-window(x, zero), window={{size=1x512 pad=0_0x511_0}}, to_apply=add
}}"""
    yield Function(
        "cumulative sum 32x512", text, (steps,), np.cumsum(steps, 1), "scan_fp32", (512,), (32, 1)
    )

    values = normal(4096)
    where = randomness.integers(0, 512, 4096).astype(np.int32)
    text = f"""HloModule scatter
{ADD}
ENTRY e {{
  x = f32[4096] parameter(0)
  where = s32[4096] parameter(1)
  zero = f32[] constant(0)
  zeros = f32[512] broadcast(zero), dimensions={{}}
  ROOT r = f32[512] scatter(zeros, where, x), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
}}"""
    result = np.bincount(where, values, 512).astype(np.float32)
    yield Function(
        "scatter-add 4096 to 512",
        text,
        (values, where),
        result,
        "scatter_add_fp32",
        (4096,),
        (16, 1),
        4,
        1e-4,
    )

    keys = randomness.permutation(256).astype(np.int32)
    text = """HloModule sort
less { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = s32[256] parameter(0)
  ROOT r = s32[256] sort(x), dimensions={0}, to_apply=less
}"""
    yield Function("sort 256", text, (keys,), np.sort(keys), "ordered_i32", (), (1, 1))


def products(randomness: np.random.Generator) -> Iterator[Function]:
    """Products of matrices of small integers, which every format holds; files are named after Triton's tiles."""
    for kind, m, n, k, file, tile in (
        ("f16", 128, 128, 256, "fp16_128_128_64", 128),
        ("bf16", 256, 256, 512, "bf16_64_64_32", 64),
        ("bf16", 256, 256, 512, "bf16_128_128_64", 128),
        ("f32", 128, 128, 256, "fp32_64_64_32", 64),
        ("f8e5m2", 128, 128, 256, "fp8e5_128_128_64", 128),
    ):
        type_ = PRIMITIVE_TYPES[kind].dtype
        left = randomness.integers(-2, 3, (m, k)).astype(type_)
        right = randomness.integers(-2, 3, (k, n)).astype(type_)
        # Triton rounds f32 to tf32.
        rounded = ", algorithm=dot_tf32_tf32_f32" if kind == "f32" else ""
        text = f"""HloModule product
ENTRY e {{
  a = {kind}[{m},{k}] parameter(0)
  b = {kind}[{k},{n}] parameter(1)
  ROOT r = f32[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{rounded}
}}"""
        yield Function(
            f"product {kind} {m}x{n}x{k}",
            text,
            (left, right),
            left.astype(np.float32) @ right.astype(np.float32),
            f"matmul_{file}",
            (m, n, k),
            (m // tile, n // tile),
        )


def _rows_and_elements() -> Iterator[Function]:
    """Functions of rows, and of elements."""
    randomness = np.random.default_rng(1)
    x, y = (randomness.standard_normal((64, 1024)).astype(np.float32) for _ in range(2))
    kind, grid = "f32[64,1024]", (64, 1)

    def module(body: str) -> str:
        return f"HloModule m\n{ADD}\n{MAXIMUM}\nENTRY e {{\n{body}\n}}"

    text = module(f"x = {kind} parameter(0) y = {kind} parameter(1) ROOT r = {kind} add(x, y)")
    yield Function("add 64x1024", text, (x, y), x + y, "add_fp32_1024", (x.size,), grid)

    text = module(f"""x = {kind} parameter(0)
  half = f32[] constant(0.5)
  halves = {kind} broadcast(half), dimensions={{}}
  root = f32[] constant({math.sqrt(0.5)})
  roots = {kind} broadcast(root), dimensions={{}}
  one = f32[] constant(1)
  ones = {kind} broadcast(one), dimensions={{}}
  scaled = {kind} multiply(x, roots)
  error = {kind} erf(scaled)
  more = {kind} add(error, ones)
  part = {kind} multiply(x, halves)
  ROOT r = {kind} multiply(part, more)""")
    erf = np.vectorize(math.erf)(x.astype(np.float64) * math.sqrt(0.5))
    result = (0.5 * x * (1 + erf)).astype(np.float32)
    yield Function("gelu 64x1024", text, (x,), result, "gelu_fp32_1024", (x.size,), grid)

    scale = randomness.standard_normal(1024).astype(np.float32)
    text = module(f"""x = {kind} parameter(0)
  scale = f32[1024] parameter(1)
  zero = f32[] constant(0)
  square = {kind} multiply(x, x)
  sum = f32[64] reduce(square, zero), dimensions={{1}}, to_apply=add
  part = f32[] constant(0.0009765625)
  parts = f32[64] broadcast(part), dimensions={{}}
  mean = f32[64] multiply(sum, parts)
  small = f32[] constant(1e-05)
  smalls = f32[64] broadcast(small), dimensions={{}}
  lifted = f32[64] add(mean, smalls)
  inverse = f32[64] rsqrt(lifted)
  inverses = {kind} broadcast(inverse), dimensions={{0}}
  unit = {kind} multiply(x, inverses)
  scales = {kind} broadcast(scale), dimensions={{1}}
  ROOT r = {kind} multiply(unit, scales)""")
    result = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * scale
    peer = "rms_norm_fp32_1024"
    yield Function("rms norm 64x1024", text, (x, scale), result, peer, (1024,), grid, 4, 1e-4)

    labels = randomness.integers(0, 1024, 64).astype(np.int32)
    text = module(f"""x = {kind} parameter(0)
  label = s32[64] parameter(1)
  low = f32[] constant(-inf)
  top = f32[64] reduce(x, low), dimensions={{1}}, to_apply=maximum
  tops = {kind} broadcast(top), dimensions={{0}}
  less = {kind} subtract(x, tops)
  w = {kind} exponential(less)
  zero = f32[] constant(0)
  sum = f32[64] reduce(w, zero), dimensions={{1}}, to_apply=add
  labels = s32[64,1024] broadcast(label), dimensions={{0}}
  at = s32[64,1024] iota(), iota_dimension=1
  hit = pred[64,1024] compare(labels, at), direction=EQ
  zeros = {kind} broadcast(zero), dimensions={{}}
  picked = {kind} select(hit, less, zeros)
  logit = f32[64] reduce(picked, zero), dimensions={{1}}, to_apply=add
  logsum = f32[64] log(sum)
  ROOT r = f32[64] subtract(logsum, logit)""")
    less = x - x.max(1, keepdims=True)
    result = np.log(np.exp(less).sum(1)) - less[np.arange(64), labels]
    peer = "cross_entropy_fp32_1024"
    yield Function("cross-entropy 64x1024", text, (x, labels), result, peer, (1024,), grid, 4, 1e-4)

    text = module(f"""x = {kind} parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[64] reduce(x, zero), dimensions={{1}}, to_apply=add""")
    peer = "row_sum_fp32_1024"
    yield Function("row sum 64x1024", text, (x,), x.sum(1), peer, (1024,), grid, 4, 1e-4)

    where = randomness.integers(0, 64, 48).astype(np.int32)
    text = module(f"""x = {kind} parameter(0)
  where = s32[48] parameter(1)
  ROOT r = f32[48,1024] gather(x, where), offset_dims={{1}}, collapsed_slice_dims={{0}},
    start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,1024}}""")
    peer = "gather_rows_fp32_1024"
    yield Function("gather rows 48x1024", text, (x, where), x[where], peer, (1024,), (48, 1))
