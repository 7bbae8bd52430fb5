"""Small kernels in the language, each with its operands and what numpy says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu

BF16 = ml_dtypes.bfloat16
F8 = ml_dtypes.float8_e4m3fn
F32, I32, I8, I16 = np.float32, np.int32, np.int8, np.int16


@dataclass
class Case:
    """A kernel that runs and compiles."""

    call: Any
    inputs: list[Any]
    want: Callable[..., Any]
    tolerance: float = 1e-5
    not_on: tuple[str, ...] = field(default=())
    """Generations whose compiler refuses it: what the chip has not."""


CASES: dict[str, Case] = {}


def numbers(*shape: int, dtype: Any = F32, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed + sum(shape))
    if np.dtype(dtype).kind in "iu":
        return generator.integers(-20 if np.dtype(dtype).kind == "i" else 0, 20, shape, dtype)
    return generator.normal(size=shape).astype(dtype)


def like(shape: Any, dtype: Any = F32) -> Any:
    return pl.ShapeDtypeStruct(shape, dtype)


def case(
    inputs: list[Any],
    out: Any,
    want: Callable[..., Any],
    *,
    tolerance: float = 1e-5,
    not_on: tuple[str, ...] = (),
    **call: Any,
) -> Callable[..., Any]:
    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        made = pl.kernel_call(body, out, **call)
        CASES[body.__name__] = Case(made, inputs, want, tolerance, not_on)
        return body

    return register


def pointwise(name: str, body: Any, want: Any, *inputs: Any, out: Any = None, **more: Any) -> None:
    """A kernel without a grid whose result is a function of whole operands."""

    def kernel(*refs: Any) -> None:
        *given, o_ref = refs
        o_ref[...] = body(*(ref[...] for ref in given)).astype(o_ref.dtype)

    kernel.__name__ = name
    case(
        list(inputs), like(inputs[0].shape, inputs[0].dtype) if out is None else out, want, **more
    )(kernel)


X, Y = numbers(16, 256), numbers(16, 256, seed=1)
P = np.abs(X) + 0.5
N, M = numbers(16, 256, dtype=I32), numbers(16, 256, dtype=I32, seed=1)
H = X.astype(BF16)

# Elementwise.
pointwise("subtract_multiply", lambda x, y: (x - y) * x, lambda x, y: (x - y) * x, X, Y)
pointwise("divide", lambda x, y: x / y, lambda x, y: x / y, X, P)
pointwise("exp_log", lambda x: jnp.log(jnp.exp(x) + 1.0), lambda x: np.log(np.exp(x) + 1), X)
pointwise("exp2_log2", lambda x: jnp.exp2(jnp.log2(x)), lambda x: x, P, tolerance=1e-4)
pointwise("roots", lambda x: jnp.sqrt(x) + lax.rsqrt(x), lambda x: np.sqrt(x) + 1 / np.sqrt(x), P)
pointwise("circle", lambda x: jnp.sin(x) * jnp.cos(x), lambda x: np.sin(x) * np.cos(x), X)
pointwise(
    "tangents",
    lambda x: jnp.tan(x) + jnp.tanh(x),
    lambda x: np.tan(x) + np.tanh(x),
    X,
    tolerance=1e-4,
)
pointwise("log1p_expm1", lambda x: jnp.log1p(jnp.expm1(x)), lambda x: x, P, tolerance=1e-4)
pointwise("logistic", lax.logistic, lambda x: 1 / (1 + np.exp(-x)), X)
pointwise(
    "rounding",
    lambda x: jnp.floor(x) + jnp.ceil(x) * 2 + jnp.round(x) * 4 + jnp.trunc(x) * 8,
    lambda x: np.floor(x) + np.ceil(x) * 2 + np.rint(x) * 4 + np.trunc(x) * 8,
    X * 3,
)
pointwise("abs_sign", lambda x: jnp.abs(x) + jnp.sign(x), lambda x: np.abs(x) + np.sign(x), X)
pointwise("powers", lambda x: x**3 + x**0.5, lambda x: x**3 + x**0.5, P, tolerance=1e-4)
pointwise("atan2", jnp.arctan2, np.arctan2, X, Y)
pointwise(
    "clip_max_min",
    lambda x, y: jnp.clip(jnp.maximum(x, y), -1.0, 1.0) + jnp.minimum(x, y),
    lambda x, y: np.clip(np.maximum(x, y), -1, 1) + np.minimum(x, y),
    X,
    Y,
)
pointwise(
    "comparisons",
    lambda x, y: jnp.where((x < y) & (x > -1.0) | (x >= 1.5), x, jnp.where(x != y, y, 0.0)),
    lambda x, y: np.where((x < y) & (x > -1) | (x >= 1.5), x, np.where(x != y, y, 0)),
    X,
    Y,
)
pointwise(
    "not_a_number",
    lambda x: jnp.where(jnp.isnan(x) | ~jnp.isfinite(x), 7.0, x),
    lambda x: np.where(np.isfinite(x), x, 7),
    np.where(X > 1, np.inf, np.where(X < -1, np.nan, X)),
)
pointwise(
    "numpy_functions",
    lambda x: np.where(np.exp(x) > 1, np.sqrt(np.abs(x)), np.maximum(x, -2)),
    lambda x: np.where(np.exp(x) > 1, np.sqrt(np.abs(x)), np.maximum(x, -2)),
    X,
)
pointwise(
    "integers",
    lambda x, y: (x * y - x) + (x & y) + (x | 5) - (x ^ y),
    lambda x, y: (x * y - x) + (x & y) + (x | 5) - (x ^ y),
    N,
    M,
)
pointwise("integer_division", lambda x: x // 7 + x % 7 * 100, lambda x: x // 7 + x % 7 * 100, N)
pointwise(
    "truncating_division",
    lambda x: lax.div(x, 3) * 100 + lax.rem(x, 3),
    lambda x: (np.fix(x / 3) * 100 + np.fmod(x, 3)).astype(I32),
    N,
)
pointwise(
    "shifts",
    lambda x: (x << 3) + (x >> 1) + lax.shift_right_logical(x, 28),
    lambda x: (x << 3) + (x >> 1) + (x.view(np.uint32) >> 28).astype(I32),
    N,
)
pointwise(
    "bits",
    lambda x: lax.population_count(x) + lax.clz(x),
    lambda x: np.vectorize(
        lambda v: (int(v) & 0xFFFFFFFF).bit_count() + (32 - (int(v) & 0xFFFFFFFF).bit_length())
    )(x).astype(I32),
    N,
)
pointwise("bf16_arithmetic", lambda x: x * x + 1, lambda x: x * x + BF16(1), H, tolerance=2e-2)
pointwise("int16_sum", lambda x: x + x * 3, lambda x: x + x * 3, N.astype(I16))

# Casts.
pointwise("f32_to_bf16", lambda x: x, lambda x: x.astype(BF16), X, out=like(X.shape, BF16))
pointwise("f32_to_i32", lambda x: x, lambda x: x.astype(I32), X * 5, out=like(X.shape, I32))
pointwise(
    "i8_to_f32",
    lambda x: x,
    lambda x: x.astype(F32),
    numbers(32, 128, dtype=I8),
    out=like((32, 128)),
)
pointwise(
    "i32_to_i8",
    lambda x: x,
    lambda x: x.astype(I8),
    numbers(32, 128, dtype=I32),
    out=like((32, 128), I8),
)
pointwise(
    "f32_to_f8", lambda x: x, lambda x: x.astype(F8), numbers(32, 128), out=like((32, 128), F8)
)
pointwise("bool_in_and_out", lambda m: ~m, lambda m: ~m, X > 0)
pointwise("bool_to_float", lambda x: (x > 0).astype(F32) * 2, lambda x: (x > 0) * 2.0, X)
pointwise(
    "same_bits",
    lambda x: lax.bitcast_convert_type(x, I32) >> 23 & 255,
    lambda x: x.view(I32) >> 23 & 255,
    X,
    out=like(X.shape, I32),
)
pointwise(
    "packed_rows", lambda x: pltpu.bitcast(pltpu.bitcast(x, jnp.bfloat16), F32), lambda x: x, X
)

# Reductions and shapes.
pointwise(
    "row_sums",
    lambda x: x.sum(axis=1, keepdims=True) + x,
    lambda x: x.sum(1, keepdims=True) + x,
    X,
    tolerance=1e-4,
)
pointwise(
    "column_extremes",
    lambda x: x.max(axis=0) - x.min(axis=0),
    lambda x: x.max(0) - x.min(0),
    X,
    out=like((256,)),
)
pointwise(
    "whole_sum",
    lambda x: jnp.full((8, 128), x.sum()),
    lambda x: np.full((8, 128), x.sum()),
    X,
    out=like((8, 128)),
    tolerance=1e-4,
)
pointwise(
    "mean_and_variance",
    lambda x: jnp.square(x - x.mean(axis=1, keepdims=True)).mean(axis=1, keepdims=True),
    lambda x: x.var(1, keepdims=True),
    X,
    out=like((16, 1)),
)
pointwise(
    "any_all",
    lambda x: (
        jnp.where(jnp.any(x > 2, axis=1, keepdims=True), 1.0, 0.0)
        + jnp.where(jnp.all(x < 3, axis=1, keepdims=True), 2.0, 0.0)
    ),
    lambda x: (x > 2).any(1, keepdims=True) * 1.0 + (x < 3).all(1, keepdims=True) * 2.0,
    X,
    out=like((16, 1)),
)
pointwise(
    "integer_reductions",
    lambda x: x.sum(axis=0, keepdims=True) + x.max(axis=0, keepdims=True),
    lambda x: x.sum(0, keepdims=True) + x.max(0, keepdims=True),
    N,
    out=like((1, 256), I32),
)
pointwise(
    "places",
    lambda x: jnp.argmax(x, axis=1, keepdims=True) * 1000 + jnp.argmin(x, axis=1, keepdims=True),
    lambda x: (x.argmax(1) * 1000 + x.argmin(1))[:, None],
    X,
    out=like((16, 1), I32),
)
pointwise("running_sum", lambda x: jnp.cumsum(x, axis=1), lambda x: np.cumsum(x, 1), N)
pointwise("transposed", lambda x: x.T, lambda x: x.T, X, out=like((256, 16)))
pointwise(
    "three_dimensions",
    lambda x: jnp.swapaxes(x, 0, 1).reshape(8, 4 * 128),
    lambda x: np.swapaxes(x, 0, 1).reshape(8, 512),
    numbers(4, 8, 128),
    out=like((8, 512)),
)
pointwise(
    "reshaped", lambda x: x.reshape(32, 128), lambda x: x.reshape(32, 128), X, out=like((32, 128))
)
pointwise(
    "joined",
    lambda x, y: jnp.concatenate([x[:, 128:], y[3:, 5:133][:13], x[:3, :128]][:1], axis=0),
    lambda x, y: x[:, 128:],
    X,
    Y,
    out=like((16, 128)),
)
pointwise(
    "slices",
    lambda x, y: jnp.concatenate([x[3:11], y[8:]], axis=0),
    lambda x, y: np.concatenate([x[3:11], y[8:]]),
    X,
    Y,
)
pointwise(
    "stacked",
    lambda x, y: jnp.stack([x, y]),
    lambda x, y: np.stack([x, y]),
    X,
    Y,
    out=like((2, 16, 256)),
)
pointwise(
    "halves",
    lambda x: sum(jnp.split(x, 2, axis=1)),
    lambda x: x[:, :128] + x[:, 128:],
    X,
    out=like((16, 128)),
)
pointwise(
    "iotas",
    lambda x: (
        x + lax.broadcasted_iota(I32, x.shape, 0) * 1000 + lax.broadcasted_iota(I32, x.shape, 1)
    ),
    lambda x: x + np.arange(16)[:, None] * 1000 + np.arange(256),
    N,
)
pointwise(
    "rotated",
    lambda x: pltpu.roll(x, 5, 1) + pltpu.roll(x, 15, 0),
    lambda x: np.roll(x, 5, 1) + np.roll(x, -1, 0),
    X,
)
pointwise(
    "taken",
    lambda x: jnp.take_along_axis(x, 127 - lax.broadcasted_iota(I32, x.shape, 1), axis=1),
    lambda x: x[:, ::-1],
    numbers(8, 128),
)
pointwise("broadcast_rows", lambda x, y: x * y + jnp.zeros_like(x), lambda x, y: x * y, X, Y[:1])
pointwise(
    "causal_mask",
    lambda x: jnp.where(
        lax.broadcasted_iota(I32, x.shape, 0) >= lax.broadcasted_iota(I32, x.shape, 1), x, -1e9
    ),
    lambda x: np.where(np.tril(np.ones(x.shape, bool)), x, -1e9).astype(F32),
    numbers(128, 128),
)

# Products.
A, B = numbers(64, 128), numbers(128, 256)
pointwise(
    "product", lambda a, b: a @ b, lambda a, b: a @ b, A, B, out=like((64, 256)), tolerance=1e-4
)
pointwise(
    "exact_product",
    lambda a, b: jnp.dot(a, b, precision=lax.Precision.HIGHEST),
    lambda a, b: a @ b,
    A,
    B,
    out=like((64, 256)),
    tolerance=1e-4,
)
pointwise(
    "product_with_transpose",
    lambda a, b: lax.dot_general(a, b, (((1,), (1,)), ((), ())), preferred_element_type=F32),
    lambda a, b: a @ b.T,
    A,
    numbers(256, 128),
    out=like((64, 256)),
    tolerance=1e-4,
)
pointwise(
    "product_of_bf16",
    lambda a, b: jnp.dot(a, b, preferred_element_type=F32),
    lambda a, b: a.astype(F32) @ b.astype(F32),
    A.astype(BF16),
    B.astype(BF16),
    out=like((64, 256)),
    tolerance=1e-3,
)
pointwise(
    "product_of_i8",
    lambda a, b: jnp.dot(a, b, preferred_element_type=I32),
    lambda a, b: a.astype(I32) @ b.astype(I32),
    numbers(32, 128, dtype=I8),
    numbers(128, 128, dtype=I8),
    out=like((32, 128), I32),
    not_on=("v4",),
)
pointwise(
    "batched_product",
    jnp.matmul,
    lambda a, b: a @ b,
    numbers(2, 16, 128),
    numbers(2, 128, 128),
    out=like((2, 16, 128)),
    tolerance=1e-4,
)
pointwise(
    "row_times_matrix",
    jnp.dot,
    lambda a, b: a @ b,
    A[:1],
    B,
    out=like((1, 256)),
    tolerance=1e-4,
)


# References.
@case([X], like((8, 128)), lambda x: x[4:12, 128:])
def static_slice(x_ref, o_ref):
    o_ref[...] = x_ref[4:12, 128:]


@case(
    [X, np.array([1], I32)],
    like((8, 256)),
    lambda x, i: x[8:],
    in_specs=[None, pl.BlockSpec(memory_space=pltpu.SMEM)],
)
def dynamic_rows(x_ref, at_ref, o_ref):
    o_ref[...] = x_ref[pl.ds(pl.multiple_of(at_ref[0] * 8, 8), 8), :]


@case(
    [numbers(4, 8, 128), np.array([2, 0], I32)],
    like((2, 8, 128)),
    lambda x, i: x[i],
    in_specs=[None, pl.BlockSpec(memory_space=pltpu.SMEM)],
)
def leading_index(x_ref, at_ref, o_ref):
    for row in range(2):
        o_ref[row] = x_ref[at_ref[row]]


@case([numbers(64, 128)], like((16, 128)), lambda x: x[1::4])
def strided_rows(x_ref, o_ref):
    o_ref[...] = x_ref[pl.ds(1, 16, 4), :]


@case([X, Y], like(X.shape), lambda x, y: np.where(x > 0, y, 1))
def masked_store(x_ref, y_ref, o_ref):
    o_ref[...] = jnp.ones_like(o_ref)
    pl.store(o_ref, ..., y_ref[...], mask=x_ref[...] > 0)


@case([X], like(X.shape), lambda x: np.where(np.arange(256) < 100, x, -1))
def masked_load(x_ref, o_ref):
    mask = lax.broadcasted_iota(I32, x_ref.shape, 1) < 100
    o_ref[...] = pl.load(x_ref, mask=mask, other=-1.0)


@case(
    [X],
    like(X.shape),
    lambda x: x * 2,
    scratch_shapes=[pltpu.VMEM((16, 256), F32), pltpu.SMEM((1,), I32)],
)
def scratch_memories(x_ref, o_ref, tmp_ref, count_ref):
    count_ref[0] = 2
    tmp_ref[...] = x_ref[...] * count_ref[0].astype(F32)
    o_ref[...] = tmp_ref[...]


@case(
    [np.array([3, 5, 7], I32)],
    like((4,), I32),
    lambda x: np.array([3, 5, 7, 15]),
    in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)],
    out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
)
def scalars(x_ref, o_ref):
    total = x_ref[0]
    for at in range(3):
        o_ref[at] = x_ref[at]
        total = total + x_ref[at] if at else total
    o_ref[3] = total


# Loops and branches.
@case(
    [np.array([5], I32), X],
    like(X.shape),
    lambda n, x: x * 32,
    in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), None],
)
def dynamic_loop(n_ref, x_ref, o_ref):
    o_ref[...] = lax.fori_loop(0, n_ref[0], lambda i, x: x + x, x_ref[...])


@case([X], like((8, 256)), lambda x: x[:8] + x[8:])
def loop_over_rows(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)

    @pl.loop(0, 2)
    def _(i):
        o_ref[...] += x_ref[pl.ds(i * 8, 8), :]


@case(
    [np.array([100], I32)],
    like((1,), I32),
    lambda n: np.array([7]),
    in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)],
    out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
)
def halved_until_one(n_ref, o_ref):
    def body(state):
        n, steps = state
        return n // 2, steps + 1

    _, o_ref[0] = lax.while_loop(lambda state: state[0] > 0, body, (n_ref[0], 0))


@case(
    [np.array([1], I32), X],
    like(X.shape),
    lambda n, x: -x,
    in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), None],
)
def chosen_branch(n_ref, x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = lax.switch(n_ref[0], [lambda: x, lambda: -x, lambda: x * 2])


@case([X], like(X.shape), lambda x: np.where(x.sum() > 0, x, x * 3), tolerance=1e-4)
def condition_of_a_sum(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = lax.cond(x.sum() > 0.0, lambda: x, lambda: x * 3.0)


# Grids, blocks, copies.
def rows_of(block: int, width: int) -> Any:
    return pl.BlockSpec((block, width), lambda i: (i, 0))


@case(
    [numbers(20, 200)],
    like((20, 200)),
    lambda x: x + 1,
    grid=(3, 2),
    in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
    out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)),
)
def ragged_blocks(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1.0


@case(
    [numbers(64, 128)],
    like((8, 128)),
    lambda x: x.reshape(8, 8, 128).sum(0),
    grid=(8,),
    in_specs=[rows_of(8, 128)],
    out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
)
def accumulated_output(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


@case(
    [numbers(4, 8, 128)],
    like((4, 8, 128)),
    lambda x: x[::-1] + np.arange(4)[:, None, None],
    grid=(("step", 4),),
    in_specs=[pl.BlockSpec((None, 8, 128), lambda i: (3 - i, 0, 0))],
    out_specs=pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)),
    compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
)
def reversed_blocks(x_ref, o_ref):
    o_ref[...] = x_ref[...] + pl.program_id("step").astype(F32)


@case(
    [np.array([2, 0, 1], I32), numbers(4, 8, 128)],
    like((3, 8, 128)),
    lambda i, x: x[i],
    grid_spec=pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(3,),
        in_specs=[pl.BlockSpec((None, 8, 128), lambda i, at: (at[i], 0, 0))],
        out_specs=pl.BlockSpec((None, 8, 128), lambda i, at: (i, 0, 0)),
    ),
)
def prefetched_indices(at_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]


@case(
    [numbers(32, 128)],
    like((16, 128)),
    lambda x: np.concatenate([x[0:8], x[16:24]]),
    grid=(2,),
    in_specs=[pl.BlockSpec((pl.Element(8), pl.Element(128)), lambda i: (i * 16, 0))],
    out_specs=rows_of(8, 128),
)
def blocks_by_elements(x_ref, o_ref):
    o_ref[...] = x_ref[...]


@case(
    [numbers(16, 128)],
    like((16, 128)),
    lambda x: x * 2,
    input_output_aliases={0: 0},
    grid=(2,),
    in_specs=[rows_of(8, 128)],
    out_specs=rows_of(8, 128),
)
def in_place(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0


@case(
    [numbers(16, 128)],
    (like((16, 128)), like((16, 128))),
    lambda x: (x + 1, x * 2),
    grid=(2,),
    in_specs=[rows_of(8, 128)],
    out_specs=[rows_of(8, 128), rows_of(8, 128)],
)
def two_results(x_ref, a_ref, b_ref):
    a_ref[...], b_ref[...] = x_ref[...] + 1.0, x_ref[...] * 2.0


@case(
    [numbers(32, 128)],
    like((32, 128)),
    lambda x: x + 1,
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
    scratch_shapes=[pltpu.VMEM((32, 128), F32), pltpu.SemaphoreType.DMA],
)
def copied_by_hand(x_ref, o_ref, buffer, sem):
    pltpu.async_copy(x_ref, buffer, sem).wait()
    buffer[...] += 1.0
    pltpu.sync_copy(buffer, o_ref)


@case(
    [numbers(32, 128)],
    like((32, 128)),
    lambda x: x,
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
)
def scoped_copies(x_ref, o_ref):
    def body(buffer, sems):
        copies = [
            pltpu.make_async_copy(x_ref.at[pl.ds(i * 16, 16)], buffer.at[i], sems.at[i])
            for i in range(2)
        ]
        for copy in copies:
            copy.start()
        for copy in copies:
            copy.wait()
        for i in range(2):
            pltpu.sync_copy(buffer.at[i], o_ref.at[pl.ds(i * 16, 16)])

    pl.run_scoped(body, pltpu.VMEM((2, 16, 128), F32), pltpu.SemaphoreType.DMA((2,)))


@case(
    [numbers(64, 256), numbers(64, 256, seed=1)],
    like((64, 256)),
    lambda x, y: x * y,
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)] * 2,
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
)
def pipelined_product(x_ref, y_ref, o_ref):
    def body(x, y, o):
        o[...] = x[...] * y[...]

    spec = pl.BlockSpec((16, 128), lambda i, j: (i, j))
    pltpu.emit_pipeline(body, grid=(4, 2), in_specs=[spec, spec], out_specs=[spec])(
        x_ref, y_ref, o_ref
    )


@case(
    [numbers(64, 128)],
    like((16, 128)),
    lambda x: x.reshape(4, 16, 128).sum(0),
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
    tolerance=1e-4,
    scratch_shapes=[pltpu.VMEM((16, 128), F32)],
)
def pipelined_sum(x_ref, o_ref, acc_ref):
    acc_ref[...] = jnp.zeros_like(acc_ref)

    def body(x):
        acc_ref[...] += x[...]

    pltpu.emit_pipeline(body, grid=(4,), in_specs=[pl.BlockSpec((16, 128), lambda i: (i, 0))])(
        x_ref
    )
    pltpu.sync_copy(acc_ref, o_ref)


@case(
    [numbers(40, 128)],
    like((40, 128)),
    lambda x: 2 * x,
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
)
def pipelined_bounded_slices(x_ref, o_ref):
    def rows(i):
        # 16, 16 and the 8 that are left.
        return pl.ds(16 * i, jnp.minimum(16, 40 - 16 * i)), 0

    def body(x, o):
        o[...] = 2 * x[...]

    spec = pl.BlockSpec((pl.BoundedSlice(16), 128), rows)
    pltpu.emit_pipeline(body, grid=(3,), in_specs=[spec], out_specs=[spec])(x_ref, o_ref)


_GROUPS = np.array([0, 8, 8, 32, 40], I32)


@case(
    [_GROUPS, numbers(40, 128)],
    like((32, 128)),
    lambda offsets, x: np.repeat([x[a:b].sum(0) for a, b in pairwise(offsets)], 8, axis=0),
    in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
    tolerance=1e-4,
)
def pipelined_groups(offsets_ref, x_ref, o_ref):
    def rows(i):
        return pl.ds(offsets_ref[i], offsets_ref[i + 1] - offsets_ref[i]), 0

    def body(x, o):
        group = pl.program_id(0)
        count = offsets_ref[group + 1] - offsets_ref[group]
        row = lax.broadcasted_iota(I32, (24, 128), 0)
        kept = jnp.where(row < count, x[...], 0.0)
        o[...] = jnp.broadcast_to(kept.sum(axis=0, keepdims=True), (8, 128))

    pltpu.emit_pipeline(
        body,
        grid=(4,),
        in_specs=[pl.BlockSpec((pl.BoundedSlice(24), 128), rows)],
        out_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
    )(x_ref, o_ref)


@case(
    [numbers(40, 128)],
    like((40, 128)),
    lambda x: np.pad(x, ((8, 0), (0, 0)))[:40] + x,
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
)
def pipelined_padding(x_ref, o_ref):
    def body(x, o):
        row = lax.broadcasted_iota(I32, (16, 128), 0) + 8 * pl.program_id(0) - 8
        kept = jnp.where((row >= 0) & (row < 40), x[...], 0.0)
        o[...] = kept[:8] + kept[8:]

    windows = (pl.Element(16, (8, 8)), pl.Element(128))
    pltpu.emit_pipeline(
        body,
        grid=(5,),
        in_specs=[pl.BlockSpec(windows, lambda i: (8 * i, 0))],
        out_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
    )(x_ref, o_ref)


def _functions(x):
    return (
        np.sinh(x)
        + np.cosh(x)
        + np.log10(np.abs(x) + 1)
        + np.logaddexp(x, 0.5)
        + np.hypot(x, 2.0)
        + np.copysign(3.0, x)
    )


@case([numbers(16, 128)], like((16, 128)), _functions, tolerance=1e-4)
def derived_functions(x_ref, o_ref):
    x = x_ref[...]
    found = jnp.sinh(x) + jnp.cosh(x) + jnp.log10(jnp.abs(x) + 1) + jnp.logaddexp(x, 0.5)
    o_ref[...] = found + jnp.hypot(x, 2.0) + jnp.copysign(3.0, x)


@case(
    [numbers(16, 256)],
    [like((16, 1)), like((16, 1)), like((16, 1)), like((16, 1), I32)],
    lambda x: [
        x.var(1, keepdims=True),
        x.std(1, ddof=1, keepdims=True),
        np.ptp(x, 1, keepdims=True),
        np.count_nonzero(x > 0, 1, keepdims=True),
    ],
    tolerance=1e-4,
)
def derived_reductions(x_ref, var_ref, std_ref, ptp_ref, count_ref):
    x = x_ref[...]
    var_ref[...] = jnp.var(x, 1, keepdims=True)
    std_ref[...] = jnp.std(x, 1, ddof=1, keepdims=True)
    ptp_ref[...] = jnp.ptp(x, 1, keepdims=True)
    count_ref[...] = jnp.count_nonzero(x > 0, 1, keepdims=True)


@case(
    [numbers(16, 128)],
    [like((32, 256)), like((16, 128)), like((32, 128)), like((16, 128))],
    lambda x: [
        np.pad(x, ((8, 8), (0, 128)), constant_values=2.0),
        np.tril(x) - np.triu(x, 2),
        np.repeat(x, 2, 0),
        np.where(x > 1, 1, np.where(x < -1, -1, x)),
    ],
)
def derived_shapes(x_ref, padded_ref, triangles_ref, repeated_ref, chosen_ref):
    x = x_ref[...]
    padded_ref[...] = jnp.pad(x, ((8, 8), (0, 128)), constant_values=2.0)
    triangles_ref[...] = jnp.tril(x) - jnp.triu(x, 2)
    repeated_ref[...] = jnp.repeat(x, 2, 0)
    chosen_ref[...] = jnp.select([x > 1, x < -1], [1.0, -1.0], x)


@case(
    [numbers(16, 256)],
    [like((2, 16, 128)), like((16, 128)), like((16, 128))],
    lambda x: [x.reshape(16, 2, 128).transpose(1, 0, 2), x[:, 128:], np.clip(x[:, :128], -1, 1)],
)
def derived_lax(x_ref, split_ref, half_ref, clamped_ref):
    x = x_ref[...]
    split_ref[...] = pltpu.einshape("a(bc)->bac", x, c=128)
    half_ref[...] = lax.slice_in_dim(x, 128, 256, axis=1)
    half, _ = lax.scan(lambda carry, _: (carry + 0.0, None), x[:, :128], length=2)
    clamped_ref[...] = lax.clamp(-1.0, half, 1.0)


@case(
    [numbers(64, 128)],
    [like((64, 128)), like((64, 128))],
    lambda x: [2 * x, 4 * x],
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=[pl.BlockSpec(memory_space=pl.ANY)] * 2,
)
def pipelines_that_share_buffers(x_ref, between_ref, o_ref):
    def body(x, o):
        o[...] = 2 * x[...]

    spec = pl.BlockSpec((16, 128), lambda i: (i, 0))
    pipeline, make_allocations = pltpu.emit_pipeline_with_allocations(
        body, grid=(4,), in_specs=[spec], out_specs=[spec]
    )

    def twice(allocations):
        pipeline(x_ref, between_ref, allocations=allocations)
        pipeline(between_ref, o_ref, allocations=allocations)

    pl.run_scoped(twice, make_allocations(x_ref, o_ref))


@case(
    [np.array([4], I32)],
    like((2, 8, 128), I32),
    lambda s: None,
    in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)],
)
def random_bits(seed_ref, o_ref):
    pltpu.prng_seed(seed_ref[0])
    o_ref[0] = pltpu.prng_random_bits((8, 128))
    o_ref[1] = pltpu.prng_random_bits((8, 128))


@case([numbers(8, 128)], like((8, 128)), lambda x: x)
def messages(x_ref, o_ref):
    pl.debug_print("the first element is {}", x_ref[0, 0])
    o_ref[...] = x_ref[...]
