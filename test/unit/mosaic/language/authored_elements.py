"""Small kernels in the language: elements, casts, reductions, shapes, products, references, loops."""

from __future__ import annotations

import numpy as np
from unit.mosaic.language.cases import (
    BF16,
    F8,
    F32,
    I8,
    I16,
    I32,
    case,
    like,
    numbers,
    pointwise,
)

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu

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


@case(
    [numbers(2, 16, 128), numbers(2, 32, 128)],
    (like((2, 32, 16)), like((16, 128))),
    lambda x, y: (np.einsum("bqd,bkd->bkq", x, y), np.einsum("bqd,bqd->qd", x, x)),
    tolerance=1e-3,
    not_on=("v4",),
)
def einsums(x_ref, y_ref, o_ref, s_ref):
    o_ref[...] = jnp.einsum("bqd,bkd->bkq", x_ref[...], y_ref[...])
    s_ref[...] = jnp.einsum("bqd,bqd->qd", x_ref[...], x_ref[...])


@case([np.tanh(numbers(8, 128))], like((8, 128)), lambda x: x, tolerance=1e-4)
def inverse_of_erf(x_ref, o_ref):
    o_ref[...] = lax.erf(lax.erf_inv(x_ref[...]))
